import ast
from pathlib import Path

import pytest

import scorers

FOLDER = Path(scorers.__file__).parent
MODULES = sorted(FOLDER.glob("*.py"))
# What reads files, clocks, the environment, or draws from an unseeded source.
IMPURE = {"os", "io", "pathlib", "time", "datetime", "random", "logging", "subprocess", "sys"}


def test_all_is_what_the_package_offers():
    offered = {
        name
        for name, value in vars(scorers).items()
        if not name.startswith("_") and not hasattr(value, "__path__") and name not in submodules()
    }
    assert set(scorers.__all__) == offered
    assert sorted(scorers.__all__, key=lambda n: (not n.isupper(), n[0].islower(), n)) == list(
        scorers.__all__
    )


def submodules():
    # `score` and `compare` stand for functions, which shadow nothing: scores.py, compare.py.
    return {path.stem for path in MODULES} - {"compare"}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_no_module_touches_the_world(module):
    tree = ast.parse(module.read_text())
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
        )
    }
    called = {node.func.id for node in ast.walk(tree) if is_plain_call(node)}
    assert not imported & IMPURE
    assert not called & {"open", "print", "input"}


def is_plain_call(node):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def test_the_two_names_of_the_version_agree():
    assert scorers.scoring_version == scorers.SCORING_VERSION == "1.1"
