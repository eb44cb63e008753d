"""svm_path and cover_C: solutions over C, every one with its proof."""

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin._core as _core
from maxmargin import LinearSVC, LogisticRegression, Status, cover_C, svm_path
from maxmargin.certificates import Outcome
from maxmargin.selection.path import worst_between
from maxmargin.solvers.chord import Chord
from tests.conftest import tall
from tests.oracles import Form

CS = [1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0]
KINDS = {
    "hinge": {"loss": "hinge"},
    "squared_hinge": {"loss": "squared_hinge"},
    "power": {"loss": 1.5},
    "logistic": {"loss": "logistic"},
    "l1": {"penalty": "l1"},
    "logistic-l1": {"loss": "logistic", "penalty": "l1"},
}
FORMS = {
    "hinge": Form("slack", 1.0),
    "squared_hinge": Form("slack", 2.0),
    "power": Form("slack", 1.5),
    "logistic": Form("logistic"),
}


def single(C, loss="squared_hinge", **options):
    machine = LogisticRegression(C=C, **options) if loss == "logistic" else LinearSVC(C=C, loss=loss, **options)
    return machine.set_params(tol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sparse", [False, True])
def test_every_point_is_certified_and_equals_a_single_fit(kind, sparse):
    X, y = tall(150, 5, seed=1)
    X = sp.csr_array(np.where(np.abs(X) < 0.5, 0.0, X)) if sparse else X
    path = svm_path(X, y, CS, tol=1e-9, **KINDS[kind])
    assert len(path) == len(CS)
    assert path.coefs.shape == (len(CS), 5)
    assert path.gaps.max() <= 1e-9
    for k, C in enumerate(CS):
        assert path.certificates[k].verify(X, y)
        assert path.certificates[k].C == C
        assert path.solutions[k].status is Status.CONVERGED
        one = single(C, **KINDS[kind]).fit(X, y)
        assert path.solutions[k].primal == pytest.approx(one.solution_.primal, rel=1e-8)
        np.testing.assert_allclose(path.coefs[k], one.coef_[0], rtol=1e-2, atol=2e-4 * np.abs(one.coef_).max() + 1e-9)


@pytest.mark.parametrize("kind", ["hinge", "squared_hinge", "logistic"])
def test_many_rows_and_close_neighbours(kind):
    X, y = tall(6000, 10, seed=1)
    path = svm_path(X, y, np.geomspace(0.01, 10.0, 12), **KINDS[kind])
    assert path.gaps.max() <= 1e-6
    assert all(certificate.verify(X, y) for certificate in path.certificates)
    # The penalty grows with C, the loss falls.
    penalty = 0.5 * (path.coefs**2).sum(axis=1)
    loss = (np.array([s.primal for s in path.solutions]) - penalty) / path.Cs
    slack = 1e-5 * np.array([s.primal for s in path.solutions])[1:]
    assert np.all(np.diff(penalty) >= -slack)
    assert np.all(np.diff(loss) * path.Cs[1:] <= slack)


def test_values_are_sorted_and_each_once():
    X, y = tall(50, 3)
    path = svm_path(X, y, [10.0, 0.1, 1.0, 0.1])
    assert path.Cs.tolist() == [0.1, 1.0, 10.0]
    assert svm_path(X, y, 2.0).Cs.tolist() == [2.0]
    assert "3 values of C from 0.1 to 10" in repr(path)


@pytest.mark.parametrize("Cs", [[], [0.0], [1.0, -1.0], [np.inf], [np.nan], ["a"], [None], [True], "abc"])
def test_bad_values_raise(Cs):
    with pytest.raises(ValueError, match="C"):
        svm_path(*tall(50, 3), Cs)


PATH_ERRORS = [
    ({"tol": 0.0}, "tol must be"),
    ({"loss": "epsilon_insensitive"}, "loss must be"),
    ({"loss": "hinge", "penalty": "l1"}, "penalty='l1' goes with"),
    ({"n_threads": 0}, "n_threads must be"),
    ({"max_seconds": -1.0}, "seconds"),
    ({"class_weight": "heavy"}, "class_weight"),
]


@pytest.mark.parametrize(("options", "message"), PATH_ERRORS)
def test_bad_options_raise(options, message):
    with pytest.raises(ValueError, match=message):
        svm_path(*tall(50, 3), [1.0], **options)


def test_three_classes_raise():
    with pytest.raises(ValueError, match="two classes are needed"):
        svm_path([[0.0], [1.0], [2.0]], [0, 1, 2], [1.0])


def test_weights_and_no_bias():
    X, y = tall(120, 4)
    weight = np.random.default_rng(0).uniform(0.0, 2.0, len(y))
    options = {"loss": "hinge", "class_weight": {1: 2.0}, "fit_intercept": False}
    path = svm_path(X, y, [0.1, 1.0], sample_weight=weight, **options)
    assert all(certificate.verify(X, y, weight) for certificate in path.certificates)
    assert not path.certificates[0].verify(X, y)
    assert path.intercepts.tolist() == [0.0, 0.0]
    one = LinearSVC(**options).fit(X, y, weight)
    assert path.solutions[1].primal == pytest.approx(one.solution_.primal, rel=1e-6)


def test_same_bits_for_any_threads():
    X, y = tall(9000, 8)
    one, two = (svm_path(X, y, [0.01, 0.1, 1.0], loss="hinge", n_threads=t) for t in (1, 2))
    assert one.coefs.tobytes() == two.coefs.tobytes()


class Ending:
    """A watch of the core whose time is over, or whose user loses patience, at a certain pass over the rows."""

    def __init__(self, monkeypatch, at, error):
        self.passes, self.at, self.error = 0, at, error
        for name in ("scores", "combine", "normal_matrix"):
            monkeypatch.setattr(_core, name, self.counted(getattr(_core, name)))

    def counted(self, function):
        def run(*args, **options):
            watches = [a for a in (*args, *options.values()) if isinstance(a, _core.Watch)]
            self.passes += bool(watches)
            if watches and self.passes >= self.at:
                raise self.error
            return function(*args, **options)

        return run


@pytest.mark.parametrize("error", [_core.DeadlineReached("time is over"), KeyboardInterrupt()])
@pytest.mark.parametrize("kind", ["hinge", "squared_hinge", "logistic", "l1"])
@pytest.mark.parametrize("at", [1, 5, 12, 30])
def test_an_end_at_any_pass_loses_no_point(kind, at, error, monkeypatch):
    X, y = tall(600, 12)
    Ending(monkeypatch, at, error)
    path = svm_path(X, y, np.geomspace(1e-3, 1e3, 5), **KINDS[kind])
    monkeypatch.undo()
    assert len(path) == 5
    stopped = Status.INTERRUPTED if isinstance(error, KeyboardInterrupt) else Status.TIME_LIMIT
    if path.status is not Status.CONVERGED:  # the work was over before
        assert path.status is stopped
        assert {s.status for s in path.solutions} <= {Status.CONVERGED, stopped}
        assert path.solutions[-1].status is stopped
    for C, certificate, solution in zip(path.Cs, path.certificates, path.solutions, strict=True):
        verdict = certificate.verify(X, y)
        assert certificate.C == C
        assert verdict.outcome is not Outcome.REJECTED, str(verdict)
        assert bool(verdict) == (solution.gap <= 1e-6)


@pytest.mark.parametrize("kind", ["squared_hinge", "logistic"])
def test_the_chord_looks_at_the_data_where_time_may_be_over(kind, monkeypatch):
    """The first look from a new place happens between two fits."""
    X, y = tall(2000, 5)
    monkeypatch.setattr(Chord, "begin", lambda self, solution: (_ for _ in ()).throw(_core.DeadlineReached()))
    path = svm_path(X, y, [0.1, 1.0], **KINDS[kind])
    assert all(certificate.verify(X, y) for certificate in path.certificates)


@pytest.mark.parametrize("kind", FORMS)
def test_no_time_at_all(kind):
    X, y = tall(300, 6)
    path = svm_path(X, y, [0.1, 1.0, 10.0], max_seconds=1e-9, **KINDS[kind])
    assert path.status is Status.TIME_LIMIT
    assert all(c.verify(X, y).outcome is not Outcome.REJECTED for c in path.certificates)
    cover = cover_C(X, y, 0.1, 10.0, max_seconds=1e-9, **KINDS[kind])
    assert (cover.status, len(cover)) == (Status.TIME_LIMIT, 1)


def test_a_cover_ends_where_it_got_to(monkeypatch):
    X, y = tall(300, 6)
    whole = cover_C(X, y, 0.01, 10.0, epsilon=0.05)
    ending = Ending(monkeypatch, 10**9, _core.DeadlineReached())
    cover_C(X, y, 0.01, 10.0, epsilon=0.05)
    ending.passes, ending.at = 0, ending.passes // 2
    part = cover_C(X, y, 0.01, 10.0, epsilon=0.05)
    monkeypatch.undo()
    assert whole.status is Status.CONVERGED
    assert part.status is Status.TIME_LIMIT
    assert 1 <= len(part) < len(whole)
    assert worst_between(part) <= 0.05
    with pytest.raises(ValueError, match="max_seconds"):
        cover_C(X, y, 0.1, 1.0, max_seconds=-1.0)


def test_the_bounds_contain_rounding():
    """At its own C a solution's bounds are its claims, widened, never narrowed."""
    path = svm_path(*tall(300, 6), [0.1, 1.0, 10.0], loss="hinge")
    for bounds, solution in zip(path.bounds, path.solutions, strict=True):
        assert bounds.upper(bounds.C) >= solution.primal
        assert bounds.lower(bounds.C) <= solution.dual


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("bias", [True, False])
def test_between_neighbours_the_promise_holds(kind, bias):
    rng = np.random.default_rng(0)
    X, y = tall(100, 4, seed=2)
    epsilon = 0.03
    path = cover_C(X, y, 0.01, 20.0, epsilon=epsilon, fit_intercept=bias, **KINDS[kind])
    assert path.Cs[0] == 0.01
    assert path.Cs[-1] == 20.0
    assert worst_between(path) <= epsilon
    assert all(certificate.verify(X, y) for certificate in path.certificates)
    worst = 0.0
    for C in np.exp(rng.uniform(np.log(0.01), np.log(20.0), 12)):
        k = int(np.searchsorted(path.Cs, C))
        cost = np.full(len(y), C)
        mine = min(FORMS[kind].objective(X, y, cost, path.coefs[j], path.intercepts[j]) for j in (k - 1, k))
        best = single(C, fit_intercept=bias, **KINDS[kind]).fit(X, y).solution_
        worst = max(worst, (mine - best.dual) / mine)
        assert mine >= best.dual * (1 - 1e-9)
    assert worst <= epsilon
    assert worst > 0.0


def test_a_smaller_epsilon_needs_more_points():
    X, y = tall(80, 3)
    counts = [len(cover_C(X, y, 0.1, 10.0, epsilon=epsilon)) for epsilon in (0.3, 0.1, 0.03, 0.01)]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_an_interval_of_one_value():
    path = cover_C(*tall(50, 3), 1.0, 1.0)
    assert path.Cs.tolist() == [1.0]
    assert worst_between(path) <= 1e-6


COVER_ERRORS = [
    ((2.0, 1.0), {}, "C_min must not be above C_max"),
    ((0.0, 1.0), {}, "C_min must be"),
    ((1.0, np.inf), {}, "C_max must be"),
    ((1.0, "2"), {}, "C_max must be"),
    ((0.1, 1.0), {"epsilon": 0.0}, "epsilon must be"),
    ((0.1, 1.0), {"epsilon": 0.6}, "epsilon must lie"),
    ((0.1, 1.0), {"epsilon": 1e-7}, "epsilon must lie"),
    ((1e-3, 1e3), {"epsilon": 0.001, "max_points": 5}, "more than 5 values of C"),
    ((0.1, 1.0), {"loss": "huber"}, "loss must be"),
]


@pytest.mark.parametrize(("ends", "options", "message"), COVER_ERRORS)
def test_bad_covers_raise(ends, options, message):
    with pytest.raises(ValueError, match=message):
        cover_C(*tall(50, 3), *ends, **options)


def test_l1_paths_say_nothing_between_their_points():
    path = svm_path(*tall(50, 3), [0.1, 1.0], penalty="l1")
    assert path.bounds == ()
    with pytest.raises(ValueError, match="ℓ1"):
        worst_between(path)


def test_worst_between_finds_wide_gaps():
    X, y = tall(80, 3)
    wide, narrow = svm_path(X, y, [0.01, 10.0]), svm_path(X, y, np.geomspace(0.01, 10.0, 40))
    assert worst_between(wide) > 0.05 > 0.01 > worst_between(narrow) > 0.0
