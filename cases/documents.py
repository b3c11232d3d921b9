"""Reading and writing JSON and YAML documents: strict, versioned, never half-written."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from cases.errors import InputError, RecordError

FORMAT = re.compile(r"evalharness\.([a-z_]+)/(\d+)\.(\d+)")
MAX_DOCUMENT_BYTES = 64 * 2**20

Model = TypeVar("Model", bound=BaseModel)


def read_record(path: Path, model: type[Model]) -> Model:
    """Read the JSON file `path` as `model`; raises RecordError naming file and field."""
    return parse_record(read_json(path), model, where=path)


def parse_record(data: Any, model: type[Model], where: str | Path) -> Model:
    """Validate `data` as `model`, honouring its `format` field.

    A higher minor version may carry fields unknown here: they are dropped. Another major
    version, or an unknown field in a version that is known, is an error.
    """
    extra = None
    default = model.model_fields["format"].default if "format" in model.model_fields else None
    if default is not None:
        kind, major, minor = split_format(default, where)
        found = data.get("format") if isinstance(data, dict) else None
        found_kind, found_major, found_minor = split_format(found, where)
        if (found_kind, found_major) != (kind, major):
            raise RecordError(
                f"must be {default} or a later minor version of it"
                f" (see docs/design.md, 'Migrating old files')",
                where=where,
                field="format",
                found=found,
            )
        extra = "ignore" if found_minor > minor else None
    try:
        return model.model_validate(data, extra=extra)  # type: ignore[arg-type]
    except ValidationError as error:
        raise record_error(error, where) from None


def record_error(error: ValidationError, where: str | Path) -> RecordError:
    """Turn pydantic's report into one sentence about its first finding."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    must = first["msg"].removeprefix("Value error, ")
    missing = first["type"] == "missing"
    found = None if missing else first.get("input")
    return RecordError(f"{must}{more}", where=where, field=field, found=found)


def split_format(text: object, where: str | Path) -> tuple[str, int, int]:
    """Split `evalharness.KIND/MAJOR.MINOR`.

    >>> split_format("evalharness.case/1.0", "case.json")
    ('case', 1, 0)
    """
    match = FORMAT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise RecordError(
            "must read evalharness.<kind>/MAJOR.MINOR", where=where, field="format", found=text
        )
    return match[1], int(match[2]), int(match[3])


def read_json(path: Path) -> Any:
    """Read one JSON document; duplicate keys, NaN and Infinity are errors."""
    return parse_json(read_text(path), where=path)


def parse_json(text: str | bytes, where: str | Path) -> Any:
    """Parse JSON strictly: no duplicate keys, no NaN, no Infinity."""

    def constant(name: str) -> float:
        raise RecordError("must be finite numbers", where=where, found=name)

    def number(text: str) -> float:
        value = float(text)
        return value if math.isfinite(value) else constant(text)

    try:
        return json.loads(
            text,
            object_pairs_hook=_unique(where),
            parse_constant=constant,
            parse_float=number,
        )
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(f"must be JSON ({error})", where=where) from None


def _unique(where: str | Path) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise RecordError("must not repeat a key", where=where, field=twice)
        return result

    return build


def read_yaml(path: Path) -> Any:
    """Read one YAML document with the safe loader; duplicate keys are an error."""
    return parse_yaml(read_text(path), where=path)


def parse_yaml(text: str, where: str | Path) -> Any:
    """Parse YAML safely; numbers like 1e-3 are numbers, duplicate keys are an error."""
    try:
        return yaml.load(text, Loader=_StrictLoader)
    except yaml.YAMLError as error:
        raise RecordError(f"must be YAML ({' '.join(str(error).split())})", where=where) from None


class _StrictLoader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} stands twice", node.start_mark
                )
        return super().construct_mapping(node, deep)


# YAML 1.1 reads 1e-3 as a string; people mean a number.
_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\d[\d_]*(\.[\d_]*)?[eE][-+]?\d+|\d[\d_]*\.[\d_]*|\.\d+)$"),
    list("-+0123456789."),
)


def read_text(path: Path) -> str:
    """Read a UTF-8 file of bounded size."""
    try:
        if path.stat().st_size > MAX_DOCUMENT_BYTES:
            raise InputError("must be at most 64 MiB", where=path, found=path.stat().st_size)
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"must be readable ({error.strerror})", where=path) from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"must be UTF-8 ({error.reason} at byte {error.start})", where=path
        ) from None


def canonical_json(data: Any) -> bytes:
    """Serialise for hashing: sorted keys, no white space, UTF-8, finite numbers only.

    >>> canonical_json({"b": 1, "a": [1.5, None]})
    b'{"a":[1.5,null],"b":1}'
    """
    return json.dumps(
        data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def write_json(path: Path, data: Any) -> None:
    """Write an indented JSON document beside `path`, then rename it into place."""
    write_bytes(
        path, (json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    )


def write_record(path: Path, record: BaseModel) -> None:
    """Write a record as JSON, leaving out fields that hold their empty default."""
    write_json(path, record.model_dump(mode="json", exclude_none=True))


def link_or_copy(source: Path | str, target: Path | str) -> None:
    """Link a file, or copy it where links are not to be had: another disk, another owner."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path` so that a reader sees the old file or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
