from __future__ import annotations

import numpy as np
import pytest

from maxmargin import _core


@pytest.fixture(params=["baseline", "avx2"])
def instruction_set(request):
    """Runs a test once per instruction set this machine has."""
    before = _core.info()["instruction_set"]
    try:
        _core.use_isa(request.param)
    except ValueError as error:
        pytest.skip(str(error))
    yield request.param
    _core.use_isa(before)


def tall(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes: standard normal rows, noisy linear labels."""
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((n, d)), rng.standard_normal(d)
    return X, np.where(X @ w + 1.0 + 2.0 * rng.standard_normal(n) > 0, 1, -1)


@pytest.fixture
def overlapping():
    return tall(300, 6)
