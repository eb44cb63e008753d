"""Conjugate gradients: the solution of a dense solve, in as many steps as theory says, and every way to stop."""

import numpy as np
import pytest

from maxmargin.space.conjugate_gradients import conjugate_gradients


def system(eigenvalues, seed=0):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((len(eigenvalues),) * 2))[0]
    H = Q @ np.diag(eigenvalues) @ Q.T
    return 0.5 * (H + H.T), rng.standard_normal(len(eigenvalues))


def solved(H, g, diagonal=None, *, forcing=1e-12, most_steps=500, **options):
    """The answer, and the number of products it took."""
    seen = []
    diagonal = np.diag(H).copy() if diagonal is None else diagonal
    x = conjugate_gradients(
        lambda v: (seen.append(1), H @ v)[1], g, diagonal, forcing=forcing, most_steps=most_steps, **options
    )
    return x, len(seen)


@pytest.mark.parametrize("scale", [np.ones(30), 10.0 ** np.linspace(-6, 6, 30)])
def test_it_solves_what_a_dense_solve_solves(scale):
    H, g = system(np.linspace(1.0, 50.0, 30))
    H, g = H * scale * scale[:, None], g * scale
    before = g.copy()
    x, _ = solved(H, g)
    np.testing.assert_allclose(x * scale, np.linalg.solve(H / scale / scale[:, None], g / scale), rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(g, before)


@pytest.mark.parametrize("distinct", [1, 2, 5])
def test_it_needs_a_step_for_each_distinct_eigenvalue(distinct):
    H, g = system(np.repeat(np.linspace(1.0, 9.0, distinct), 12))
    x, steps = solved(H, g, np.ones(len(g)), forcing=1e-10)
    assert steps == distinct
    np.testing.assert_allclose(H @ x, g, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_each_iterate_is_the_best_of_its_krylov_space(steps):
    H, g = system(np.geomspace(1.0, 1e3, 20))
    diagonal = np.diag(H)
    x, _ = solved(H, g, forcing=0.0, most_steps=steps)
    K = [g / diagonal]
    for _ in range(steps - 1):
        K.append((H @ K[-1]) / diagonal)
    K = np.linalg.qr(np.column_stack(K))[0]
    np.testing.assert_allclose(x, K @ np.linalg.solve(K.T @ H @ K, K.T @ g), rtol=1e-8)


@pytest.mark.parametrize("forcing", [0.5, 0.1, 1e-3, 1e-6])
def test_it_stops_at_the_first_residual_that_is_small_enough_beside_the_diagonal(forcing):
    H, g = system(np.geomspace(1.0, 1e3, 40))
    scale = 10.0 ** np.linspace(-2, 2, 40)
    H, g = H * scale * scale[:, None], g * scale
    diagonal = np.diag(H)

    def share(x):
        r = g - H @ x
        return np.sqrt((r @ (r / diagonal)) / (g @ (g / diagonal)))

    x, steps = solved(H, g, forcing=forcing)
    assert share(x) <= forcing
    assert share(solved(H, g, forcing=forcing, most_steps=steps - 1)[0]) > forcing


def test_it_makes_no_more_products_than_it_may():
    H, g = system(np.geomspace(1.0, 1e4, 40))
    assert [solved(H, g, forcing=0.0, most_steps=k)[1] for k in (0, 1, 7)] == [0, 1, 7]
    np.testing.assert_array_equal(solved(H, g, most_steps=0)[0], np.zeros(40))


def test_who_asks_to_stop_is_heard_before_every_product():
    H, g = system(np.geomspace(1.0, 1e4, 40))
    answers = iter([False, False, False, True])
    x, steps = solved(H, g, stop=lambda: next(answers))
    assert steps == 3
    np.testing.assert_array_equal(x, solved(H, g, most_steps=3)[0])


def test_nothing_asked_is_nothing_done():
    x, steps = solved(np.eye(4), np.zeros(4))
    assert (steps, x.tolist()) == (0, [0.0] * 4)


def test_several_columns_at_once_are_one_system():
    H, _ = system(np.linspace(1.0, 9.0, 6))
    G = np.random.default_rng(1).standard_normal((6, 3))
    diagonal = np.repeat(np.diag(H)[:, None], 3, axis=1)
    X = conjugate_gradients(lambda V: H @ V, G, diagonal, forcing=1e-13, most_steps=100)
    assert X.shape == (6, 3)
    np.testing.assert_allclose(X, np.linalg.solve(H, G), rtol=1e-9, atol=1e-11)
