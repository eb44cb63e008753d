"""Rows that are overwritten in the middle of a fit."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import (
    InputError,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    OnlineSVC,
    OnlineSVR,
    Perceptron,
    Ridge,
    RidgeClassifier,
    _core,
)
from maxmargin.inputs import check_rows, check_targets
from maxmargin.online.base import OnlineMachine
from maxmargin.undisturbed import refuse_changes, undisturbed
from tests.conftest import tall

CHANGES = {
    "NaN": lambda values: values.fill(np.nan),
    "zeros": lambda values: values.fill(0.0),
    "huge": lambda values: values.fill(1e200),
    "infinity": lambda values: values.fill(np.inf),
    "other rows": lambda values: np.copyto(values, 1e3 * np.random.default_rng(1).standard_normal(values.shape)),
}
PASSES = ("scores", "combine", "normal_matrix", "squared_norms", "gram", "gram_block")


class Meddler:
    """Does something when the core is called for the k-th time."""

    def __init__(self, monkeypatch):
        self.n_calls, self.k, self.act = 0, 0, lambda: None
        for name in PASSES:
            monkeypatch.setattr(_core, name, self.counted(getattr(_core, name)))

    def counted(self, function):
        def call(*arguments, **options):
            self.n_calls += 1
            if self.n_calls == self.k:
                self.act()
            return function(*arguments, **options)

        return call

    def at(self, k, act):
        self.n_calls, self.k, self.act = 0, k, act


@pytest.fixture
def meddler(monkeypatch):
    return Meddler(monkeypatch)


def machines():
    tight = {"C": 10.0, "tol": 1e-8}
    return {
        "interior_point": LinearSVC(loss="hinge", solver="interior_point"),
        "dual_cd": LinearSVC(loss="hinge", solver="dual_cd", max_iter=300, **tight),
        "newton": LinearSVC(solver="newton"),
        "newton hinge": LinearSVC(loss="hinge", solver="newton"),
        "proximal_newton": LinearSVC(penalty="l1"),
        "logistic l1": LogisticRegression(penalty="l1"),
        "logistic": LogisticRegression(),
        "hard margin": LinearSVC(C=math.inf),
        "ovr": LinearSVC(loss="hinge", n_threads=1),
        "joint": LinearSVC(loss="hinge", multi_class="crammer_singer", max_iter=300),
        "multinomial": LogisticRegression(),
        "wide": LinearSVC(loss="hinge"),
        "sparse": LinearSVC(loss="hinge"),
        "regression": LinearSVR(epsilon=0.1),
        "regression newton": LinearSVR(loss="squared_epsilon_insensitive", solver="newton"),
    }


def arrays(name):
    """X, the array to overwrite, and y."""
    X, y = tall(*((30, 120) if name == "wide" else (120, 5)))
    if name == "sparse":
        S = sp.csr_array(np.where(np.abs(X) > 0.7, X, 0.0))
        return S, S.data, y
    if name in ("ovr", "joint", "multinomial"):
        return X, X, np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5])
    if name == "hard margin":
        return X, X, (X[:, 0] > 0.0).astype(int)
    return X, X, X[:, 0] + y if name.startswith("regression") else y


@pytest.mark.filterwarnings("ignore")  # of unfinished fits, and of arithmetic with such numbers
@pytest.mark.parametrize("name", machines())
def test_overwritten_rows_end_in_a_clear_error(name, meddler):
    X, values, y = arrays(name)
    good = values.copy()
    machines()[name].fit(X, y)
    n_calls = meddler.n_calls
    assert n_calls > 3
    for change in CHANGES.values():
        for k in sorted({1, 2, n_calls // 3, n_calls // 2, n_calls}):
            np.copyto(values, good)
            meddler.at(k, lambda change=change: change(values))
            machine = machines()[name]
            with pytest.raises(InputError, match=r"X was changed while it was being fitted|X, .*, is too large"):
                machine.fit(X, y)
            assert not hasattr(machine, "coef_")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("machine", [Perceptron(), OnlineSVC(), OnlineSVR()], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("change", ["NaN", "infinity"])
def test_machines_that_learn_row_by_row_notice_what_they_cannot_learn_from(machine, change, monkeypatch):
    X, y = tall(50, 3)
    real = OnlineMachine._take

    def take(self, *arguments):
        CHANGES[change](X)
        real(self, *arguments)

    monkeypatch.setattr(OnlineMachine, "_take", take)
    with pytest.raises(InputError, match="X was changed while it was being fitted"):
        machine.set_params(max_iter=3).fit(X, y)
    assert not hasattr(machine, "coef_")


@pytest.mark.parametrize("machine", [Ridge(), RidgeClassifier()], ids=lambda m: type(m).__name__)
def test_least_squares_notice_it_too(machine, monkeypatch):
    X, y = tall(50, 3)
    real = type(machine)._find

    def find(self, rows, *rest):
        X.fill(np.nan)
        return real(self, rows, *rest)

    monkeypatch.setattr(type(machine), "_find", find)
    with pytest.raises(InputError, match="X was changed while it was being fitted"):
        machine.fit(X, y)


def test_targets_are_copied():
    y = np.arange(3.0)
    target = check_targets(y, 3)
    y.fill(np.nan)
    assert target.tolist() == [0.0, 1.0, 2.0]


# --- the digest -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (3000, 100)])
def test_every_single_change_is_noticed(dtype, shape, instruction_set):
    rows = check_rows(np.random.default_rng(0).standard_normal(shape).astype(dtype))
    X = rows.X
    X0, n = X.copy(), X.size
    for place in {0, n // 2, n - 1}:
        assert rows.unchanged(2)
        X.flat[place] = np.nextafter(X.flat[place], dtype(9.0))
        assert not rows.unchanged(1)
        np.copyto(X, X0)
    if n > 1:
        X.flat[[0, n - 1]] = X.flat[[n - 1, 0]]
        assert not rows.unchanged(2)
        X[...] = X0[::-1]
        assert not rows.unchanged(2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(4096, 16), (1000, 10), (64, 2)])
def test_signs_and_powers_of_two_count(dtype, shape):
    rows = check_rows(np.random.default_rng(0).standard_normal(shape).astype(dtype))
    X, X0 = rows.X, rows.X.copy()
    for factor in (-1.0, 2.0, 16.0, 0.5):
        for part in (slice(None), slice(0, len(X) // 2)):
            X[part] *= dtype(factor)
            assert not rows.unchanged(1)
            np.copyto(X, X0)
    X[:, 0] *= dtype(-1.0)
    assert not rows.unchanged(2)


def test_rows_that_nobody_looked_at_count_as_unchanged():
    X = np.ones((2, 2))
    rows = _core.Rows.dense(X)
    X.fill(2.0)
    assert rows.unchanged(1)


def test_errors_about_other_things_stay_what_they_are():
    rows = check_rows(np.ones((2, 2)))
    X = rows.X
    for error in (ZeroDivisionError("zero"), ValueError("value"), KeyError("key"), InputError("input")):
        with pytest.raises(type(error)) as found, undisturbed(rows):
            raise error
        assert found.value is error
    X.fill(0.0)
    with pytest.raises(InputError, match="X was changed") as changed, undisturbed(rows):
        _ = 1.0 / X.item(0)
    assert isinstance(changed.value.__cause__, ZeroDivisionError)
    with pytest.raises(InputError, match="X was changed"), undisturbed(rows):
        pass
    for error in (InputError("input"), KeyboardInterrupt()):
        with pytest.raises(type(error)) as found, undisturbed(rows):
            raise error
        assert found.value is error
    with pytest.raises(InputError, match="X was changed"):
        refuse_changes(rows)
