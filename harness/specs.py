"""What `-d` names: read here without importing it, so that its code runs only in isolation.

rules                      a bundled diagnoser, or an entry point of evalharness.diagnosers
forest:FILE                the bundled forest as `evalharness train forest` wrote it to FILE
gpu-idle                   a tool of others whose environment `evalharness diagnosers` has made
package.module:function    a function that Python can import from here
path/file.py:function      a function of a file
cmd:program --flag         a program; the case's folder is added as its last argument
NAME=...                   any of these under a name of your own
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

from cases.documents import canonical_json
from cases.errors import InputError
from harness.diagnosers import DIAGNOSERS, ORACLE
from harness.diagnosers.third_party import PYTHON, TOOLS
from harness.environments import required
from harness.llm.settings import ModelSettings, from_environment
from harness.sandbox.digests import named_digest, tree_digest
from harness.sandbox.view import OWN_PACKAGES
from harness.sandbox.worker import Task
from harness.virtualenv import distributions, environment_paths

GROUP = "evalharness.diagnosers"
NAMED = re.compile(r"([A-Za-z0-9][\w.-]*)=(.+)", re.DOTALL)
FUNCTION = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
FILE = re.compile(r"(.+\.py):([A-Za-z_]\w*)")
COMMAND, FOREST = "cmd:", "forest:"


@dataclass(frozen=True)
class DiagnoserSpec:
    """A diagnoser that has been found but not imported.

    Attributes:
        text: The specification as it was given.
        name: What it is called in tables and folders.
        task: What the sandbox runs.
        digest: Digest of its own code, and of what was declared with it.
        settings: Whether it is told what is common in the train split.
        model: The language model that it talks to, None for all that talk to none.
    """

    text: str
    name: str
    task: Task
    digest: str
    settings: bool = False
    model: ModelSettings | None = None


def parse_spec(text: str, declared: Sequence[Path] = ()) -> DiagnoserSpec:
    """Find what `text` names.

    Args:
        text: One of the forms in the module's docstring.
        declared: Further files and folders that it reads: shown to it where they are, and
            covered by its digest.

    Raises:
        InputError: there is no such diagnoser; says which there are.
    """
    named = NAMED.fullmatch(text)
    name, rest = (named[1], named[2]) if named else ("", text)
    spec = _find(rest)
    paths = tuple(path.resolve() for path in declared)
    digest = (
        named_digest(canonical_json([spec.digest, tree_digest(paths)])) if paths else spec.digest
    )
    task = replace(spec.task, shown=(*spec.task.shown, *paths))
    return replace(spec, text=text, name=name or spec.name, task=task, digest=digest)


def _find(text: str) -> DiagnoserSpec:
    if text.startswith(COMMAND):
        return _command(text)
    if text.startswith(FOREST):
        return _forest(text)
    if text in DIAGNOSERS:
        bundled = DIAGNOSERS[text]
        target = {"module": bundled.module, "function": bundled.function, "search": []}
        model = from_environment() if bundled.model else None
        digest = model.digest() if model else "bundled"
        return DiagnoserSpec(text, text, Task(target), digest, bundled.settings, model)
    if text in TOOLS:
        return _tool(text)
    if file := FILE.fullmatch(text):
        return _file(text, Path(file[1]), file[2])
    if function := FUNCTION.fullmatch(text):
        return _module(text, function[1], function[2])
    entries = {entry.name: entry for entry in metadata.entry_points(group=GROUP)}
    if text in entries:
        found = FUNCTION.fullmatch(entries[text].value)
        if not found:
            must = "must be module:function"
            raise InputError(must, where=f"entry point {text}", found=entries[text].value)
        return replace(_module(text, found[1], found[2]), name=text)
    names = ", ".join([*DIAGNOSERS, *TOOLS, ORACLE, *entries])
    must = f"must be module:function, path/file.py:function, cmd:program or one of {names}"
    raise InputError(must, where="-d", found=text)


def _forest(text: str) -> DiagnoserSpec:
    """A forest that was trained here; its file is shown where it lies, and part of its digest."""
    path = Path(text.removeprefix(FOREST))
    if not path.is_file():
        must = "must be a file that `evalharness train forest` wrote"
        raise InputError(must, where="-d", found=str(path))
    from harness.diagnosers.forest.model import load

    load(path)  # one that cannot be used would cost every case an error of its own
    path = path.resolve()
    target = {"module": "harness.diagnosers.forest", "function": "diagnose", "search": []}
    task = Task(target, settings={"model": str(path)}, shown=(path,))
    return DiagnoserSpec(text, _slug(text), task, tree_digest([path]))


def _tool(name: str) -> DiagnoserSpec:
    """A tool of others: its adapter is ours, its environment is shown to it as it lies there."""
    environment = required(name)
    python = environment.python
    target = {"module": environment.tool.package, "function": "diagnose", "search": []}
    settings = {PYTHON: str(python)}
    task = Task(target, settings=settings, shown=tuple(environment_paths(python)))
    own = [environment.key, tree_digest([environment.tool.folder])]
    return DiagnoserSpec(name, name, task, named_digest(canonical_json(own)))


def _slug(text: str) -> str:
    """Return a name fit for a folder.

    >>> _slug("../mine/diag.py:diagnose")
    'diag.py-diagnose'
    """
    return re.sub(r"[^\w.-]+", "-", text.split("/")[-1]).strip("-.")[:80] or "diagnoser"


def _file(text: str, path: Path, function: str) -> DiagnoserSpec:
    """A file on its own, or, where it belongs to a package, the whole package."""
    if not path.is_file():
        raise InputError("must be a Python file", where="-d", found=str(path))
    path = path.resolve()
    top = _top_package(path)
    if top is None or top.name in OWN_PACKAGES:
        name = f"_diagnoser_{path.stem}"  # never the name of a module that others import
        target: dict[str, Any] = {"name": name, "file": str(path), "search": [str(path.parent)]}
        shown = path
    else:
        module = ".".join(path.with_suffix("").relative_to(top.parent).parts)
        target = {"module": module, "search": [str(top.parent)]}
        shown = top
    task = Task({**target, "function": function}, shown=(shown,))
    return DiagnoserSpec(text, _slug(text), task, tree_digest([shown]))


def _top_package(path: Path) -> Path | None:
    """Return the outermost folder around `path` that is a package."""
    top, folder = None, path.parent
    while (folder / "__init__.py").is_file():
        top, folder = folder, folder.parent
    return top


def _module(text: str, module: str, function: str) -> DiagnoserSpec:
    top = module.split(".")[0]
    if top in OWN_PACKAGES:  # our own public code is shown to every diagnoser
        target = {"module": module, "function": function, "search": []}
        return DiagnoserSpec(text, _slug(text), Task(target), "bundled")
    spec: ModuleSpec | None = PathFinder.find_spec(top, [str(Path.cwd())])
    spec = spec or importlib.util.find_spec(top)
    places = list(spec.submodule_search_locations or ()) if spec else []
    origin = places[0] if places else spec.origin if spec else None
    if origin is None or not Path(origin).exists():
        raise InputError("must be a module that can be found from here", where="-d", found=top)
    path = Path(origin).resolve()
    target = {"module": module, "function": function, "search": [str(path.parent)]}
    return DiagnoserSpec(text, _slug(text), Task(target, shown=(path,)), tree_digest([path]))


def _command(text: str) -> DiagnoserSpec:
    """A program, and of its words those that name files, in absolute form."""
    try:
        words = shlex.split(text.removeprefix(COMMAND))
    except ValueError as error:
        raise InputError(f"must be a command line ({error})", where="-d", found=text) from None
    places = os.pathsep.join([f"{sys.prefix}/bin", os.environ.get("PATH", os.defpath)])
    program = shutil.which(words[0], path=places) if words else None
    if program is None:
        raise InputError("must name a program that is installed", where="-d", found=text)
    path = Path(program).absolute()
    files = [Path(word).resolve() for word in words[1:] if _names_path(word)]
    argv = (str(path), *(str(Path(w).resolve()) if _names_path(w) else w for w in words[1:]))
    environment = environment_paths(path)
    task = Task({}, argv, shown=(path, path.resolve(), *environment, *files))
    own = [tree_digest([path, *files]), distributions(path)]
    name = _slug("-".join([path.name, *(Path(word).name for word in words[1:])]))
    return DiagnoserSpec(text, name, task, named_digest(canonical_json(own)))


def _names_path(word: str) -> bool:
    return Path(word).is_file() or ("/" in word and Path(word).exists())
