"""make_kernel: names, functions, and gamma by name."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from maxmargin import InputError
from maxmargin.kernels import (
    Callable,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Product,
    Scaled,
    Sigmoid,
    Sum,
    kernel_of,
    make_kernel,
)


def test_names():
    assert make_kernel("linear") == Linear()
    assert make_kernel("precomputed") == Precomputed()
    assert make_kernel("rbf", gamma=2) == Gaussian(2.0)
    assert make_kernel("laplacian", gamma=2) == Laplacian(2.0)
    assert make_kernel("laplacian", X=[[0.0, 2.0], [2.0, 0.0]]) == Laplacian(0.5)
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
        ({"kernel": "gauss"}, "one of linear, poly, rbf, laplacian, sigmoid, precomputed.*got 'gauss'"),
        ({"kernel": 3}, "got 3"),
        ({"kernel": Gaussian}, r"as in Gaussian\(\.\.\.\), got the class"),
        ({"kernel": "rbf"}, "pass X, or give gamma as a number"),
        ({"kernel": "laplacian"}, "pass X, or give gamma as a number"),
        ({"kernel": Sum}, r"as in Sum\(\.\.\.\), got the class"),
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


STRUCTURES = {
    ("linear",): Linear(),
    ("poly", 0.5, 1.0, 2): Polynomial(0.5, 1.0, 2),
    ("poly", 0.5, -1.0, 2.5): Polynomial(0.5, -1.0, 2.5),
    ("rbf", 0.5): Gaussian(0.5),
    ("laplacian", 0.5): Laplacian(0.5),
    ("sigmoid", 0.5, -1.0): Sigmoid(0.5, -1.0),
    ("precomputed",): Precomputed(),
    ("sum", ("rbf", 0.5), ("linear",)): Sum((Gaussian(0.5), Linear())),
    ("product", ("linear",), ("sum", ("linear",), ("laplacian", 1.0))): Linear() * (Linear() + Laplacian()),
    ("scaled", 2.0, ("product", ("linear",), ("linear",))): Scaled(2.0, Product((Linear(), Linear()))),
}


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_structures(structure):
    kernel = STRUCTURES[structure]
    assert kernel.structure() == structure
    assert kernel_of(structure) == kernel
    assert kernel_of(json.loads(json.dumps(structure))) == kernel
    assert type(kernel_of(structure)) is type(kernel)


def test_structures_of_functions():
    kernel = 2.0 * (Callable(np.dot, {"out": None}) + Linear())
    assert kernel.structure() == ("scaled", 2.0, ("sum", ("callable", np.dot, {"out": None}), ("linear",)))
    assert kernel_of(kernel.structure()) == kernel


def test_structures_are_plain():
    values = [*Gaussian(np.float64(2)).structure(), *Polynomial(np.int64(1), np.float32(0.5), np.int8(2)).structure()]
    assert [type(value) for value in values] == [str, float, str, float, float, int]


def nested(depth):
    structure = ["linear"]
    for _ in range(depth):
        structure = ["sum", structure]
    return structure


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        ((), "the structure of a kernel is its name"),
        ("linear", "as Kernel.structure\\(\\) returns them, got 'linear'"),
        (None, "got None"),
        ((3, 1.0), "got \\(3, 1.0\\)"),
        ((np.ones(2), 1.0), "the structure of a kernel is its name"),
        (("gauss", 1.0), "got \\('gauss', 1.0\\)"),
        (("rbf",), "got \\('rbf',\\)"),
        (("rbf", 1.0, 2.0), "the structure of a kernel is its name"),
        (("rbf", "large"), "gamma must be a finite number greater than 0, got 'large'"),
        (("poly", 1.0, 0.0, -1), "degree must be a number from 0"),
        (("callable", "f", {}), "f must be a function"),
        (("callable", np.dot, 3), "params must be a mapping"),
        (("sum",), "at least one kernel"),
        (("sum", "linear"), "got 'linear'"),
        (("product", ("precomputed",)), "precomputed kernel cannot be part"),
        (("scaled", 2.0), "the structure of a kernel is its name"),
        (("scaled", -2.0, ("linear",)), "factor of a kernel must be a finite number greater than 0, got -2.0"),
        (nested(100_000), "too many sums and products"),
    ],
)
def test_what_is_no_structure(structure, message):
    with pytest.raises(InputError, match=message):
        kernel_of(structure)
