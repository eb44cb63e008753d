"""make_kernel: names, functions, and gamma by name."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from maxmargin import InputError
from maxmargin.kernels import Callable, Gaussian, Linear, Polynomial, Precomputed, Sigmoid, make_kernel


def test_names():
    assert make_kernel("linear") == Linear()
    assert make_kernel("precomputed") == Precomputed()
    assert make_kernel("rbf", gamma=2) == Gaussian(2.0)
    assert make_kernel("poly", gamma=0.5) == Polynomial(0.5, 0.0, 3)
    assert make_kernel("poly", gamma=0.5, coef0=1.0, degree=2) == Polynomial(0.5, 1.0, 2)
    assert make_kernel("sigmoid", gamma=0.5, coef0=-1.0) == Sigmoid(0.5, -1.0)


def test_kernels_and_functions():
    kernel = Gaussian(3.0)
    assert make_kernel(kernel, gamma=7.0) is kernel
    made = make_kernel(np.dot, kernel_params={"out": None})
    assert made == Callable(np.dot, {"out": None})


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, np.float32])
def test_gamma_by_name_is_scikit_learns(layout):
    X = np.random.default_rng(0).standard_normal((20, 4)).round(1) * 3.0 + 1.0
    y = X[:, 0] > 1.0
    for gamma in ("scale", "auto"):
        theirs = SVC(gamma=gamma).fit(layout(X), y)._gamma
        assert make_kernel("rbf", gamma=gamma, X=layout(X)).gamma == pytest.approx(theirs, rel=1e-6)
    assert make_kernel("rbf", gamma=None, X=X).gamma == 0.25


def test_gamma_of_a_constant_is_one():
    for value in (0.0, 0.1, 1e9):
        assert make_kernel("rbf", X=np.full((7, 2), value)).gamma == 1.0


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_gamma_takes_weights_as_repetitions(layout):
    rng = np.random.default_rng(0)
    X, weight = rng.standard_normal((20, 4)), rng.integers(0, 4, 20)
    weighted = make_kernel("rbf", X=layout(X), sample_weight=weight).gamma
    repeated = make_kernel("rbf", X=layout(np.repeat(X, weight, axis=0))).gamma
    assert weighted == pytest.approx(repeated, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "gauss"}, "one of linear, poly, rbf, sigmoid, precomputed.*got 'gauss'"),
        ({"kernel": 3}, "got 3"),
        ({"kernel": Gaussian}, r"as in Gaussian\(\.\.\.\), got the class"),
        ({"kernel": "rbf"}, "pass X, or give gamma as a number"),
        ({"kernel": "rbf", "gamma": "large"}, "gamma must be 'scale', 'auto' or a number"),
        ({"kernel": "rbf", "gamma": 0.0}, "gamma must be a finite number greater than 0"),
        ({"kernel": "rbf", "gamma": True}, "gamma must be"),
        ({"kernel": "rbf", "gamma": 1.0, "kernel_params": {"a": 1}}, "keywords for a callable"),
        ({"kernel": "rbf", "X": [[1e200], [0.0]]}, "variance of X overflows"),
        ({"kernel": "poly", "gamma": 1.0, "degree": "two"}, "degree"),
    ],
)
def test_errors(options, message):
    with pytest.raises(InputError, match=message):
        make_kernel(options.pop("kernel"), **options)
