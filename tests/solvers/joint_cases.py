"""Joint problems of several classes, and the names inside the joint solvers that tests need."""

import math

import numpy as np

import maxmargin._core as core
from maxmargin.inputs import LabelledRows
from maxmargin.runtime import Execution, Watch
from maxmargin.solvers import joint as machine
from maxmargin.solvers import joint_point
from maxmargin.solvers.joint_second_order import JointSecondOrder
from maxmargin.solvers.run import Run
from maxmargin.space import Bias
from tests.oracles import Form

LOSSES = ("crammer_singer", "multinomial")
BIASES = {"free": Bias(1.0, False), "none": Bias(0.0, False), "penalised": Bias(2.0, True)}

make_problem, certified, feasible_simplex = machine.joint_problem, joint_point.certified, joint_point.feasible_simplex
make_solver, JointMachine = machine.make_joint_solver, machine.JointMachine
rows_of, labels_of = (lambda problem: problem.space.X), (lambda problem: problem.label)
PLAIN = Execution(1)


def scores_of(problem, W, b):
    """By the code under test."""
    return problem.space.scores_of_all(W, PLAIN) + b


def combine(problem, alpha):
    """By the code under test."""
    return problem.space.combine_all(alpha, PLAIN)


def joint_run(problem, *, watch=None, tol=1e-9, **settings):
    """What a call of solve shares; ``tol`` is the gap that it steers for."""
    made = Run(JointMachine(tol=tol, n_threads=1, **settings), problem, watch or Watch(), better=machine.nearer)
    made.aim = tol
    return made


def second_order(problem, *, max_steps=500, direct=None, **given):
    """Newton's method alone, and its run; ``direct`` chooses how its equations are solved."""
    method = JointSecondOrder(joint_run(problem, **given), max_steps=max_steps)
    method.direct = method.direct if direct is None else direct
    return method


run_of = lambda method: method.work  # noqa: E731


def joint(X, label, loss="crammer_singer", bias="free", *, C=1.0, weight=None):
    """A checked problem; every class must occur in ``label``."""
    return make_problem(LabelledRows.from_arrays(X, label, weight), C=C, loss=loss, bias=BIASES[bias])


def blobs(n=40, d=3, k=3, seed=0, spread=1.0):
    """Overlapping classes 0 … k − 1, the first k rows one of each."""
    rng = np.random.default_rng(seed)
    label = np.r_[np.arange(k), rng.integers(0, k, n - k)]
    return spread * rng.standard_normal((k, d))[label] + rng.standard_normal((n, d)), label


def drawn(loss="crammer_singer", bias="free", *, n=40, d=3, k=3, seed=0, C=1.0):
    """A problem with costs of different size, two of them 0."""
    weight = np.random.default_rng(seed + 100).uniform(0.2, 2.0, n)
    weight[k : k + 2] = 0.0
    return joint(*blobs(n, d, k, seed), loss, bias, C=C, weight=weight)


def feasible(problem, seed=0):
    """Multipliers inside the simplex of every row, those of a class not balanced."""
    rng = np.random.default_rng(seed)
    n, k = problem.shape
    given = rng.dirichlet(np.ones(k), n) * problem.cost[:, None]
    given[np.arange(n), labels_of(problem)] = 0.0
    alpha = -given
    alpha[np.arange(n), labels_of(problem)] = given.sum(axis=1)
    return alpha


def phases(solution):
    """The phases of a fit, each once, in the order they began."""
    return list(dict.fromkeys(record.phase for record in solution.history.records))


def threads_of_exact_products(monkeypatch):
    """The number of threads of every product of twice the working precision from now on."""
    threads = []
    for name in ("compensated_scores", "compensated_combine"):
        product = getattr(core, name)
        spied = lambda *given, product=product: threads.append(given[-1]) or product(*given)  # noqa: E731
        monkeypatch.setattr(core, name, spied)
    return threads


def loss_of_row(loss, f, y):
    """The loss of one row's scores, in words of one syllable."""
    if loss == "multinomial":
        top = max(f)
        return math.log(math.fsum(math.exp(v - top) for v in f)) + top - f[y]
    return max(v + (m != y) for m, v in enumerate(f)) - f[y]


def primal_of(problem, W, b):
    """The objective, row by row."""
    X, bias = rows_of(problem), problem.bias
    total = 0.5 * math.fsum(w * w for w in np.ravel(W))
    total += 0.5 * math.fsum((v / bias.value) ** 2 for v in b) if bias.penalised else 0.0
    for i, y in enumerate(labels_of(problem)):
        x = X[[i]].toarray()[0] if hasattr(X, "toarray") else X[i]
        total += problem.cost[i] * loss_of_row(problem.loss, W @ x + b, y)
    return total


def dual_of(problem, alpha):
    """The dual objective of feasible multipliers, row by row."""
    X, bias, total = rows_of(problem), problem.bias, 0.0
    for i, y in enumerate(labels_of(problem)):
        if problem.loss == "crammer_singer":
            total += alpha[i, y]
        elif problem.cost[i] > 0.0:
            away = (problem.cost[i] * (np.arange(len(alpha[i])) == y) - alpha[i]) / problem.cost[i]
            total -= problem.cost[i] * sum(p * math.log(p) for p in away if p > 0.0)
    for column in alpha.T:
        total -= 0.5 * float(np.sum((X.T @ column) ** 2))
        total -= 0.5 * (bias.value * math.fsum(column)) ** 2 if bias.penalised else 0.0
    return total


def assert_feasible(problem, alpha, atol=1e-13):
    """Multipliers of a row sum to zero, only its own class's is positive and at most its cost; classes balance."""
    n, k = alpha.shape
    others = np.arange(k) != labels_of(problem)[:, None]
    assert np.abs(alpha.sum(axis=1)).max() <= atol
    assert alpha[others].max() <= 0.0
    assert (alpha[~others] <= problem.cost * (1.0 + 1e-15) + 1e-300).all()
    if problem.bias.free:
        assert np.abs(alpha.sum(axis=0)).max() <= atol * n


def optimum(problem):
    """Clarabel's objective, weights and biases; a penalised bias is a column like others."""
    X, y, bias = rows_of(problem), labels_of(problem).astype(int), problem.bias
    X = X.toarray() if hasattr(X, "toarray") else X
    if bias.penalised:
        X = np.column_stack([X, np.full(len(X), bias.value)])
    best = Form(problem.loss).solve(X, y, problem.cost, bias=bias.free)
    W, b = (best.W[:, :-1], bias.value * best.W[:, -1]) if bias.penalised else (best.W, best.b)
    return best.value, W, b
