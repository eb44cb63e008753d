"""LIBSVM's model files: LIBSVM itself reads what is written, and what it writes is read; nothing malformed is."""

import gzip
import itertools
import os
import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from libsvm import svm as libsvm
from libsvm import svmutil
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from maxmargin import InputError, ModelFileError, read_libsvm_model, write_libsvm_model
from maxmargin.kernels import Gaussian, Linear, Polynomial, Precomputed, Sigmoid
from maxmargin.models.loaded import NotInFileError
from maxmargin.svm import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.svm.kernel_prediction import most_votes
from tests.svm.kernel_data import dense

KERNELS = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 2, "gamma": 0.3, "coef0": 1.5},
    "rbf": {"kernel": "rbf", "gamma": 0.3},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.05, "coef0": -0.1},
}
OPTIONS = {
    "linear": "-t 0",
    "poly": "-t 1 -d 2 -g 0.3 -r 1.5",
    "rbf": "-t 2 -g 0.3",
    "sigmoid": "-t 3 -g 0.05 -r -0.1",
}
TYPES = {"c_svc": (SVC, 0), "nu_svc": (NuSVC, 1), "one_class": (OneClassSVM, 2), "svr": (SVR, 3), "nu_svr": (NuSVR, 4)}
CASES = [("c_svc", 2), ("c_svc", 4), ("nu_svc", 2), ("nu_svc", 4), ("one_class", 0), ("svr", 0), ("nu_svr", 0)]
LABELS = {2: [5, -2], 4: [7, -3, 12, 0], 0: [0]}  # in the order in which they occur


@pytest.fixture(autouse=True)
def one_thread_of_openmp():
    """LIBSVM's threads wait for each other, longer than they work, on rows as few as these."""
    with threadpool_limits(1, user_api="openmp"):
        yield


