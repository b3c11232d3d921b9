"""What `import cases` offers, and what it does not load."""

import subprocess
import sys

import pytest

import cases
from cases import case, schema

HEAVY = ("pandas", "pyarrow", "duckdb", "pydantic", "torch")


def test_names_are_the_ones_of_their_modules():
    assert cases.Case is case.Case
    for name in set(cases.__all__) - {"Case"}:
        assert getattr(cases, name) is getattr(schema, name)
    assert set(cases.__all__) <= set(dir(cases))


def test_unknown_name_lists_what_there_is():
    with pytest.raises(AttributeError, match="'Truth', it offers Case, Diagnosis"):
        _ = cases.Truth


def test_import_alone_is_light():
    program = f"import sys, cases; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
