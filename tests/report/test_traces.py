"""Pictures of a path."""

import numpy as np
import pytest

from maxmargin import OjaRule, Perceptron, PocketPerceptron
from maxmargin.report import animate, mistakes_figure
from tests.online.oracles import mixed, separable


@pytest.fixture(scope="module")
def fitted():
    X, y = mixed(np.random.default_rng(0), 60, 2)
    return PocketPerceptron(trace=True, max_iter=3).fit(X, y), X, y


@pytest.mark.parametrize("kind", ["gif", "html"])
def test_a_path_becomes_a_moving_picture(fitted, kind, tmp_path):
    machine, X, y = fitted
    path = animate(machine, X, y, tmp_path / f"path.{kind}", frames=3)
    content = path.read_bytes()
    if kind == "gif":
        from PIL import Image

        with Image.open(path) as picture:
            assert picture.n_frames == 3
    else:
        assert b"data:image/png;base64" in content
        assert b"http" not in content  # nothing is fetched
        assert content.count(b'"iVBORw0KGgo') == 3  # PNG


def test_what_cannot_be_drawn_is_said(fitted, tmp_path):
    machine, X, y = fitted
    with pytest.raises(ValueError, match=r"\.gif or \.html"):
        animate(machine, X, y, tmp_path / "path.mp4")
    with pytest.raises(ValueError, match="frames must be"):
        animate(machine, X, y, tmp_path / "path.gif", frames=0)
    with pytest.raises(ValueError, match="two columns"):
        animate(machine, X[:, :1], y, tmp_path / "path.gif")
    with pytest.raises(ValueError, match="trace=True"):
        animate(Perceptron(tol=None, max_iter=1).fit(X, y), X, y, tmp_path / "path.gif")
    wide = Perceptron(trace=True, tol=None, max_iter=1).fit(*mixed(np.random.default_rng(1), 30, 3))
    with pytest.raises(ValueError, match="in the plane"):
        animate(wide, X, y, tmp_path / "path.gif")
    with pytest.raises(ValueError, match="in the plane"):
        animate(OjaRule(trace=True).fit(X), X, y, tmp_path / "path.gif")
    assert not list(tmp_path.iterdir())


def test_mistakes_against_passes():
    X, y = separable(np.random.default_rng(2), 60, 2)
    machine = Perceptron(margin=0.1, n_iter_no_change=None).fit(X, y)
    figure = mistakes_figure(machine)
    assert figure.svg.startswith(b"<?xml")
    assert str(machine.mistakes_per_pass_[0]) in figure.alt
    assert f"{machine.n_mistakes_} mistakes in {machine.n_iter_} passes, 0 in the last one" in figure.caption
