"""The examples run."""

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(path for path in FOLDER.glob("*.py") if path.stem != "worked")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    runpy.run_path(str(path), run_name="__main__")
    out = capsys.readouterr().out
    # The heart disease data are not bundled with anything: without them the example says how to get on.
    assert "verified" in out or "MAXMARGIN_DATA" in out or "reported" in out
