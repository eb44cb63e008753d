"""The perceptron: the same steps as the textbook's, and no more mistakes than its theorems allow."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import ConvergenceWarning, ExtendedPerceptron, MulticlassPerceptron, Perceptron
from maxmargin.theory import freund_schapire, novikoff
from tests.online.oracles import mixed, perceptron, separable, steps

LAYOUTS = {"dense": lambda X: X, "csr": sp.csr_array, "dense32": lambda X: X.astype(np.float32)}
VARIANTS = [
    ({}, {}),
    ({"margin": 0.7}, {"margin": 0.7}),
    ({"eta0": 0.3, "rho": 0.05}, {"eta": steps(0.3), "rho": 0.05}),
    ({"eta0": 2.0, "schedule": "inverse", "t0": 3.0}, {"eta": steps(2.0, 3.0)}),
    ({"eta0": 2.0, "schedule": "inverse", "t0": 3.0, "power_t": 0.5}, {"eta": steps(2.0, 3.0, 0.5)}),
    ({"batch_size": 7}, {"batch": 7}),
    ({"batch_size": 7, "reduction": "mean"}, {"batch": 7, "mean": True}),
    ({"batch_size": "all"}, {"batch": 40}),
    ({"fit_intercept": False}, {"gain": 0.0}),
    ({"bias": "radius", "radius": 3.0}, {"gain": 9.0}),
]


def quarters(X):
    """Numbers whose products and sums are exact."""
    return np.round(4 * X) / 4


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
@pytest.mark.parametrize(("options", "book"), VARIANTS)
def test_takes_the_steps_of_the_textbook(options, book, layout, instruction_set):
    rng = np.random.default_rng(3)
    X, y = mixed(rng, 40, 3)
    X = quarters(X)
    path, mistakes, corrections = perceptron(X, y, passes=4, **book)
    machine = Perceptron(shuffle=False, max_iter=4, tol=None, **options).fit(LAYOUTS[layout](X), y)
    np.testing.assert_allclose(machine.coef_[0], path[-1][0], rtol=1e-12, atol=1e-12)
    assert machine.intercept_[0] == pytest.approx(path[-1][1], rel=1e-12, abs=1e-12)
    assert machine.mistakes_per_pass_.tolist() == mistakes
    assert machine.updates_per_pass_.tolist() == corrections
    assert machine.n_mistakes_ == sum(mistakes)
    assert machine.t_ == 4 * len(y)


@pytest.mark.parametrize(("options", "book"), VARIANTS)
def test_average_is_the_mean_of_all_weights(options, book):
    X, y = mixed(np.random.default_rng(5), 40, 3)
    path, _, _ = perceptron(X, y, passes=3, **book)
    machine = Perceptron(shuffle=False, max_iter=3, tol=None, average=True, **options).fit(X, y)
    np.testing.assert_allclose(machine.coef_[0], np.mean([w for w, _ in path], axis=0), rtol=1e-9)
    assert machine.intercept_[0] == pytest.approx(np.mean([b for _, b in path]), abs=1e-12)


def test_order_of_rows_is_a_new_one_in_every_pass():
    X, y = mixed(np.random.default_rng(1), 30, 2)
    machine = Perceptron(max_iter=3, tol=None, random_state=7).fit(X, y)
    seed = int(np.random.RandomState(7).randint(2**31 - 1))
    order = [np.random.default_rng([seed, p]).permutation(30) for p in range(3)]
    path, mistakes, _ = perceptron(X, y, passes=3, order=order)
    assert machine.mistakes_per_pass_.tolist() == mistakes
    np.testing.assert_allclose(machine.coef_[0], path[-1][0])


@pytest.mark.parametrize("seed", range(5))
def test_novikoff_is_never_exceeded(seed):
    # 5 × 110 separable problems, each with every bias convention.
    rng = np.random.default_rng([seed, 1])
    for _ in range(110):
        X, y = separable(rng)
        for options, convention in [
            ({}, "augmented"),
            ({"bias": "radius"}, "radius"),
        ]:
            bound = novikoff(X, y, bias=convention)
            machine = Perceptron(max_iter=10**6, n_iter_no_change=None, **options).fit(X, y)
            assert machine.mistakes_per_pass_[-1] == 0
            assert bound is not None
            assert machine.n_mistakes_ <= bound.value


@pytest.mark.parametrize("seed", range(2))
def test_novikoff_with_margin_batches_and_without_bias(seed):
    rng = np.random.default_rng([seed, 2])
    for _ in range(40):
        X, y = separable(rng, centre=0.0)
        if (y == y[0]).all():
            continue
        margin, batch = float(rng.random()), int(rng.integers(2, 9))
        plain = {"max_iter": 10**6, "n_iter_no_change": None}
        machine = Perceptron(margin=margin, eta0=0.5, **plain).fit(X, y)
        assert machine.n_updates_ <= novikoff(X, y, margin=margin, eta=0.5).value
        machine = Perceptron(batch_size=batch, **plain).fit(X, y)
        bound = novikoff(X, y, batch=min(batch, len(y)))
        assert machine.n_mistakes_ <= machine.mistake_bound_.value == bound.value
        bound = novikoff(X, y, bias="none")
        if bound is not None:
            assert Perceptron(fit_intercept=False, **plain).fit(X, y).n_mistakes_ <= bound.value


@pytest.mark.parametrize("seed", range(5))
def test_freund_and_schapire_hold_in_the_first_pass(seed):
    # 5 × 105 problems that cannot be separated (or only by chance).
    rng = np.random.default_rng([seed, 3])
    printed_too = 0
    for case in range(105):
        X, y = mixed(rng)
        machine = Perceptron(bias="radius", max_iter=1, tol=None, random_state=case).fit(X, y)
        bound = freund_schapire(X, y)
        assert machine.mistakes_per_pass_[0] <= bound.value
        if case % 10 == 0:
            printed_too += machine.mistakes_per_pass_[0] <= freund_schapire(X, y, form="printed").value
    assert printed_too == 11


def test_first_pass_bound_belongs_to_the_radius_convention():
    X, y = mixed(np.random.default_rng(0), 50, 3)
    with pytest.warns(ConvergenceWarning):
        machine = Perceptron(bias="radius", max_iter=2).fit(X, y)
    assert machine.first_pass_bound_.value >= machine.mistakes_per_pass_[0]
    assert machine.mistake_bound_ is None  # not separable
    with pytest.warns(ConvergenceWarning):
        assert Perceptron(max_iter=2).fit(X, y).first_pass_bound_ is None


def test_step_size_only_rescales_and_flipped_labels_flip_the_weights():
    X, y = separable(np.random.default_rng(9), 40, 3)
    X = quarters(X) + 0.0
    y = np.where(X @ np.array([1.0, -2.0, 0.5]) + 0.3 > 0, 1, -1)
    one = Perceptron(random_state=1).fit(X, y)
    four = Perceptron(random_state=1, eta0=4.0).fit(X, y)
    flipped = Perceptron(random_state=1).fit(X, -y)
    assert np.array_equal(4 * one.coef_, four.coef_)
    assert np.array_equal(-one.coef_, flipped.coef_)
    assert np.array_equal(-one.intercept_, flipped.intercept_)
    assert one.n_mistakes_ == four.n_mistakes_ == flipped.n_mistakes_


@pytest.mark.parametrize("schedule", [{}, {"schedule": "inverse", "eta0": 3.0, "t0": 2.0}])
def test_batch_perceptron_stops_on_separable_rows(schedule):
    rng = np.random.default_rng(11)
    for _ in range(20):
        X, y = separable(rng, gap=0.1)
        machine = Perceptron(batch_size="all", max_iter=10**6, n_iter_no_change=None, **schedule).fit(X, y)
        assert machine.mistakes_per_pass_[-1] == 0
        assert (machine.predict(X) == y).all()


def test_weights_stay_bounded_while_mistakes_grow_on_mixed_classes():
    X, y = mixed(np.random.default_rng(2), 60, 2)
    norms = []
    for passes in (10, 100, 1000):
        machine = Perceptron(max_iter=passes, tol=None, shuffle=False).fit(X, y)
        norms.append(np.hypot(np.linalg.norm(machine.coef_), machine.intercept_[0]))
        assert machine.n_mistakes_ >= passes
    assert norms[2] < 3 * max(norms[:2])


def test_performance_schedule_takes_smaller_steps_as_it_gets_better():
    X, y = separable(np.random.default_rng(4), 60, 2, gap=0.3)
    machine = Perceptron(schedule="performance", trace=True, n_iter_no_change=None).fit(X, y)
    assert machine.trace_.step[0] > machine.trace_.step[-1] > 0


def test_error_form_with_targets_0_and_1_is_the_same_rule():
    X, y = separable(np.random.default_rng(8), 50, 3, gap=0.1)
    X = np.hstack([X, np.ones((len(X), 1))])
    w = Perceptron(fit_intercept=False, shuffle=False, max_iter=1, tol=None).fit(X[:1].repeat(2, 0), [-1, 1])
    assert w.n_updates_ >= 1
    start = np.array([0.1, -0.2, 0.3, 0.05])  # so that no score is exactly 0
    v = start.copy()
    for _ in range(3):
        for row, d in zip(X, (y + 1) // 2, strict=True):
            v = v + (d - float(row @ v >= 0)) * row
    machine = Perceptron(fit_intercept=False, shuffle=False, max_iter=3, tol=None).fit(X, y, coef_init=start)
    np.testing.assert_allclose(machine.coef_[0], v)


def test_extended_space_stops_on_any_rows_within_its_bound():
    rng = np.random.default_rng(6)
    for _ in range(60):
        X, y = mixed(rng, int(rng.integers(4, 30)))
        X[1], y[0], y[1] = X[0], 1, -1  # the same row with both labels
        machine = ExtendedPerceptron(delta=float(rng.choice([0.5, 2.0]))).fit(X, y)
        assert machine.mistakes_per_pass_[-1] == 0
        assert machine.n_mistakes_ <= machine.mistake_bound_.value
        assert machine.slack_.shape == (len(y),)
    assert not hasattr(machine, "partial_fit")
    assert not hasattr(machine, "fit_stream")


def test_multiclass_perceptron_of_two_classes_is_the_perceptron_with_twice_the_step():
    X, y = mixed(np.random.default_rng(12), 50, 3)
    joint = MulticlassPerceptron(max_iter=5, tol=None, average=True).fit(X, y)
    single = Perceptron(eta0=2.0, max_iter=5, tol=None, average=True).fit(X, y)
    np.testing.assert_allclose(joint.coef_, single.coef_, rtol=1e-9)
    np.testing.assert_allclose(joint.intercept_, single.intercept_, rtol=1e-9, atol=1e-12)
    assert joint.n_mistakes_ == single.n_mistakes_


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_multiclass_perceptron_against_the_textbook(average, layout):
    rng = np.random.default_rng(13)
    X, label = quarters(rng.standard_normal((80, 4))), rng.integers(0, 4, 80)
    W, b, total_W, total_b, mistakes = np.zeros((4, 4)), np.zeros(4), np.zeros((4, 4)), np.zeros(4), 0
    for _ in range(3):
        for x, own in zip(X, label, strict=True):
            f = W @ x + b
            f_other = np.where(np.arange(4) == own, -np.inf, f)
            other = int(f_other.argmax())
            if f[own] - f[other] <= 0.5:
                mistakes += f[own] <= f[other]
                W[own] += x
                W[other] -= x
                b[own] += 1
                b[other] -= 1
            total_W += W
            total_b += b
    machine = MulticlassPerceptron(shuffle=False, max_iter=3, tol=None, margin=0.5, average=average)
    machine.fit(LAYOUTS[layout](X), label)
    assert machine.n_mistakes_ == mistakes
    np.testing.assert_allclose(machine.coef_, total_W / 240 if average else W, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(machine.intercept_, total_b / 240 if average else b, rtol=1e-12, atol=1e-12)


def test_kesler_bounds_the_mistakes_of_all_classes():
    rng = np.random.default_rng(14)
    for _ in range(30):
        W = rng.standard_normal((3, 4))
        X = rng.standard_normal((200, 4))
        f = X @ W.T
        top = np.sort(f, axis=1)
        X, f = X[top[:, -1] - top[:, -2] > 0.5], f[top[:, -1] - top[:, -2] > 0.5]
        label = f.argmax(axis=1)
        gamma = (np.sort(f, axis=1)[:, -1] - np.sort(f, axis=1)[:, -2]).min() / np.linalg.norm(W)
        machine = MulticlassPerceptron(fit_intercept=False, n_iter_no_change=None, max_iter=10**5).fit(X, label)
        assert machine.mistakes_per_pass_[-1] == 0
        assert machine.n_mistakes_ <= 2 * np.square(X).sum(axis=1).max() / gamma**2


def test_several_classes_are_told_apart_one_against_the_rest():
    rng = np.random.default_rng(15)
    centres = np.array([[0.0, 9.0], [9.0, 0.0], [-9.0, -9.0]])
    label = rng.integers(0, 3, 120)
    X = centres[label] + rng.standard_normal((120, 2))
    machine = Perceptron(trace=True).fit(X, np.array(["a", "b", "c"])[label])
    assert machine.coef_.shape == (3, 2)
    assert machine.n_mistakes_.shape == (3,)
    assert machine.mistakes_per_pass_.shape == (3, machine.n_iter_)
    assert machine.score(X, np.array(["a", "b", "c"])[label]) == 1.0
    assert len(machine.trace_) == 3
    assert machine.mistake_bound_ is None


BAD = [
    ({"eta0": 0.0}, "eta0 must be"),
    ({"schedule": "cosine"}, "schedule must be"),
    ({"margin": -1.0}, "margin must be"),
    ({"rho": -1.0}, "rho must be"),
    ({"bias": "free"}, "bias must be"),
    ({"batch_size": 0}, "batch_size must be"),
    ({"reduction": "max"}, "reduction must be"),
    ({"shuffle": "yes"}, "shuffle must be"),
    ({"max_iter": 0}, "max_iter must be"),
    ({"tol": -1}, "tol must be"),
    ({"n_iter_no_change": 0}, "n_iter_no_change must be"),
    ({"max_seconds": 0}, "max_seconds must be"),
    ({"schedule": "optimal"}, "needs rho > 0"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Perceptron(**options).fit([[-1.0], [1.0]], [0, 1])


def test_stops_with_a_warning_where_mistakes_do_not_fall():
    X, y = mixed(np.random.default_rng(3), 60, 2)
    with pytest.warns(ConvergenceWarning, match="have not fallen for n_iter_no_change=5"):
        machine = Perceptron(n_iter_no_change=5).fit(X, y)
    assert machine.n_iter_ < 1000
    with pytest.warns(ConvergenceWarning, match="max_iter=3 was reached"):
        Perceptron(max_iter=3).fit(X, y)