def rows(n_classes, n=48, seed=0):
    """Sparse-looking rows, some of whose values are 0, and labels, or targets, that are neither sorted nor 0, 1, 2."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5)) * (rng.random((n, 5)) < 0.7)
    if n_classes == 0:
        X[:, 0] += 4.0  # one class has no half-space without the origin if that is in its middle
        return X, X[:, 0] - 2.0 * X[:, 1] + 0.3 * rng.standard_normal(n)
    which = np.arange(n) % n_classes
    X += 0.8 * rng.standard_normal((n_classes, 5))[which]
    return X, np.array(LABELS[n_classes])[which]


def scores_of_libsvm(path, X, precomputed=False):
    """Labels and decision values of svm_predict_values, which svmutil gives too little room for, and the labels."""
    model = svmutil.svm_load_model(str(path))
    assert model is not None
    k = model.get_nr_class()
    values = (libsvm.c_double * (k * (k - 1) // 2))()
    decided, found = [], []
    for row in np.column_stack([np.zeros(len(X)), X]) if precomputed else X:
        nodes, _ = libsvm.gen_svm_nodearray(row, isKernel=precomputed)
        decided.append(libsvm.libsvm.svm_predict_values(model, nodes, values))
        found.append(list(values))
    return np.array(decided), np.array(found), model.get_labels() if model.label else None


def train(X, y, options, path):
    """A model of svm-train, as its program leaves it on disk."""
    model = svmutil.svm_train(y.astype(float), X, f"{options} -q")
    svmutil.svm_save_model(str(path), model)


def pair_scores(machine, X, labels):
    """Decision values for the pairs of classes in the order of a file, positive for its first class."""
    if not hasattr(machine, "classes_"):
        return (machine.decision_function(X) if isinstance(machine, OneClassSVM) else machine.predict(X))[:, None]
    scores = machine.set_params(decision_function_shape="ovo").decision_function(X)
    place = machine.classes_.tolist().index
    if len(labels) == 2:
        return scores[:, None] if place(labels[0]) == 1 else -scores[:, None]
    columns = {pair: scores[:, m] for m, pair in enumerate(itertools.combinations(range(len(labels)), 2))}
    turned = [(place(a), place(b)) for a, b in itertools.combinations(labels, 2)]
    return np.stack([columns[i, j] if i < j else -columns[j, i] for i, j in turned], axis=1)


def fitted(kind, n_classes, kernel="rbf", *, sparse=False):
    X, y = rows(n_classes)
    options = {"nu": 0.3} if kind in ("nu_svc", "one_class", "nu_svr") else {"C": 2.0}
    machine = TYPES[kind][0](**KERNELS[kernel], **options)
    return machine.fit(sp.csr_array(X) if sparse else X, y), X


def content(machine, tmp_path):
    write_libsvm_model(machine, tmp_path / "model")
    return (tmp_path / "model").read_text()


# --- LIBSVM reads ours, and we read LIBSVM's -----------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("kind", "n_classes"), CASES)
def test_libsvm_computes_the_same_from_our_files(kind, n_classes, kernel, sparse, tmp_path):
    machine, X = fitted(kind, n_classes, kernel, sparse=sparse)
    write_libsvm_model(machine, tmp_path / "model")
    new = np.random.default_rng(1).standard_normal((20, 5))
    decided, values, labels = scores_of_libsvm(tmp_path / "model", np.vstack([X, new]))
    np.testing.assert_allclose(pair_scores(machine, np.vstack([X, new]), labels), values, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(machine.predict(np.vstack([X, new])), decided, atol=1e-10)


@pytest.mark.parametrize("kernel", OPTIONS)
@pytest.mark.parametrize(("kind", "n_classes"), CASES)
def test_we_compute_the_same_from_libsvms_files(kind, n_classes, kernel, tmp_path):
    X, y = rows(n_classes)
    train(X, y, f"-s {TYPES[kind][1]} {OPTIONS[kernel]} -c 2 -n 0.3", tmp_path / "model")
    machine = read_libsvm_model(tmp_path / "model")
    assert isinstance(machine, TYPES[kind][0])
    new = np.random.default_rng(1).standard_normal((20, 5))
    for form in (np.asarray, sp.csr_array):
        both = np.vstack([X, new])
        decided, values, labels = scores_of_libsvm(tmp_path / "model", both)
        np.testing.assert_allclose(pair_scores(machine, form(both), labels), values, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(machine.predict(form(both)), decided, atol=1e-10)
    assert machine.get_params()["kernel"] == KERNELS[kernel]["kernel"]
    if n_classes:
        assert labels == sorted(labels, key=LABELS[n_classes].index)  # not sorted: the classes are turned around
        assert machine.classes_.tolist() == sorted(labels)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_precomputed_kernels(n_classes, tmp_path):
    X, y = rows(n_classes)
    K = X @ X.T
    machine = SVC(kernel="precomputed", C=0.5).fit(K, y)
    write_libsvm_model(machine, tmp_path / "ours")
    decided, values, labels = scores_of_libsvm(tmp_path / "ours", K, precomputed=True)
    np.testing.assert_allclose(pair_scores(machine, K, labels), values, atol=1e-10)
    np.testing.assert_array_equal(machine.predict(K), decided)
    again = read_libsvm_model(tmp_path / "ours", n_features=len(K))
    np.testing.assert_array_equal(again.support_, machine.support_)
    np.testing.assert_array_equal(pair_scores(again, K, labels), pair_scores(machine, K, labels))

    numbered = np.column_stack([np.arange(1, len(K) + 1), K])
    problem = svmutil.svm_problem(y.astype(float), numbered, isKernel=True)
    svmutil.svm_save_model(str(tmp_path / "theirs"), svmutil.svm_train(problem, svmutil.svm_parameter("-t 4 -q")))
    read = read_libsvm_model(tmp_path / "theirs", n_features=len(K))
    decided, values, labels = scores_of_libsvm(tmp_path / "theirs", K, precomputed=True)
    np.testing.assert_allclose(pair_scores(read, K, labels), values, atol=1e-10)
    np.testing.assert_array_equal(read.predict(K), decided)
    assert read.support_vectors_.shape == (0, 0)
    with pytest.raises(NotInFileError, match="margin_ is unknown"):
        _ = read.margin_


# --- nothing is lost on the way -------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("kind", "n_classes"), CASES)
def test_every_bit_comes_back(kind, n_classes, sparse, tmp_path):
    machine, X = fitted(kind, n_classes, "poly", sparse=sparse)
    text = content(machine, tmp_path)
    again = read_libsvm_model(tmp_path / "model")
    for name in ("support_vectors_", "dual_coef_", "intercept_", "n_support_", "classes_", "offset_"):
        assert hasattr(again, name) == hasattr(machine, name), name
        if hasattr(machine, name):
            np.testing.assert_array_equal(dense(getattr(again, name)), dense(getattr(machine, name)), err_msg=name)
    assert (again.kernel_, again.n_features_in_) == (machine.kernel_, machine.n_features_in_)
    assert type(again.n_support_[0]) is type(machine.n_support_[0])
    np.testing.assert_allclose(again.predict(X), machine.predict(X), atol=1e-12)
    assert content(again, tmp_path) == text


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_file_of_libsvm_that_is_written_again_is_the_same_to_libsvm(n_classes, sign, tmp_path):
    X, y = rows(n_classes)
    train(X, sign * y, "-s 0 -t 2 -c 3", tmp_path / "theirs")
    write_libsvm_model(read_libsvm_model(tmp_path / "theirs"), tmp_path / "ours")
    before, after = (scores_of_libsvm(tmp_path / name, X) for name in ("theirs", "ours"))
    assert before[2] == after[2]
    np.testing.assert_array_equal(before[1], after[1])
    np.testing.assert_array_equal(before[0], after[0])


def test_columns_without_values_come_back(tmp_path):
    X, y = rows(2)
    X[:, 4] = 0.0
    machine = SVC().fit(X, y)
    text = content(machine, tmp_path)
    assert text.count("5:0 ") == 1
    assert read_libsvm_model(tmp_path / "model").n_features_in_ == 5
    assert not (read_libsvm_model(tmp_path / "model").support_vectors_[:, 4]).any()


def test_sparse_models_stay_sparse_however_wide(tmp_path):
    text = LINEAR.format("epsilon_svr", 2, 2, "-1", "", "0.5 7:1 {}:4 \n-0.25 3:2 \n")
    (tmp_path / "model").write_text(text.format(2_000_000_000))
    machine = read_libsvm_model(tmp_path / "model")
    assert (machine.n_features_in_, machine.support_vectors_.nnz) == (2_000_000_000, 3)
    (tmp_path / "model").write_text(text.format(20_000))
    machine = read_libsvm_model(tmp_path / "model")
    x = sp.csr_array((np.array([2.0]), np.array([19_999]), [0, 1]), shape=(1, 20_000))
    np.testing.assert_array_equal(machine.predict(x), [5.0])


def test_equal_votes_go_to_the_first_class_of_the_file_as_in_libsvm(tmp_path):
    X, y = rows(4)
    y = np.random.default_rng(2).permutation(y)  # of labels that mean nothing, pairs of classes often disagree
    first = [y.tolist().index(label) for label in LABELS[4]]
    probes = np.random.default_rng(3).standard_normal((200, 5)) * 2.0
    n_other = 0
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]):
        turned = [first[i] for i in order] + [i for i in range(len(y)) if i not in first]
        train(X[turned], y[turned], "-s 0 -t 2 -g 0.5 -c 10", tmp_path / "model")
        machine = read_libsvm_model(tmp_path / "model")
        decided, _, labels = scores_of_libsvm(tmp_path / "model", probes)
        assert labels == [LABELS[4][i] for i in order]
        np.testing.assert_array_equal(machine.predict(probes), decided)
        scores = pair_scores(machine, probes, machine.classes_.tolist())
        n_other += int((machine.classes_[most_votes(scores < 0.0, 4)] != decided).sum())
    assert n_other > 0  # the order of the classes matters to some rows


LINEAR = "svm_type {}\nkernel_type linear\nnr_class {}\ntotal_sv {}\nrho {}\n{}SV\n{}"


@pytest.mark.parametrize("labels", ["1 2", "2 1", "1 2 3", "3 1 2", "2 3 1", "3 2 1"])
def test_a_score_of_zero_is_the_second_class_as_in_libsvm(labels, tmp_path):
    k = len(labels.split())
    lines = "".join(f"{'1 ' * (k - 1)}{i + 1}:1 \n" for i in range(k))
    head = f"label {labels}\nnr_sv {'1 ' * k}\n"
    (tmp_path / "model").write_text(LINEAR.format("c_svc", k, k, "0 " * (k * (k - 1) // 2), head, lines))
    machine = read_libsvm_model(tmp_path / "model")
    X = np.array(list(itertools.product([0.0, 1.0, -1.0], repeat=k)))
    np.testing.assert_array_equal(machine.predict(X), scores_of_libsvm(tmp_path / "model", X)[0])


def test_the_border_of_one_class_is_outside_as_in_libsvm(tmp_path):
    (tmp_path / "model").write_text(LINEAR.format("one_class", 2, 1, "1", "", "1 1:1 \n"))
    machine = read_libsvm_model(tmp_path / "model")
    X = np.array([[0.5], [1.0], [2.0]])
    np.testing.assert_array_equal(machine.predict(X), scores_of_libsvm(tmp_path / "model", X)[0])
    np.testing.assert_array_equal(machine.score_samples(X), X.ravel())


# --- what a read machine is -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "n_classes"), CASES)
def test_there_is_no_proof_and_the_error_says_so(kind, n_classes, tmp_path):
    machine, X = fitted(kind, n_classes)
    write_libsvm_model(machine, tmp_path / "model")
    again = read_libsvm_model(tmp_path / "model")
    for name in ("certificate_", "solution_", "objective_", "support_", "free_", "violating_", "n_iter_"):
        assert not hasattr(again, name)
        with pytest.raises(NotInFileError, match=rf"{name} is unknown: .* read from a LIBSVM model file.*no proof"):
            getattr(again, name)
    with pytest.raises(AttributeError, match="linear kernel"):
        _ = again.coef_
    assert isinstance(NotInFileError("x"), InputError)
    with pytest.raises(AttributeError, match="no attribute 'something'"):
        _ = again.something
    with pytest.raises(AttributeError, match="certificate_"):
        _ = clone(again).certificate_
    y = rows(n_classes)[1]
    with pytest.raises(InputError):
        again.set_params(cache_size=-1.0).fit(X, y)
    np.testing.assert_allclose(again.predict(X), machine.predict(X), atol=1e-12)
    assert again.set_params(cache_size=100.0).fit(X, y) is again
    assert type(again) is type(machine)
    assert again.certificate_.verify(X, y)
    assert again.get_params() == clone(again).get_params()
    fresh = machine.set_params(**again.get_params()).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), fresh.predict(X))


def test_pickles_and_copies(tmp_path):
    X, y = rows(4)
    train(X, y, "-s 0 -t 2 -c 3", tmp_path / "model")
    machine = read_libsvm_model(tmp_path / "model")
    again = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(again.predict(X), machine.predict(X))
    np.testing.assert_array_equal(again.margin_, machine.margin_)
    assert again.score(X, y) == machine.score(X, y) > 0.5
    assert not hasattr(clone(again), "classes_")


def test_break_ties_is_heard(tmp_path):
    X, y = rows(4)
    train(X, y, "-s 0 -t 2 -c 3", tmp_path / "model")
    machine = read_libsvm_model(tmp_path / "model").set_params(break_ties=True)
    scores = machine.decision_function(X)
    np.testing.assert_array_equal(machine.predict(X), machine.classes_[scores.argmax(axis=1)])


@pytest.mark.parametrize(
    ("options", "names"), [("-s 0", "probA, probB"), ("-s 3", "probA"), ("-s 2", "prob_density_marks")]
)
def test_probabilities_are_left_out_and_a_warning_says_so(options, names, tmp_path):
    X, y = rows(4)
    train(X, y, f"{options} -b 1 -t 2", tmp_path / "model")
    with pytest.warns(UserWarning, match=rf"the probabilities of this model \({names}\) are left out"):
        machine = read_libsvm_model(tmp_path / "model")
    _, values, labels = scores_of_libsvm(tmp_path / "model", X)
    np.testing.assert_allclose(pair_scores(machine, X, labels), values, atol=1e-10)
    assert not hasattr(machine, "predict_proba")


@pytest.mark.filterwarnings("ignore:the probability parameter is deprecated:FutureWarning")
def test_our_probabilities_are_not_written_and_a_warning_says_so(tmp_path):
    X, y = rows(2)
    machine = SVC(probability=True).fit(X, y)
    with pytest.warns(UserWarning, match="probabilities are not written"):
        write_libsvm_model(machine, tmp_path / "model")
    assert "prob" not in (tmp_path / "model").read_text()


def test_constant_functions(tmp_path):
    """Without a support vector nobody knows how many columns there are."""
    X, y = rows(0)
    machine = SVR(epsilon=1e3).fit(X, y)
    write_libsvm_model(machine, tmp_path / "model")
    np.testing.assert_array_equal(scores_of_libsvm(tmp_path / "model", X)[0], machine.predict(X))
    again = read_libsvm_model(tmp_path / "model", n_features=5)
    np.testing.assert_array_equal(again.predict(X), machine.predict(X))
    with pytest.raises(ModelFileError, match="pass n_features"):
        read_libsvm_model(tmp_path / "model")


# --- what cannot be written -----------------------------------------------------------------------------------------

X4, Y4 = rows(4)
UNWRITABLE = {
    "text": (
        lambda: SVC().fit(X4, np.array(list("abcd"))[np.arange(48) % 4]),
        r"class 'a'.*whole numbers.*LabelEncoder",
    ),
    "large": (lambda: SVC().fit(X4, Y4.astype(np.int64) * 2**40), "whole numbers of at most 2147483647"),
    "rest": (lambda: SVC(multi_class="ovr").fit(X4, Y4), "multi_class='ovo'"),
    "sum": (lambda: SVC(kernel=Gaussian(0.5) + Linear()).fit(*rows(2)), r"kernel Sum.*precomputed"),
    "function": (lambda: SVC(kernel=lambda X, Z: X @ Z.T).fit(*rows(2)), r"kernel Callable.*precomputed"),
    "degree": (lambda: SVC(kernel="poly", degree=1.5, gamma=0.01, coef0=9.0).fit(X4, Y4), r"degree 1\.5"),
    "unfitted": (lambda: SVR(), "SVR is not fitted yet"),
    "ball": (lambda: SVDD().fit(X4), "SVDD cannot be written.*known are SVC"),
    "nan": (lambda: broken_in("dual_coef_", SVR().fit(X4, X4[:, 0])), "not finite"),
}


def broken_in(name, machine):
    getattr(machine, name)[0, 0] = np.nan
    return machine


@pytest.mark.parametrize("name", UNWRITABLE)
def test_what_cannot_be_written_says_so_and_leaves_no_file(name, tmp_path):
    make, problem = UNWRITABLE[name]
    with pytest.raises(InputError, match=problem):
        write_libsvm_model(make(), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_an_old_file_stays_until_the_new_one_is_complete(tmp_path, monkeypatch):
    machine, _ = fitted("c_svc", 2)
    before = content(machine, tmp_path)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_libsvm_model(fitted("c_svc", 4)[0], tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model").read_text() == before


def test_more_support_vectors_than_are_written_at_a_time(tmp_path, monkeypatch):
    machine, _ = fitted("c_svc", 4)
    whole = content(machine, tmp_path)
    monkeypatch.setattr("maxmargin.models.libsvm_file.WRITTEN_TOGETHER", 7)
    assert content(machine, tmp_path) == whole


@pytest.mark.parametrize("labels", [(False, True), (-1.0, 1.0), (0, 1)])
def test_labels_that_are_whole_numbers_in_another_guise(labels, tmp_path):
    X, y = rows(2)
    machine = SVC().fit(X, np.array(labels)[(y > 0).astype(int)])
    write_libsvm_model(machine, tmp_path / "model")
    again = read_libsvm_model(tmp_path / "model")
    assert again.classes_.dtype == np.int64
    np.testing.assert_array_equal(again.predict(X), machine.predict(X))


# --- what cannot be read --------------------------------------------------------------------------------------------

GOOD = """svm_type c_svc
kernel_type polynomial
degree 2
gamma 0.5
coef0 1
nr_class 3
total_sv 4
rho 0.5 -0.25 1e-3
label 3 -1 7
nr_sv 2 1 1
SV
1 0.5 1:0.5 3:-2
0.25 -0 2:1e-3
-1 1 1:1 2:.5 3:2.
-0.5 -1 3:4
"""
MALFORMED = {  # what is replaced, by what, the line of the error, what it says
    "type": ("c_svc", "d_svc", 1, "expected svm_type to be one of c_svc, nu_svc, .*found 'd_svc'"),
    "kernel": ("polynomial", "poly", 2, "expected kernel_type to be one of linear, .*found 'poly'"),
    "no kernel": ("kernel_type polynomial\n", "", "header", "expected a line kernel_type"),
    "no degree": ("degree 2\n", "", "header", "expected a line degree"),
    "no gamma": ("gamma 0.5\n", "", "header", "expected a line gamma"),
    "no coef0": ("coef0 1\n", "", "header", "expected a line coef0"),
    "empty gamma": ("gamma 0.5", "gamma", 4, "expected 1 value after gamma, found 0"),
    "two gammas": ("gamma 0.5\n", "gamma 0.5\ngamma 0.5\n", 5, "gamma occurs twice, here and on line 4"),
    "gamma of 0": ("gamma 0.5", "gamma 0", 4, "gamma must be a finite number greater than 0"),
    "negative gamma": ("gamma 0.5", "gamma -1", 4, "gamma must be a finite number greater than 0"),
    "negative degree": ("degree 2", "degree -2", 3, "degree must be"),
    "nan": ("coef0 1", "coef0 nan", 5, "expected a finite number, found 'nan'"),
    "inf": ("1e-3\nlabel", "-inf\nlabel", 8, "expected a finite number, found '-inf'"),
    "overflow": ("gamma 0.5", "gamma 1e999", 4, "expected a finite number, found '1e999'"),
    "underscore": ("gamma 0.5", "gamma 0_5", 4, "expected a finite number, found '0_5'"),
    "hexadecimal": ("gamma 0.5", "gamma 0x1p3", 4, "expected a finite number, found '0x1p3'"),
    "comma": ("gamma 0.5", "gamma 0,5", 4, "expected a finite number, found '0,5'"),
    "no classes": ("nr_class 3\n", "", "header", "expected a line nr_class"),
    "fractional classes": ("nr_class 3", "nr_class 3.0", 6, "expected a whole number from 1 .*found '3.0'"),
    "one class": ("nr_class 3", "nr_class 1", 6, "expected at least 2 classes"),
    "more classes": ("nr_class 3", "nr_class 4", 9, "expected 4 values after label, found 3"),
    "huge": ("nr_class 3", "nr_class 99999999999999999999", 6, "expected a whole number"),
    "many classes": ("nr_class 3", "nr_class 2000000000", 9, "expected 2000000000 values after label"),
    "no rho": ("rho 0.5 -0.25 1e-3\n", "", "header", "expected a line rho"),
    "short rho": ("rho 0.5 ", "rho ", 8, "expected 3 values after rho, found 2"),
    "long rho": ("rho 0.5 ", "rho 0.5 0.5 ", 8, "expected 3 values after rho, found 4"),
    "no label": ("label 3 -1 7\n", "", "header", "expected a line label"),
    "text label": ("label 3 -1 7", "label 3 -1 x", 9, "whole number from -2147483648 to 2147483647 .*found 'x'"),
    "large label": ("label 3 -1 7", "label 3 -1 3000000000", 9, "whole number .*found '3000000000'"),
    "same label": ("label 3 -1 7", "label 3 -1 3", 9, "expected different labels"),
    "no sizes": ("nr_sv 2 1 1\n", "", "header", "expected a line nr_sv"),
    "negative size": ("nr_sv 2 1 1", "nr_sv 5 -2 1", 10, "whole number from 0 .*found '-2'"),
    "sizes": ("nr_sv 2 1 1", "nr_sv 2 1 2", 10, "as many support vectors as total_sv says, 4; .* are 5"),
    "more vectors": ("total_sv 4", "total_sv 5", 10, "as many support vectors as total_sv says, 5; .* are 4"),
    "no SV": ("SV\n", "", 11, "expected one of svm_type, .*found '1'"),
    "SV with a value": ("SV\n", "SV 4\n", 11, "expected 0 values after SV, found 1"),
    "marks": ("SV\n", "prob_density_marks 1 2\nSV\n", 11, "prob_density_marks does not belong to .* c_svc"),
    "probabilities": ("SV\n", "probA 1 2\nSV\n", 11, "expected 3 values after probA, found 2"),
    "unknown": ("SV\n", "sv_indices 1 2 3 4\nSV\n", 11, "found 'sv_indices'"),
    "comment": ("gamma 0.5\n", "# by hand\ngamma 0.5\n", 4, "found '#'"),
    "comment behind": ("gamma 0.5", "gamma 0.5 # by hand", 4, "expected 1 value after gamma, found 4"),
    "empty line": ("gamma 0.5\n", "\ngamma 0.5\n", 4, "expected one of .*found ''"),
    "no coefficient": ("1 0.5 1:0.5", "1 1:0.5", 12, "expected a finite number, found '1:0.5'"),
    "coefficient too many": ("1 0.5 1:0.5", "1 0.5 0.5 1:0.5", 12, "expected column:value .*found '0.5'"),
    "coefficients only": ("-0.5 -1 3:4", "-0.5", 15, "expected 2 coefficients, found 1"),
    "empty vector": ("0.25 -0 2:1e-3\n", "\n", 13, "expected 2 coefficients, found 0"),
    "nan coefficient": ("0.25 -0", "0.25 nan", 13, "expected a finite number, found 'nan'"),
    "nan value": ("2:1e-3", "2:nan", 13, "column 2, 'nan', is not a finite number"),
    "inf value": ("2:1e-3", "2:inf", 13, "column 2, 'inf', is not a finite number"),
    "too large": ("2:1e-3", "2:1e400", 13, "'1e400', is too large"),
    "no value": ("2:1e-3", "2:", 13, "the value of column 2 is missing"),
    "no column": ("2:1e-3", ":1e-3", 13, "expected column:value"),
    "order": ("1:1 2:.5", "2:1 1:.5", 14, "column 1 comes after column 2; columns must increase"),
    "twice": ("1:1 2:.5", "1:1 1:.5", 14, "column 1 occurs twice"),
    "negative column": ("1:1 2:.5", "-1:1 2:.5", 14, "expected column:value .*found '-1:1'"),
    "large column": ("3:4", "99999999999:4", 15, "above the largest allowed"),
    "comment in a vector": ("2:1e-3", "2:1e-3 # this one", 13, "found '#'; such files have no comments"),
    "vector more": (
        "-0.5 -1 3:4\n",
        "-0.5 -1 3:4\n1 1 1:1\n",
        16,
        "expected 4 lines of support vectors in all, found 5",
    ),
    "vector less": ("-0.5 -1 3:4\n", "", 15, "expected 4 lines of support vectors in all, found 3"),
    "empty line at the end": ("3:4\n", "3:4\n\n", 16, "expected 4 lines of support vectors in all, found 5"),
    "no end": ("3:4\n", "3:4", 15, "the last line has no end"),
    "no text": ("label 3", "label \xff\x00", 9, "whole number"),
    "mark": ("svm_type", "\ufeffsvm_type", 1, "no LIBSVM model file"),
    "other file": (
        "svm_type c_svc",
        "1:2 3:4",
        1,
        "no LIBSVM model file: expected svm_type first, but it begins with '1:2'",
    ),
    "linear with gamma": ("polynomial\ndegree 2\n", "linear\n", 3, "gamma does not belong to .* a Linear kernel"),
    "regression with labels": ("c_svc", "nu_svr", 6, "whole number from 2 to 2"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_files(name, tmp_path):
    old, new, line, problem = MALFORMED[name]
    assert GOOD.count(old) == 1 or name in ("no SV", "SV with a value", "marks", "probabilities", "unknown")
    where = GOOD.rindex(old)
    path = tmp_path / "bad.model"
    path.write_bytes((GOOD[:where] + new + GOOD[where + len(old) :]).encode())
    with pytest.raises(ModelFileError, match=problem) as caught:
        read_libsvm_model(path)
    place = "header" if line == "header" else f"line {line}"
    assert (caught.value.source, caught.value.place) == (str(path), place)
    assert str(caught.value).startswith(f"{path}, {place}: ")


PRECOMPUTED = "svm_type one_class\nkernel_type precomputed\nnr_class 2\ntotal_sv 2\nrho 1\nSV\n0.5 0:4 \n1 0:2 \n"


@pytest.mark.parametrize("cell", ["", "0:0", "0:-1", "0:1.5", "1:4", "0:4 1:2", "0:3000000000"])
def test_a_precomputed_kernel_has_numbers_of_rows(cell, tmp_path):
    (tmp_path / "model").write_text(PRECOMPUTED)
    machine = read_libsvm_model(tmp_path / "model")
    assert (machine.support_.tolist(), machine.n_features_in_) == ([3, 1], 4)
    (tmp_path / "model").write_text(PRECOMPUTED.replace("0:2", cell))
    with pytest.raises(ModelFileError, match="line 8: expected 0:number, with a whole number from 1"):
        read_libsvm_model(tmp_path / "model")


def test_the_same_in_other_dress(tmp_path):
    """Line ends of Windows, lines of the header in another order, and compressed."""
    path = tmp_path / "model"
    path.write_text(GOOD)
    X = np.random.default_rng(0).standard_normal((9, 3))
    expected = read_libsvm_model(path).decision_function(X)
    path.write_bytes(GOOD.replace("\n", "\r\n").encode())
    np.testing.assert_array_equal(read_libsvm_model(path).decision_function(X), expected)
    lines = GOOD.splitlines(keepends=True)
    path.write_text("".join([*lines[9::-1], *lines[10:]]))
    np.testing.assert_array_equal(read_libsvm_model(path).decision_function(X), expected)
    path.write_text(re.sub(r"(:\S+)", r"\1 ", GOOD))  # svm-train puts a blank behind each value
    np.testing.assert_array_equal(read_libsvm_model(path).decision_function(X), expected)
    packed = tmp_path / "model.gz"
    packed.write_bytes(gzip.compress(GOOD.encode()))
    np.testing.assert_array_equal(read_libsvm_model(packed).decision_function(X), expected)
    packed.write_bytes(gzip.compress(GOOD.encode())[:-9])
    with pytest.raises(ModelFileError, match="compressed file is damaged"):
        read_libsvm_model(packed)


def test_columns_that_count_from_0_and_columns_that_the_file_does_not_know(tmp_path):
    path = tmp_path / "model"
    path.write_text(GOOD)
    assert [read_libsvm_model(path, n_features=n).n_features_in_ for n in (None, 3, 7)] == [3, 3, 7]
    assert read_libsvm_model(path, zero_based=True).n_features_in_ == 4
    for few, problem in ((2, "there are 3 columns"), (0, "n_features must be"), (1.5, "n_features must be")):
        with pytest.raises(InputError, match=problem):
            read_libsvm_model(path, n_features=few)
    with pytest.raises(InputError, match="zero_based must be"):
        read_libsvm_model(path, zero_based=1)
    path.write_text(GOOD.replace("1:1 2:.5", "0:1 2:.5"))
    machine = read_libsvm_model(path)
    assert machine.n_features_in_ == 4
    np.testing.assert_array_equal(dense(machine.support_vectors_)[0], [1.0, 0.0, 0.5, 2.0])  # of the class -1
    with pytest.raises(ModelFileError, match="column 0 occurs"):
        read_libsvm_model(path, zero_based=False)


@pytest.mark.parametrize("kind", ["c_svc", "svr", "one_class"])
def test_a_file_cut_off_anywhere_is_refused(kind, tmp_path):
    machine, _ = fitted(kind, {"c_svc": 4}.get(kind, 0))
    text = content(machine, tmp_path).encode()
    ends = [place + 1 for place, byte in enumerate(text) if byte == ord("\n")]
    path = tmp_path / "cut"
    for size in [0, *ends[:-1], *range(1, len(text), 97), len(text) - 1]:
        path.write_bytes(text[:size])
        with pytest.raises(ModelFileError, match=r"cut, (line \d+|header): "):
            read_libsvm_model(path)
    path.write_bytes(text)
    read_libsvm_model(path)


def test_every_line_is_needed_and_none_may_come_twice(tmp_path):
    lines = GOOD.splitlines(keepends=True)
    path = tmp_path / "model"
    for i in range(len(lines)):
        for changed in (lines[:i] + lines[i + 1 :], lines[: i + 1] + lines[i:]):
            path.write_text("".join(changed))
            with pytest.raises(ModelFileError):
                read_libsvm_model(path)


def test_any_changed_byte_is_used_or_refused(tmp_path):
    """Whatever is read has the function that its text says: written again it reads the same."""
    rng, path = np.random.default_rng(0), tmp_path / "model"
    for _ in range(400):
        text = bytearray(GOOD.encode())
        text[rng.integers(len(text))] = rng.choice(np.frombuffer(b"0123456789.:-+eE \n\r\tx#n\x00\xff", dtype=np.uint8))
        path.write_bytes(bytes(text))
        try:
            machine = read_libsvm_model(path)
        except ModelFileError:
            continue
        X = np.zeros((2, machine.n_features_in_)) if machine.n_features_in_ < 1000 else None
        if isinstance(machine.kernel_.degree, int) and machine.kernel_.degree < 100:
            write_libsvm_model(machine, tmp_path / "again")
            again = read_libsvm_model(tmp_path / "again")
            assert again.intercept_.tolist() == machine.intercept_.tolist()
            assert X is None or np.isfinite(again.decision_function(X)).all()


def test_a_file_of_many_gigabytes_is_refused_by_its_first_bytes(tmp_path):
    path = tmp_path / "zeros"
    path.touch()
    os.truncate(path, 20 << 30)
    with pytest.raises(ModelFileError, match="no LIBSVM model file"):
        read_libsvm_model(path)


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_libsvm_model(tmp_path / "nothing")


def test_kernels_are_those_of_the_file(tmp_path):
    found = []
    for kernel in KERNELS:
        write_libsvm_model(fitted("svr", 0, kernel)[0], tmp_path / "model")
        found.append(read_libsvm_model(tmp_path / "model").kernel_)
    assert found == [Linear(), Polynomial(0.3, 1.5, 2), Gaussian(0.3), Sigmoid(0.05, -0.1)]
    (tmp_path / "model").write_text(PRECOMPUTED)
    assert read_libsvm_model(tmp_path / "model").kernel_ == Precomputed()
