"""The dual form: the same mistakes in the same order as the primal one."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Adaline, AdalineRegressor, ConvergenceWarning, KernelPerceptron, Perceptron
from tests.online.oracles import mixed, separable


@pytest.mark.parametrize("seed", range(20))
def test_linear_kernel_makes_the_same_mistakes_bit_for_bit(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-8, 9, (40, 4)).astype(float), np.where(rng.random(40) < 0.5, 1, -1)
    y[:2] = [1, -1]
    settings = {"bias": "radius", "max_iter": 5, "tol": None, "random_state": seed}
    dual = KernelPerceptron(kernel="linear", trace=True, **settings).fit(X, y)
    primal = Perceptron(trace=True, **settings).fit(X, y)
    assert np.array_equal(dual.trace_.seen, primal.trace_.seen)
    assert np.array_equal(dual.dual_coef_ @ dual.support_vectors_, primal.coef_)
    assert np.array_equal(dual.intercept_, primal.intercept_)
    assert dual.mistakes_per_pass_.tolist() == primal.mistakes_per_pass_.tolist()
    assert dual.alpha_.sum() == dual.n_mistakes_


def test_embedding_strength_counts_the_corrections_of_a_row():
    X, y = mixed(np.random.default_rng(1), 40, 2)
    with pytest.warns(ConvergenceWarning):
        machine = KernelPerceptron(kernel="poly", degree=2, max_iter=20).fit(X, y)
    assert np.array_equal(machine.alpha_, np.round(machine.alpha_))
    assert np.array_equal(np.flatnonzero(machine.alpha_), machine.support_)
    assert machine.alpha_.sum() == machine.n_updates_


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
def test_precomputed_sparse_and_callable_agree(kernel):
    X, y = separable(np.random.default_rng(2), 40, 3, gap=0.2)
    machine = KernelPerceptron(kernel=kernel, gamma=0.3, max_iter=8, tol=None).fit(X, y)
    gram = machine.kernel_.gram(X)
    options = {"max_iter": 8, "tol": None}
    given = KernelPerceptron(kernel="precomputed", **options).fit(gram, y)
    sparse = KernelPerceptron(kernel=kernel, gamma=0.3, **options).fit(sp.csr_array(X), y)
    called = KernelPerceptron(kernel=machine.kernel_.block, **options).fit(X, y)
    scores = machine.decision_function(X)
    np.testing.assert_allclose(given.decision_function(gram), scores)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_array(X)), scores)
    np.testing.assert_allclose(called.decision_function(X), scores)


def test_gaussian_kernel_learns_what_no_line_can():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 2))
    y = (np.square(X).sum(axis=1) > 1).astype(int) + 2 * (X[:, 0] > 2)
    machine = KernelPerceptron(gamma=2.0, n_iter_no_change=None).fit(X, y)
    assert machine.score(X, y) == 1.0
    assert machine.alpha_.shape == (len(set(y)), 200)


@pytest.mark.parametrize("kind", [Adaline, AdalineRegressor])
def test_widrow_and_hoffs_rule_gives_the_same_function_in_both_forms(kind):
    X, y = mixed(np.random.default_rng(4), 50, 3)
    settings = {"max_iter": 4, "schedule": "inverse", "t0": 50.0, "random_state": 5}
    primal, dual = (kind(form=form, **settings).fit(X, y) for form in ("primal", "dual"))
    np.testing.assert_allclose(dual.coef_, primal.coef_, rtol=1e-10)
    np.testing.assert_allclose(dual.intercept_, primal.intercept_, rtol=1e-10)
    np.testing.assert_allclose(dual.dual_coef_ @ X, np.atleast_2d(primal.coef_), rtol=1e-10)
    for options in ({"average": True}, {"rho": 0.1}, {"batch_size": 3}):
        with pytest.raises(ValueError, match="form='dual' has no"):
            kind(form="dual", **options).fit(X, y)
    assert not hasattr(dual, "partial_fit")
