"""Every machine of the room under scikit-learn's checks, and what they all share."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin as mm

MACHINES = [
    mm.Perceptron(max_iter=50),
    mm.Perceptron(average=True, margin=0.1, batch_size=4, max_iter=50),
    mm.ExtendedPerceptron(),
    mm.PocketPerceptron(),
    mm.PocketPerceptron(rule="run"),
    mm.VotedPerceptron(),
    mm.MulticlassPerceptron(max_iter=50),
    mm.KernelPerceptron(max_iter=50),
    mm.Relaxation(max_iter=50),
    mm.BalancedWinnow(max_iter=50),
    mm.Winnow(max_iter=20),
    mm.OnlineSVC(),
    mm.OnlineSVC(loss="logistic", average=True),
    mm.OnlineSVC(loss="exponential"),
    mm.OnlineSVR(),
    mm.OnlineSVR(loss="squared_tube", penalty="l1", eta0=0.01),
    mm.Adaline(),
    mm.Adaline(form="dual"),
    mm.AdalineRegressor(),
    mm.HebbRule(),
    mm.OjaRule(),
]
CLASSIFIERS = [machine for machine in MACHINES if hasattr(machine, "decision_function")]


@pytest.mark.filterwarnings("ignore::maxmargin.ConvergenceWarning")
@parametrize_with_checks(MACHINES)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def rows_for(machine, n=40, d=4):
    rng = np.random.default_rng(0)
    X = rng.random((n, d)) + (np.arange(n) % 2)[:, None] * [0.5, 0.0, -0.3, 0.0]
    return np.maximum(X, 0.0), np.arange(n) % 2


@pytest.mark.filterwarnings("ignore::maxmargin.ConvergenceWarning")
@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: str(m)[:40])
def test_counts_say_what_was_done(machine):
    X, y = rows_for(machine)
    machine = clone(machine).fit(X, y)
    assert machine.t_ == len(y) * machine.n_iter_
    assert machine.updates_per_pass_.sum() == machine.n_updates_
    assert len(machine.updates_per_pass_) == machine.n_iter_
    assert machine.mistakes_per_pass_.sum() == machine.n_mistakes_
    assert "_rows_seen" not in pickle.loads(pickle.dumps(machine)).__dict__


@pytest.mark.filterwarnings("ignore::maxmargin.ConvergenceWarning")
@pytest.mark.parametrize("machine", [m for m in MACHINES if "trace" in m.get_params()], ids=lambda m: str(m)[:40])
def test_the_trace_ends_at_the_last_weights(machine):
    X, y = rows_for(machine)
    plain, traced = clone(machine).fit(X, y), clone(machine).set_params(trace=True).fit(X, y)
    trace = traced.trace_
    assert len(trace) >= 1
    assert (np.diff(trace.seen) > 0).all()
    assert (np.diff(trace.mistakes) >= 0).all()
    assert trace.passes[-1] < traced.n_iter_
    name = next(name for name in ("coef_", "components_", "dual_coef_") if hasattr(plain, name))
    assert np.array_equal(getattr(plain, name), getattr(traced, name))
    own_path = isinstance(machine, mm.PocketPerceptron | mm.VotedPerceptron | mm.KernelPerceptron)
    if not (own_path or getattr(machine, "average", False) or getattr(machine, "rho", 0.0) > 0.0):
        expected = getattr(traced, name) if not isinstance(machine, mm.MulticlassPerceptron) else None
        if expected is not None:
            np.testing.assert_allclose(trace.coef[-1], np.ravel(expected), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::maxmargin.ConvergenceWarning")
@pytest.mark.parametrize("machine", CLASSIFIERS, ids=lambda m: str(m)[:40])
def test_a_score_of_zero_goes_to_the_first_class(machine):
    X, y = rows_for(machine)
    machine = clone(machine).fit(X, np.array(["no", "yes"])[y])
    scores = machine.decision_function(X)
    assert (machine.predict(X) == np.where(scores > 0, "yes", "no")).all()


@pytest.mark.parametrize("machine", [mm.Perceptron(), mm.OnlineSVC(), mm.VotedPerceptron()], ids=str)
def test_ctrl_c_keeps_what_was_learned(machine, monkeypatch):
    X, y = rows_for(machine)
    passes = []
    order = type(machine)._order

    def interrupt(self, n_rows, turn):
        passes.append(turn)
        if len(passes) == 3:
            raise KeyboardInterrupt
        return order(self, n_rows, turn)

    monkeypatch.setattr(type(machine), "_order", interrupt)
    machine.set_params(max_iter=10)
    if "tol" in machine.get_params():
        machine.set_params(tol=None)
    with pytest.raises(KeyboardInterrupt):
        machine.fit(X[::-1] * 0 + np.random.default_rng(0).random(X.shape), y)
    assert machine.n_iter_ == 2
    assert machine.predict(X).shape == y.shape


def test_a_time_limit_ends_a_fit():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((2000, 50)), rng.integers(0, 2, 2000)
    with pytest.warns(mm.ConvergenceWarning, match="max_seconds=0.2 was reached in pass"):
        machine = mm.Perceptron(max_iter=10**9, n_iter_no_change=None, max_seconds=0.2).fit(X, y)
    assert machine.t_ > 0


def test_warm_start_goes_on():
    X, y = rows_for(None)
    once = mm.OnlineSVC(max_iter=6, shuffle=False).fit(X, y)
    twice = mm.OnlineSVC(max_iter=3, shuffle=False, warm_start=True).fit(X, y).fit(X, y)
    assert np.array_equal(once.coef_, twice.coef_)
    with pytest.raises(ValueError, match="warm_start"):
        twice.fit(X[:, :2], y)


@pytest.mark.parametrize("change", [{"average": True}, {"penalty": "l1"}])
def test_nobody_goes_on_with_another_memory(change):
    X, y = rows_for(None)
    machine = mm.OnlineSVR(average=False, warm_start=True).fit(X, y).set_params(**change)
    with pytest.raises(ValueError, match="what it remembers"):
        machine.fit(X, y)
    with pytest.raises(ValueError, match="what it remembers"):
        machine.partial_fit(X, y)
    dual = mm.Adaline(form="dual", warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="belong to the rows of one fit"):
        dual.fit(X, y)


def test_only_machines_that_can_start_anywhere_take_a_start():
    X, y = rows_for(None)
    for machine in (mm.PocketPerceptron(), mm.VotedPerceptron(), mm.BalancedWinnow(), mm.MulticlassPerceptron()):
        with pytest.raises(TypeError, match="coef_init"):
            machine.fit(X, y, coef_init=np.ones(4))
    started = mm.Perceptron(max_iter=1, tol=None).fit(X, y, coef_init=np.ones(4), intercept_init=[2.0])
    assert started.mistake_bound_ is None  # the theorem is about a start at 0


BOUNDED = [mm.PocketPerceptron, mm.VotedPerceptron, mm.KernelPerceptron, mm.MulticlassPerceptron]


@pytest.mark.parametrize("kind", BOUNDED)
def test_the_bound_stands_beside_the_count(kind):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((60, 3))
        y = (X @ [1.0, -1.0, 0.5] + 0.3 > 0).astype(int)
        X += 0.1 * (2 * y - 1)[:, None] * np.array([1.0, -1.0, 0.5])
        machine = kind(max_iter=5000, random_state=seed).fit(X, y)
        assert machine.mistakes_per_pass_[-1] == 0
        assert machine.n_mistakes_ <= machine.mistake_bound_.value
    y[:10] = 1 - y[:10]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mm.ConvergenceWarning)
        mixed = kind(max_iter=5, random_state=0).fit(X, y)
    # A Gaussian kernel separates all rows; the others do not.
    assert (mixed.mistake_bound_ is None) == (kind is not mm.KernelPerceptron)


def test_a_given_radius_has_its_own_bound():
    rng = np.random.default_rng(0)
    X = np.array([3.0, 0.0]) + rng.standard_normal((80, 2))
    y = (X[:, 0] > 3.0).astype(int)
    X[:, 0] += 0.2 * (2 * y - 1)
    for radius in (0.3, 1.0, 20.0):
        machine = mm.Perceptron(bias="radius", radius=radius, max_iter=10**5, n_iter_no_change=None).fit(X, y)
        assert machine.mistakes_per_pass_[-1] == 0
        assert machine.n_mistakes_ <= machine.mistake_bound_.value
