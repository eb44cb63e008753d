"""What a machine carries from one call to the next, and what it refuses to carry."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin import InputError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = (X[:, 0] + 0.3 > 0).astype(int)
FAR = np.abs(X[:, 0] + 0.3) > 0.3


def quiet(machine, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mm.ConvergenceWarning)
        return machine.fit(*arguments, **options)


@pytest.mark.parametrize(
    "machine",
    [mm.Perceptron(), mm.OnlineSVC(), mm.MulticlassPerceptron(), mm.Adaline(), mm.BalancedWinnow(), mm.OnlineSVR()],
    ids=str,
)
def test_damaged_sparse_rows_are_refused_at_prediction(machine):
    machine = quiet(machine, X, Y)
    damaged = sp.csr_matrix(X)
    damaged.indices[0] = 10**6
    with pytest.raises(InputError):
        machine.predict(damaged)


def test_a_pocket_is_judged_anew_on_other_rows():
    machine = mm.PocketPerceptron(warm_start=True).fit(X, Y)
    machine.fit(X, 1 - Y)
    assert machine.n_errors_ == np.sum((2 * (1 - Y) - 1) * machine.decision_function(X) <= 0) < 5


def test_a_pocket_that_never_earned_a_count_is_counted_once():
    machine = mm.PocketPerceptron(rule="ratchet", shuffle=False).fit([[1.0], [1.0]], [0, 1])
    assert machine.n_errors_ in (1, 2)


def test_patience_drops_no_row_of_a_part():
    machine = mm.PocketPerceptron(rule="run", patience=2)
    for seed in range(5):
        machine.partial_fit(X, np.random.default_rng(seed).integers(0, 2, 60), classes=[0, 1])
    assert machine.t_ == 300


@pytest.mark.parametrize(
    "machine",
    [mm.OnlineSVC(rho=10.0, schedule="constant", eta0=1.0), mm.OnlineSVR(rho=100.0), mm.Perceptron(rho=10.0)],
    ids=str,
)
def test_weights_that_would_shrink_past_zero_are_refused(machine):
    with pytest.raises(ValueError, match="too large for a first step"):
        machine.fit(X, Y)


@pytest.mark.parametrize(
    "options", [{"eta0": 1e308}, {"schedule": "inverse", "t0": 1e300}, {"bias": "radius", "radius": 1e200}]
)
def test_steps_that_overflow_are_refused(options):
    with pytest.raises(ValueError, match="at most 1e100"):
        mm.Perceptron(**options).fit(X, Y)


@pytest.mark.parametrize(
    "machine",
    [
        mm.ExtendedPerceptron(),
        mm.PocketPerceptron(),
        mm.Adaline(),
        mm.OjaRule(),
        mm.MulticlassPerceptron(),
        mm.BalancedWinnow(),
    ],
    ids=str,
)
def test_values_that_overflow_are_refused(machine):
    with pytest.raises(InputError, match=r"too large|largest entry"):
        machine.fit(X * 1e180, Y)


@pytest.mark.parametrize("machine", [mm.Perceptron(), mm.VotedPerceptron(), mm.Relaxation(), mm.OnlineSVC()], ids=str)
def test_what_overflows_on_the_way_is_said(machine):
    with pytest.warns(mm.ConvergenceWarning, match="diverged"):
        machine.fit(X * 1e180, Y)


def test_the_default_step_knows_how_many_rows_are_added_up():
    for options in ({"batch_size": "all", "reduction": "sum"}, {"rho": 100.0}):
        machine = mm.Adaline(max_iter=500, **options).fit(X, Y)
        assert np.abs(machine.coef_).max() < 10.0
    with pytest.warns(mm.ConvergenceWarning, match="every step is safe"):
        mm.Adaline(batch_size="all", reduction="sum", eta0=1.0, max_iter=500).fit(X, Y)


def test_batches_larger_than_the_rows_are_all_rows():
    few, many = (mm.Perceptron(batch_size=size, max_iter=5, tol=None).fit(X, Y) for size in (60, 10**30))
    assert np.array_equal(few.coef_, many.coef_)


def test_truth_values_of_numpy_are_truth_values_and_text_is_not():
    plain = mm.Perceptron(shuffle=False, max_iter=1, tol=None).fit(X, Y)
    other = mm.Perceptron(shuffle=np.False_, max_iter=1, tol=None).fit(X, Y)
    assert np.array_equal(plain.coef_, other.coef_)
    for name in ("fit_intercept", "average", "trace", "warm_start"):
        with pytest.raises(InputError, match=f"{name} must be True or False"):
            mm.Perceptron(**{name: "no"}).fit(X, Y)
    with pytest.raises(InputError, match="fit_intercept"):
        mm.Ridge(fit_intercept="no").fit(X, Y)


def test_bounds_are_those_of_the_fit():
    machine = quiet(mm.Perceptron(rho=0.4, max_iter=50), X[FAR], Y[FAR])
    machine.set_params(rho=0.0, bias="radius")
    assert machine.mistake_bound_ is None
    assert machine.first_pass_bound_ is None


def test_relaxation_without_margin_needs_a_start():
    for call in (
        lambda: mm.Relaxation(margin=0).partial_fit(X, Y, classes=[0, 1]),
        lambda: mm.Relaxation(margin=0).fit(X, Y, coef_init=[0, 0, 0]),
    ):
        with pytest.raises(ValueError, match="needs weights to start from"):
            call()


def test_one_start_is_enough():
    for machine in (mm.OnlineSVC(warm_start=True), mm.OnlineSVR(warm_start=True)):
        machine.fit(X, Y)
        with pytest.raises(ValueError, match="contradict warm_start"):
            machine.fit(X, Y, coef_init=np.ones(3))
    with pytest.raises(InputError, match="fit_intercept is False"):
        mm.Perceptron(fit_intercept=False).fit(X, Y, intercept_init=[5.0])
    for wrong in (["a", "b", "c"], np.ones((3, 1)), [1.0, np.nan, 0.0]):
        with pytest.raises(InputError, match=r"coef_init must hold finite numbers in shape \(1, 3\)"):
            mm.Perceptron().fit(X, Y, coef_init=wrong)


def test_a_winnow_keeps_its_base():
    machine = quiet(mm.BalancedWinnow(warm_start=True, max_iter=1, base=1.5), X, Y)
    with pytest.raises(ValueError, match=r"base was 1\.5"):
        machine.set_params(base=1.01).fit(X, Y)
    machine = quiet(mm.BalancedWinnow(warm_start=True, max_iter=1), X, Y)
    machine = quiet(machine, 0.5 * X, Y)
    expected = 2.0 * np.sinh(machine.exponent_ * np.log(machine.base_))
    np.testing.assert_allclose(machine.coef_, expected, rtol=1e-9)


def test_nothing_of_an_earlier_fit_stays():
    machine = quiet(mm.Perceptron(trace=True, max_iter=3), X, Y)
    assert not hasattr(quiet(machine.set_params(trace=False), X, Y), "trace_")
    rule = mm.OjaRule().fit(X)
    before = rule.transform(X)
    with pytest.raises(InputError):
        rule.fit(X + 100.0, coef_init=[0, 0, 0])
    assert np.array_equal(rule.transform(X), before)
    wrong = mm.Perceptron(bias="x")
    with pytest.raises(ValueError, match="bias must be"):
        wrong.fit(np.zeros((10**4, 20)), np.arange(10**4) % 2)
    assert len(pickle.dumps(wrong)) < 10**4


@pytest.mark.parametrize(
    "machine", [mm.OnlineSVC(), mm.PocketPerceptron(), mm.VotedPerceptron(), mm.KernelPerceptron()], ids=str
)
def test_a_time_limit_is_always_spoken_of(machine):
    many = np.random.default_rng(1).standard_normal((3000, 20))
    labels = np.arange(3000) % 2
    with pytest.warns(mm.ConvergenceWarning, match="was reached in pass"):
        machine.set_params(max_seconds=1e-9, max_iter=1000).fit(many, labels)
    assert machine.predict(many).shape == labels.shape


def test_a_kernel_that_is_no_inner_product_has_no_radius():
    with pytest.raises(InputError, match="no inner product"):
        mm.KernelPerceptron(kernel="sigmoid", gamma=0.01, coef0=-3.0).fit(X, Y)


def test_a_hebb_rule_speaks_of_growth_not_of_size():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mm.HebbRule(eta0=1e-9).fit(X, coef_init=[1e4, 0, 0])
    with pytest.warns(mm.ConvergenceWarning, match="would go on growing"):
        mm.HebbRule(eta0=0.2).fit(X, coef_init=[1e-8, 0, 0])


def write(path, labels):
    path.write_text(
        "a,b,c,label\n" + "".join(f"{a},{b},{c},{label}\n" for (a, b, c), label in zip(X, labels, strict=True))
    )


def test_a_checkpoint_knows_its_file_and_its_classes(tmp_path):
    path, saved = tmp_path / "rows.csv", tmp_path / "a.checkpoint"
    write(path, Y)
    mm.Perceptron(tol=None).fit_stream(path, checkpoint=saved)
    with pytest.raises(ValueError, match="another source: options"):
        mm.Perceptron(tol=None).fit_stream(path, checkpoint=saved, n_passes=2, drop=["a"])
    with pytest.raises(ValueError, match="knows the classes"):
        mm.Perceptron(tol=None).fit_stream(path, checkpoint=saved, n_passes=2, classes=[0, 1, 2])
    (tmp_path / "other.csv").write_bytes(path.read_bytes())
    with pytest.raises(ValueError, match="another source: name"):
        mm.Perceptron(tol=None).fit_stream(tmp_path / "other.csv", checkpoint=saved, n_passes=2)
    with pytest.raises(ValueError, match="random_state"):
        mm.Perceptron(random_state=np.random.RandomState(0)).fit_stream(path, checkpoint=tmp_path / "b")
    with pytest.raises(ValueError, match="classes has no meaning"):
        mm.OnlineSVR().fit_stream([(X, Y)], classes=[0, 1])


def test_a_stream_that_had_ended_stays_ended(tmp_path):
    rows, labels = np.array([[-1.0], [1.0]] * 10), [0, 1] * 10
    options = {"classes": [0, 1], "checkpoint": tmp_path / "c", "n_passes": 9}
    first = mm.Perceptron(average=True).fit_stream([(rows, labels)], **options)
    with pytest.warns(UserWarning, match="complete fit"):
        again = mm.Perceptron(average=True).fit_stream([(rows, labels)], **options)
    assert again.n_iter_ == first.n_iter_ < 9
    assert np.array_equal(again.coef_, first.coef_)


def test_streams_stop_by_the_rule_of_the_machine():
    rows, labels = 0.1 * np.array([[-1.0], [1.0]] * 10), [0, 1] * 10
    options = {"tol": 0, "schedule": "constant", "eta0": 0.01, "fit_intercept": False}
    machine = mm.OnlineSVC(**options).fit_stream([(rows, labels)], classes=[0, 1], n_passes=15)
    assert machine.n_iter_ == 2
    machine = mm.Relaxation(eta=0.5).fit_stream([(X[FAR], Y[FAR])], classes=[0, 1], n_passes=200)
    assert machine.n_iter_ < 200
    once = iter([(X, Y)])
    with pytest.raises(ValueError, match="no rows in pass 2"):
        mm.OnlineSVC().fit_stream(lambda: once, classes=[0, 1], n_passes=5)


def test_a_gaussian_kernel_sees_sparse_rows_as_dense_ones():
    far = X + 1e6
    machine = mm.KernelRidge(kernel="rbf", gamma=1.0).fit(far, X[:, 0])
    np.testing.assert_allclose(machine.predict(sp.csr_array(far)), machine.predict(far), rtol=1e-12)


@pytest.mark.parametrize(
    "options", [{"margin": -1.0}, {"eta": 0.0}, {"batch": 0}, {"bias": "radius", "radius": 0.0}, {"eta": "a"}]
)
def test_theorems_refuse_what_they_are_not_about(options):
    from maxmargin.theory import novikoff

    with pytest.raises(ValueError, match=list(options)[-1]):
        novikoff(X[FAR], Y[FAR], **options)
    with pytest.raises(ValueError, match="two classes"):
        novikoff(X, np.arange(60) % 3)
