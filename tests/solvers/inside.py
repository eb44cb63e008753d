"""What tests of solvers need from inside the package, each in one line, and small helpers they share."""

import itertools

import numpy as np
import scipy.sparse as sp

from maxmargin import Problem, _core
from maxmargin.runtime import Execution, Watch
from maxmargin.solvers import proximal
from maxmargin.solvers.proximal import ProximalNewton
from tests.conftest import tall

BIASES = {
    "free": {},
    "none": {"fit_intercept": False},
    "penalised": {"penalize_intercept": True, "intercept_scaling": 2.0},
}
MARGIN = ["hinge", "squared_hinge"]
HOW = Execution(1)
TUBE = ["epsilon_insensitive", "squared_epsilon_insensitive"]
SMOOTH = ["squared_hinge", "logistic"]


def dense(problem):
    X = problem.space.X
    return X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)


def late():
    """A watch whose deadline has passed."""
    return Watch(max_seconds=0.0)


class Passing(Watch):
    """A watch whose deadline passes when the test says so."""

    passed = False
    past_deadline = property(lambda self: self.passed)


def cancelled():
    watch = Watch()
    watch.cancel()
    return watch


def asks_to_stop(reports=1):
    """A watch that asks to stop at the given report."""
    seen = []
    return Watch(progress=lambda *_: seen.append(1) or len(seen) >= reports)


def calls(monkeypatch, owner, name, look=lambda out, *given, **options: out):
    """A list that grows by what ``look`` says of every call of ``owner.name``, which works as before."""
    before, seen = getattr(owner, name), []

    def watched(*given, **options):
        out = before(*given, **options)
        seen.append(look(out, *given, **options))
        return out

    monkeypatch.setattr(owner, name, watched)
    return seen


def core_calls(monkeypatch, name, look=lambda out, *given, **options: out):
    return calls(monkeypatch, _core, name, look)


def stops(monkeypatch, error, where, after):
    """One pass of the core ends with this error, as from a deadline or Ctrl-C."""
    core, count = getattr(_core, where), itertools.count()

    def stopped(*given, **options):
        if next(count) == after:
            raise error
        return core(*given, **options)

    monkeypatch.setattr(_core, where, stopped)


DEADLINE = _core.DeadlineReached()


def with_l1(loss="squared_hinge", *, n=80, d=6, C=0.3, seed=0, layout=np.asarray, **options):
    X, y = tall(n, d, seed)
    return Problem.from_arrays(layout(X), y, C=C, loss=loss, penalty="l1", **options)


def slack(problem, w, b):
    """Value, first and second derivative of every row's cost times loss, in −y·score."""
    margin = problem.y * (dense(problem) @ w + b)
    if problem.loss.name == "squared_hinge":
        s = np.maximum(0.0, 1.0 - margin)
        return problem.cost * s * s, 2.0 * problem.cost * s, 2.0 * problem.cost * (s > 0.0)
    p = 1.0 / (1.0 + np.exp(margin))
    return problem.cost * np.logaddexp(0.0, -margin), problem.cost * p, problem.cost * p * (1.0 - p)


def objective(problem, w, b):
    of_bias = 0.5 * (b / problem.bias.value) ** 2 if problem.bias.penalised else 0.0
    return float(np.abs(w).sum() + of_bias + slack(problem, w, b)[0].sum())


class Step:
    """The inner steps of one run for the l1 penalty, one name each."""

    def __init__(self, problem, w=None, b=0.0, **options):
        self.run = proximal._Proximal(ProximalNewton(n_threads=1, **options), problem, Watch())
        if w is not None:
            self.run._move_to(np.array(w, dtype=float), b)
        self.rows = problem.space

    @property
    def n_iter(self):
        return self.run.run.n_iter

    @property
    def best(self):
        return self.run.run.best

    def move_to(self, w, b):
        self.run._move_to(w, b)

    def certify(self):
        """The certified point, and the slope of every column."""
        return self.run._certify()

    def working_set(self):
        return self.run._working_set(self.run._certify()[1])

    def columns(self, chosen):
        return self.run._columns(chosen)

    def improve(self, enough, chosen=slice(None)):
        self.run._improve(chosen, enough)

    def direction(self, w, enough):
        return self.run._direction(self.rows, w, enough)

    def length(self, w, dw, db, d_scores, promised):
        return self.run._step_length(w, dw, db, d_scores, promised)


def l1_setting(monkeypatch, name, value):
    monkeypatch.setattr(proximal, name, value)


def l1_jump(H, g, price, v, step, product):
    return proximal._towards_the_exact_solution(H, g, price, v, step, product)


def l1_jump_is(monkeypatch, jump):
    """This instead of the jump to the exact solution; its first five arguments are H, g, price, v and the step."""
    monkeypatch.setattr(proximal, "_towards_the_exact_solution", jump)


def l1_step_is(monkeypatch, direction=None, length=None):
    """Fixed answers for the direction (promise, weights, bias) and the length of a step."""
    if direction is not None:
        monkeypatch.setattr(proximal._Proximal, "_direction", lambda *_: direction())
    if length is not None:
        monkeypatch.setattr(proximal._Proximal, "_step_length", lambda *_: length)


def with_corners(loss="hinge", *, n=60, d=4, seed=0, C=1.0, bias="free", weight=True, layout=np.asarray):
    """A problem with a box, rows without cost among its rows."""
    X, y = tall(n, d, seed)
    weights = np.random.default_rng(1).choice([0.0, 1.0, 2.5], n) if weight else None
    options = {"C": C, "loss": loss, "sample_weight": weights, **BIASES[bias]}
    if loss in TUBE:
        return Problem.regression(layout(X), 2.0 * X[:, 0] + y, epsilon=0.3, **options)
    return Problem.from_arrays(layout(X), y, **options)


def as_if_so_many_numbers(monkeypatch, problem, nnz):
    """As if X held so many numbers."""
    monkeypatch.setattr(problem.space, "nnz", nnz)


def epochs_of(found):
    return [record.iteration for record in found.history.records if record.phase == "coordinate descent"]


def gaps_of(found):
    return [record.gap for record in found.history.records if record.phase == "coordinate descent"]


def descents_of(monkeypatch):
    """(rows, workers) of every descent that was begun."""
    return core_calls(monkeypatch, "Descent", lambda out, sign, *_, workers, **__: (len(sign), workers))


def orthogonal_rows(loss="hinge", n=60, C=1.0):
    """Sparse rows in many more dimensions than rows."""
    X = sp.random_array((n, 3000), density=0.01, rng=np.random.default_rng(0), format="csr")
    return Problem.from_arrays(X, np.arange(n) % 2, C=C, loss=loss)
