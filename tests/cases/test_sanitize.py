"""Nothing private survives, and what is harmless stays readable."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.sanitize import allowed_variables, number_hosts, scrub_text

WORDS = st.text(string.ascii_lowercase, min_size=4, max_size=12)


@pytest.mark.parametrize(
    "secret",
    [
        "ghp_" + "a1B2" * 9,
        "hf_" + "Zz9" * 10,
        "AKIA" + "ABCD" * 4,
        "sk-proj-" + "q" * 30,
        "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
        "xoxb-" + "12345678-" * 3,
    ],
)
@pytest.mark.parametrize("around", ["{}", "key: {} end", "https://x/?a={}", "'{}'", "a={},b=2"])
def test_known_tokens_go(secret: str, around: str) -> None:
    assert secret not in scrub_text(around.format(secret))


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("loaded /data/sets/c4/shard-1.bin in 3 s", "loaded shard-1.bin in 3 s"),
        ('File "/home/ann/x.py", line 3', 'File "x.py", line 3'),
        ("cd /home/ann", "cd user"),
        ("open file:///home/ann/x.json", "open x.json"),
        (r"C:\Users\ann\run\x.py failed", "x.py failed"),
        ("~/run/x.py", "x.py"),
        ("bound to 10.1.2.3:29500", "bound to <address>:29500"),
        ("password = 'hunter22'", "password = '<secret>'"),
        ("https://ann:pw@proxy/simple", "https://<secret>@proxy/simple"),
        ("Authorization: Bearer abcdef123456", "Authorization: Bearer <secret>"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n", "<secret>"),
    ],
)
def test_examples(text: str, clean: str) -> None:
    assert scrub_text(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=4096 loss 2.31 3.1e+05 tokens/s",
        "token: 128256",
        "tokenizer=gpt2_medium",
        "step 10/200 | lr 1e-4 | 12:30:01",
        "aten::mm and/or aten::add, torch 2.13.0",
        "see https://pytorch.org/docs/stable",
    ],
)
def test_ordinary_lines_stay(text: str) -> None:
    assert scrub_text(text) == text


@given(st.text(max_size=200))
def test_scrubbing_twice_changes_nothing(text: str) -> None:
    once = scrub_text(text)
    assert scrub_text(once) == once


@given(st.lists(WORDS, min_size=1, max_size=5), WORDS, st.sampled_from(" :\"'=,()"))
def test_folders_and_users_go(folders: list[str], file: str, before: str) -> None:
    path = "/".join(["", "home", "zqxann", *(f"{name}Q" for name in folders), file])
    clean = scrub_text(f"run{before}{path} done")
    assert "zqxann" not in clean
    assert not any(f"{name}Q" in clean for name in folders)
    assert file in clean


@given(st.lists(WORDS, min_size=1, max_size=4, unique=True))
def test_hosts_are_numbered(words: list[str]) -> None:
    hosts = [f"{word}-17" for word in words]
    clean = scrub_text(" ".join(f"{host}: up" for host in hosts), hosts=hosts)
    assert clean == " ".join(f"host{index}: up" for index in range(len(hosts)))
    assert list(number_hosts(hosts + hosts)) == hosts


def test_variables_are_allow_listed() -> None:
    environment = {
        "NCCL_IB_HCA": "mlx5_0:1,mlx5_1:1",
        "OMP_NUM_THREADS": "4",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "NCCL_TOPO_FILE": "topo.xml",
        "NCCL_COMM_ID": "10.0.0.1:4000",
        "TORCH_HOME": "models",
        "CUDA_CACHE_PATH": "cache",
        "NCCL_NET_PLUGIN": "/opt/lib/plugin.so",
        "NCCL_SOCKET_IFNAME": "=eth0",
        "TORCH_AUTH_TOKEN": "abc",
        "NCCL_OTHER": "ghp_" + "a1B2" * 9,
        "HOME": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
    }
    kept = allowed_variables(environment)
    assert sorted(kept) == [
        "NCCL_IB_HCA",
        "NCCL_SOCKET_IFNAME",
        "OMP_NUM_THREADS",
        "PYTORCH_CUDA_ALLOC_CONF",
    ]
