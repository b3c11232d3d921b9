"""Taking out of recordings what tells about people and machines rather than about the job.

Secrets, user names, host names, addresses and absolute paths never enter a case; of the
environment only variables that steer the libraries do, and only if they hold plain settings.
Where a rule can't tell, it takes out too much: a four-part version reads like an address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

SECRET, ADDRESS, USER = "<secret>", "<address>", "user"

SECRETS = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
        r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
        r"\b(?:gh[pousr]|hf|glpat|sk|xox[abeprs])[_-][A-Za-z0-9_-]{16,}",
        r"\bgithub_pat_\w{20,}",
        r"\bAIza[\w-]{30,}",
        r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?",
        r"(?<=://)[^\s/@]+(?=@)",
    )
)
BEARER = re.compile(r"(\bbearer\s+)[\w.~+/=-]{8,}", re.IGNORECASE)
# `max_tokens=4096` is a setting and stays: the key must end in the word, the value not be a number.
ASSIGNED = re.compile(
    r"((?:token|secret|password|passwd|pwd|credentials?|api[_-]?key|access[_-]?key)"
    r"[\"']?\s*[=:]\s*[\"']?)(?!\d+\b|bearer\b)[^\s\"',;]{6,}",
    re.IGNORECASE,
)
HOME = re.compile(r"(/(?:home|Users)/)[^/\s:\"']+")
FILE_URL = re.compile(r"\bfile:/+")
# Two slashes after a colon belong to a URL, which stays; elsewhere they begin a path, too.
PATH = re.compile(
    r"(?<![\w./~<-])(?:~?/(?!/)|(?<!:)/{2,})(?:[^\s/:\"'<>|,;()]+/+)*([^\s/:\"'<>|,;()]+)/?"
)
DRIVE_PATH = re.compile(r"\b[A-Za-z]:[\\/](?:[^\s\\/:\"']+[\\/])*([^\s\\/:\"']+)[\\/]?")
IPV4 = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b")

PREFIXES = ("NCCL_", "OMP_", "MKL_", "TORCH_", "CUDA_", "GLOO_", "PYTORCH_", "KMP_")
PRIVATE_PARTS = {
    "FILE", "PATH", "DIR", "HOME", "CACHE", "LOG", "ADDR", "ADDRESS", "HOST", "ID",
    "TOKEN", "KEY", "SECRET", "PASSWORD", "USER", "URL", "URI",
}  # fmt: skip
SETTING = re.compile(r"[\w.,:;=+^~ -]{0,200}")


def scrub_text(text: str, hosts: Iterable[str] = (), users: Iterable[str] = ()) -> str:
    """Take secrets, users, hosts, addresses and folders out of a text.

    Args:
        text: A line of a log, a process name, ...
        hosts: Host names of the job; the first becomes host0, and so on.
        users: User names to replace wherever they stand as a word.

    >>> scrub_text("node7: HF_TOKEN=hf_abcdefghijklmnopqrst in /home/ann/run/train.py", ["node7"])
    'host0: HF_TOKEN=<secret> in train.py'
    """
    for pattern in SECRETS:
        text = pattern.sub(SECRET, text)
    text = BEARER.sub(rf"\g<1>{SECRET}", text)
    text = ASSIGNED.sub(rf"\g<1>{SECRET}", text)
    text = HOME.sub(rf"\g<1>{USER}", FILE_URL.sub("/", text))
    names = number_hosts(hosts) | dict.fromkeys(filter(None, users), USER)
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", names[name], text)
    text = DRIVE_PATH.sub(r"\g<1>", PATH.sub(r"\g<1>", text))
    return IPV4.sub(ADDRESS, text)


def number_hosts(names: Iterable[str]) -> dict[str, str]:
    """Map host names to host0, host1, ... in order of first appearance.

    >>> number_hosts(["b", "a", "b"])
    {'b': 'host0', 'a': 'host1'}
    """
    return {name: f"host{index}" for index, name in enumerate(dict.fromkeys(filter(None, names)))}


def allowed_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Keep the variables that steer the libraries and hold nothing private, by name.

    Left out: names that speak of files, addresses or secrets, and values that hold a path, an
    address or anything else than a plain setting.

    >>> allowed_variables({"OMP_NUM_THREADS": "4", "CUDA_HOME": "/opt/cuda", "USER": "ann"})
    {'OMP_NUM_THREADS': '4'}
    """
    return {
        name: value
        for name, value in sorted(environment.items())
        if name.startswith(PREFIXES)
        and not PRIVATE_PARTS & set(name.split("_"))
        and SETTING.fullmatch(value)
        and scrub_text(value) == value
    }
