"""The recipes of CONTRIBUTING.md are code, and they work."""

import re
from pathlib import Path

import pytest

from maxmargin.certificates.losses import ARITHMETIC
from maxmargin.losses import LOSSES
from maxmargin.solvers import SOLVERS

TEXT = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
CHAPTERS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", TEXT, re.M | re.S))
RECIPES = [title for title, body in CHAPTERS.items() if "```python" in body]


@pytest.fixture
def registries():
    """What recipes register is forgotten afterwards."""
    tables = (LOSSES, ARITHMETIC, SOLVERS)
    before = [dict(table) for table in tables]
    yield
    for table, known in zip(tables, before, strict=True):
        table.clear()
        table.update(known)


def test_losses_solvers_and_kinds_of_rows_have_a_recipe():
    assert RECIPES == ["Add a loss", "Add a solver", "Add a kind of rows"]


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_works(title, registries):
    blocks = re.findall(r"```python\n(.*?)```", CHAPTERS[title], re.S)
    assert "assert" in blocks[-1]
    names = {"__name__": "recipe"}
    for block in blocks:
        exec(compile(block, f"CONTRIBUTING.md, {title}", "exec"), names)


def test_what_a_recipe_says_can_fail(registries):
    """The last line of the first recipe notices a loss whose minimiser is another one."""
    source = "\n".join(re.findall(r"```python\n(.*?)```", CHAPTERS["Add a loss"], re.S))
    assert "C=2.0" in source
    with pytest.raises(AssertionError):
        exec(source.replace("C=2.0", "C=3.0"), {"__name__": "recipe"})
