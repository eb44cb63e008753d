"""Files to run commands on."""

import numpy as np
import pytest
from typer.testing import CliRunner

from maxmargin.cli import app
from tests.conftest import tall


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """Run a command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments, code=0):
        result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result

    return invoke


def csv_text(n=80, d=3, labels=("ham", "spam"), seed=0):
    X, y = tall(n, d, seed=seed) if seed else tall(n, d)
    names = [f"f{j}" for j in range(d)]
    rows = [",".join([*names, "label"])]
    rows += [",".join([*(repr(float(v)) for v in x), labels[int(s > 0)]]) for x, s in zip(X, y, strict=True)]
    return "\n".join(rows) + "\n"


@pytest.fixture
def spam(tmp_path):
    path = tmp_path / "spam.csv"
    path.write_text(csv_text())
    return path


@pytest.fixture
def svm(tmp_path):
    X, y = tall(80, 3)
    path = tmp_path / "rows.svm"
    lines = [
        f"{int(s):+d} " + " ".join(f"{j + 1}:{float(v)!r}" for j, v in enumerate(x)) for x, s in zip(X, y, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    assert np.isfinite(X).all()
    return path
