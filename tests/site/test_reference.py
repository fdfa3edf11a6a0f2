"""The site names everything public, and every example has what the gallery needs."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

import hogwild

ROOT = Path(__file__).parents[2]
NAMED = set(re.findall(r"^   (hogwild\.[\w.]+)$", (ROOT / "docs" / "reference" / "api.md").read_text(), re.MULTILINE))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def test_the_reference_has_every_public_name():
    public = {f"hogwild.{name}" for name in hogwild.__all__ if name != "__version__"}
    assert public - NAMED == set(), "docs/reference/api.md lacks them"
    assert {name for name in NAMED if name.count(".") == 1} - public == set(), "not public any more"


@pytest.mark.parametrize("module", hogwild._MODULES)
def test_the_reference_has_every_public_name_of_a_module(module):
    found = importlib.import_module(f"hogwild.{module}")
    names = getattr(found, "__all__", None) or [
        name
        for name, each in vars(found).items()
        if getattr(each, "__module__", "") == found.__name__ and name[0] != "_"
    ]
    public = {name for name in names if not name.isupper() and not hasattr(hogwild, name)}
    inner = {
        "delays": {"DelayStream", "check_by_worker", "delayed_workers", "is_seconds", "per_worker"},
        "errors": {"shortened"},
    }
    assert {f"hogwild.{module}.{name}" for name in public - inner.get(module, set())} - NAMED == set()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_begins_with_a_title(example):
    """The gallery takes it from the docstring: a title, a line below it, and a paragraph."""
    lines = (ast.get_docstring(ast.parse(example.read_text())) or "").splitlines()
    assert len(lines) > 3, f"{example.name} needs a docstring with a title, a line of '=' and a paragraph"
    assert set(lines[1]) == {"="}, f"the second line of the docstring of {example.name} is no line of '='"
    assert len(lines[1]) == len(lines[0])
    assert lines[3]
