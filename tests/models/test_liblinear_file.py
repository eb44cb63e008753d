"""LIBLINEAR's model files: LIBLINEAR itself reads what is written, and what it writes is read; nothing malformed is."""

import itertools
import os
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from liblinear import liblinear, liblinearutil
from sklearn.base import clone

from maxmargin import InputError, ModelFileError, load, read_liblinear_model, save, write_liblinear_model
from maxmargin.models.liblinear_file import SOLVERS
from maxmargin.models.loaded import NotInFileError
from maxmargin.svm import SVC, LinearSVC, LinearSVR, LogisticRegression
from tests.models.test_libsvm_file import broken_in, rows

NUMBERS = dict(liblinear.solver_names.__members__)
REGRESSIONS = [name for name in SOLVERS if "SVR" in name]
CASES = [(name, k) for name in SOLVERS for k in ((0,) if name in REGRESSIONS else (2, 4))]

MACHINES = {
    "squared hinge": (lambda: LinearSVC(C=0.5), "L2R_L2LOSS_SVC"),
    "hinge": (lambda: LinearSVC(loss="hinge", C=0.5), "L2R_L1LOSS_SVC_DUAL"),
    "power": (lambda: LinearSVC(loss=1.0), "L2R_L1LOSS_SVC_DUAL"),
    "l1": (lambda: LinearSVC(penalty="l1", C=0.5), "L1R_L2LOSS_SVC"),
    "no bias": (lambda: LinearSVC(fit_intercept=False), "L2R_L2LOSS_SVC"),
    "penalised bias": (lambda: LinearSVC(penalize_intercept=True, intercept_scaling=3.0), "L2R_L2LOSS_SVC"),
    "joint": (lambda: LinearSVC(multi_class="crammer_singer"), "MCSVM_CS"),
    "logistic": (lambda: LogisticRegression(multi_class="ovr"), "L2R_LR"),
    "l1 logistic": (lambda: LogisticRegression(penalty="l1"), "L1R_LR"),
    "regression": (lambda: LinearSVR(), "L2R_L1LOSS_SVR_DUAL"),
    "squared regression": (lambda: LinearSVR(loss="squared_epsilon_insensitive"), "L2R_L2LOSS_SVR"),
}


def scores_of_liblinear(path, X, probabilities=False):
    """Decisions, decision values (one of two classes, else one per label), and the labels, if there are any.

    By the library's own functions: its wrapper in Python has too little room for two joint classes.
    """
    model = liblinearutil.load_model(str(path))
    assert model is not None
    name = liblinear.solver_names(model.param.solver_type).name
    k = model.get_nr_class()
    width = 1 if k == 2 and name != "MCSVM_CS" and not probabilities else k
    compute = liblinear.liblinear.predict_probability if probabilities else liblinear.liblinear.predict_values
    decided, values = [], np.empty((len(X), width))
    for i, row in enumerate(X):
        nodes, _ = liblinear.gen_feature_nodearray(row, feature_max=model.get_nr_feature())
        if model.bias >= 0.0:
            nodes[-2] = liblinear.feature_node(model.get_nr_feature() + 1, model.bias)
        found = (liblinear.c_double * k)()
        decided.append(compute(model, nodes, found))
        values[i] = found[:width]
    return np.array(decided), values, model.get_labels() if model.label else None


def train(X, y, solver, bias, path, options=""):
    model = liblinearutil.train(y.astype(float), X, f"-s {int(NUMBERS[solver])} -B {bias} -q {options}")
    liblinearutil.save_model(str(path), model)


def label_scores(machine, X, labels, columns):
    """Decision values as LIBLINEAR orders them; of two classes positive for the first one."""
    if labels is None:
        return machine.predict(X)[:, None]
    scores = machine.decision_function(X)
    place = [machine.classes_.tolist().index(label) for label in labels]
    if len(labels) > 2:
        return scores[:, place]
    signed = scores if place[0] == 1 else -scores
    return signed[:, None] if columns == 1 else np.stack([0.5 * signed, -0.5 * signed], axis=1)


def data_for(name, n_classes):
    return rows(0 if "regression" in name else n_classes)


def fitted(name, n_classes, *, sparse=False):
    X, y = data_for(name, n_classes)
    return MACHINES[name][0]().fit(sp.csr_array(X) if sparse else X, y), X


# --- LIBLINEAR reads ours, and we read LIBLINEAR's -----------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", MACHINES)
def test_liblinear_computes_the_same_from_our_files(name, n_classes, sparse, tmp_path):
    machine, X = fitted(name, n_classes, sparse=sparse)
    write_liblinear_model(machine, tmp_path / "model")
    solver = "L2R_L1LOSS_SVC_DUAL" if (name, n_classes) == ("joint", 2) else MACHINES[name][1]
    lines = (tmp_path / "model").read_text().splitlines()
    assert lines[0] == f"solver_type {solver}"
    assert ("bias -1" if name == "no bias" else "bias 1") in lines
    both = np.vstack([X, np.random.default_rng(1).standard_normal((20, 5)), np.zeros((1, 5))])
    decided, values, labels = scores_of_liblinear(tmp_path / "model", both)
    np.testing.assert_allclose(label_scores(machine, both, labels, values.shape[1]), values, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(machine.predict(both), decided, atol=1e-10)
    if solver.endswith("LR"):
        _, found, _ = scores_of_liblinear(tmp_path / "model", both, probabilities=True)
        columns = [machine.classes_.tolist().index(label) for label in labels]
        np.testing.assert_allclose(machine.predict_proba(both)[:, columns], found, atol=1e-10)


@pytest.mark.parametrize("bias", [-1, 0, 1, 2.5])
@pytest.mark.parametrize(("solver", "n_classes"), CASES)
def test_we_compute_the_same_from_liblinears_files(solver, n_classes, bias, tmp_path):
    X, y = rows(n_classes)
    train(X, y, solver, bias, tmp_path / "model")
    machine = read_liblinear_model(tmp_path / "model")
    assert isinstance(machine, LinearSVR if n_classes == 0 else LogisticRegression if "_LR" in solver else LinearSVC)
    assert machine.fit_intercept == (bias > 0)
    assert bias <= 0 or (machine.penalize_intercept, machine.intercept_scaling) == (True, bias)
    both = np.vstack([X, np.random.default_rng(1).standard_normal((20, 5)), np.zeros((1, 5))])
    decided, values, labels = scores_of_liblinear(tmp_path / "model", both)
    for form in (np.asarray, sp.csr_array):
        scores = label_scores(machine, form(both), labels, values.shape[1])
        np.testing.assert_allclose(scores, values, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(machine.predict(form(both)), decided, atol=1e-10)
    if n_classes:
        assert machine.classes_.tolist() == sorted(labels)
    if "_LR" in solver:
        _, found, _ = scores_of_liblinear(tmp_path / "model", both, probabilities=True)
        columns = [machine.classes_.tolist().index(label) for label in labels]
        np.testing.assert_allclose(machine.predict_proba(both)[:, columns], found, atol=1e-10)


@pytest.mark.parametrize(
    ("ours", "solver", "options"),
    [
        (lambda: LinearSVC(C=0.5, penalize_intercept=True), "L2R_L2LOSS_SVC", "-c 0.5 -e 1e-9"),
        (lambda: LinearSVC(C=0.5, penalize_intercept=True, loss="hinge"), "L2R_L1LOSS_SVC_DUAL", "-c 0.5 -e 1e-9"),
        (lambda: LogisticRegression(penalize_intercept=True, multi_class="ovr"), "L2R_LR", "-c 1 -e 1e-9"),
        (lambda: LinearSVC(multi_class="crammer_singer", penalize_intercept=True), "MCSVM_CS", "-c 1 -e 1e-9"),
    ],
)
def test_both_mean_the_same_problem_by_a_solvers_name(ours, solver, options, tmp_path):
    X, y = rows(4)
    train(X, y, solver, 1, tmp_path / "theirs", options)
    machine, read = ours().fit(X, y), read_liblinear_model(tmp_path / "theirs")
    np.testing.assert_allclose(read.coef_, machine.coef_, atol=1e-4)
    np.testing.assert_allclose(read.intercept_, machine.intercept_, atol=1e-4)
    again = clone(read).set_params(C=machine.C).fit(X, y)  # the parameters that the file tells are those of the fit
    np.testing.assert_allclose(again.coef_, machine.coef_, atol=1e-5)


# --- nothing is lost on the way -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", MACHINES)
def test_every_bit_comes_back(name, n_classes, tmp_path):
    machine, X = fitted(name, n_classes)
    write_liblinear_model(machine, tmp_path / "model")
    again = read_liblinear_model(tmp_path / "model")
    for attribute in ("coef_", "intercept_", "classes_"):
        assert hasattr(again, attribute) == hasattr(machine, attribute)
        if hasattr(machine, attribute):
            np.testing.assert_array_equal(getattr(again, attribute), getattr(machine, attribute))
            assert getattr(again, attribute).shape == getattr(machine, attribute).shape
    assert again.n_features_in_ == machine.n_features_in_
    np.testing.assert_array_equal(again.predict(X), machine.predict(X))
    write_liblinear_model(again, tmp_path / "again")
    assert (tmp_path / "again").read_text() == (tmp_path / "model").read_text()


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_file_of_liblinear_that_is_written_again_is_the_same_to_liblinear(n_classes, sign, tmp_path):
    X, y = rows(n_classes)
    for solver in ("L2R_LR_DUAL", "MCSVM_CS"):
        train(X, sign * y, solver, 2.5, tmp_path / "theirs")
        write_liblinear_model(read_liblinear_model(tmp_path / "theirs"), tmp_path / "ours")
        before, after = (scores_of_liblinear(tmp_path / name, X) for name in ("theirs", "ours"))
        assert before[2] == after[2]
        np.testing.assert_array_equal(before[0], after[0])
        if (solver, n_classes) != ("MCSVM_CS", 2):  # one machine then, as it is the same
            np.testing.assert_allclose(before[1], after[1], rtol=1e-12)


def test_sparsified_machines(tmp_path):
    X, y = rows(4)
    machine = LinearSVC(penalty="l1", C=0.1).fit(X, y)
    write_liblinear_model(machine, tmp_path / "dense")
    write_liblinear_model(machine.sparsify(), tmp_path / "sparse")
    assert (tmp_path / "dense").read_bytes() == (tmp_path / "sparse").read_bytes()


def test_what_was_fitted_counts_not_a_parameter_that_changed_since(tmp_path):
    X, y = rows(2)
    machine = LinearSVC(loss="hinge").fit(X, y).set_params(loss="squared_hinge")
    write_liblinear_model(machine, tmp_path / "model")
    assert (tmp_path / "model").read_text().startswith("solver_type L2R_L1LOSS_SVC_DUAL\n")


# --- what a read machine is -----------------------------------------------------------------------------------------

TWO = "solver_type L2R_L2LOSS_SVC\nnr_class {}\nlabel {}\nnr_feature {}\nbias -1\nw\n{}"


@pytest.mark.parametrize("labels", ["1 2", "2 1", "1 2 3", "3 1 2", "2 3 1", "3 2 1"])
def test_ties_are_decided_as_liblinear_decides_them(labels, tmp_path):
    k = len(labels.split())
    weights = "1 \n-1 \n0 \n" if k == 2 else "1 0 0 \n0 1 0 \n0 0 1 \n"
    (tmp_path / "model").write_text(TWO.format(k, labels, 3, weights))
    machine = read_liblinear_model(tmp_path / "model")
    X = np.array(list(itertools.product([0.0, 1.0, -1.0], repeat=3)))
    decided = scores_of_liblinear(tmp_path / "model", X)[0]
    np.testing.assert_array_equal(machine.predict(X), decided)
    logistic = tmp_path / "logistic"
    logistic.write_text((tmp_path / "model").read_text().replace("L2R_L2LOSS_SVC", "L2R_LR"))
    machine = read_liblinear_model(logistic)
    np.testing.assert_array_equal(machine.classes_[machine.predict_proba(X).argmax(axis=1)], decided)


@pytest.mark.parametrize("name", ["squared hinge", "joint", "logistic", "regression"])
def test_there_is_no_proof_and_the_error_says_so(name, tmp_path):
    machine, X = fitted(name, 4)
    write_liblinear_model(machine, tmp_path / "model")
    again = read_liblinear_model(tmp_path / "model")
    for attribute in ("certificate_", "solution_", "objective_", "support_", "dual_coef_", "free_", "n_iter_"):
        assert not hasattr(again, attribute)
        with pytest.raises(NotInFileError, match=rf"{attribute} is unknown: .* read from a LIBLINEAR model.*no proof"):
            getattr(again, attribute)
    with pytest.raises(InputError):
        save(again, tmp_path / "m.safetensors")
    same = pickle.loads(pickle.dumps(again))
    np.testing.assert_array_equal(same.predict(X), machine.predict(X))
    y = data_for(name, 4)[1]
    with pytest.raises(InputError):
        again.fit(X, y[:3])
    np.testing.assert_array_equal(again.predict(X), machine.predict(X))
    assert again.fit(X, y) is again
    assert type(again) is type(machine)
    assert again.certificate_.verify(X, y)
    fresh = type(machine)(**again.get_params()).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), fresh.predict(X))
    assert again.score(X, y) == fresh.score(X, y)


def test_a_machine_that_was_fitted_again_is_saved_as_any(tmp_path):
    X, y = rows(2)
    write_liblinear_model(LinearSVC().fit(X, y), tmp_path / "model")
    machine = read_liblinear_model(tmp_path / "model").fit(X, y)
    save(machine, tmp_path / "m.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "m.safetensors").machine.predict(X), machine.predict(X))


def test_slacks_of_a_regression_need_what_the_file_does_not_hold(tmp_path):
    machine, X = fitted("regression", 0)
    y = data_for("regression", 0)[1]
    write_liblinear_model(machine, tmp_path / "model")
    again = read_liblinear_model(tmp_path / "model")
    with pytest.raises(NotInFileError, match="epsilon is unknown"):
        again.slacks(X, y)
    np.testing.assert_array_equal(again.fit(X, y).slacks(X, y), again.slacks(X, y))


def test_margins_and_scores_are_known(tmp_path):
    machine, X = fitted("squared hinge", 4)
    y = rows(4)[1]
    write_liblinear_model(machine, tmp_path / "model")
    again = read_liblinear_model(tmp_path / "model")
    np.testing.assert_array_equal(again.margins(X, y), machine.margins(X, y))
    np.testing.assert_array_equal(again.margin_, machine.margin_)
    assert again.score(X, y) == machine.score(X, y)


def test_columns_that_the_file_does_not_know_have_weight_0(tmp_path):
    machine, X = fitted("logistic", 4)
    write_liblinear_model(machine, tmp_path / "model")
    wide = np.column_stack([X, np.full(len(X), 1e3)])
    again = read_liblinear_model(tmp_path / "model", n_features=6)
    np.testing.assert_array_equal(again.predict(wide), scores_of_liblinear(tmp_path / "model", wide)[0])
    with pytest.raises(ModelFileError, match="there are 5 columns, but n_features says only 4"):
        read_liblinear_model(tmp_path / "model", n_features=4)
    with pytest.raises(InputError, match="n_features must be a whole number"):
        read_liblinear_model(tmp_path / "model", n_features=True)


def test_our_probabilities_are_not_written_and_a_warning_says_so(tmp_path):
    X, y = rows(2)
    with pytest.warns(UserWarning, match="probabilities are not written"):
        write_liblinear_model(LinearSVC(probability=True).fit(X, y), tmp_path / "model")


# --- what cannot be written -----------------------------------------------------------------------------------------

X4, Y4 = rows(4)
UNWRITABLE = {
    "text": (lambda: LinearSVC().fit(X4, np.array(list("abcd"))[np.arange(48) % 4]), "class 'a'.*LabelEncoder"),
    "pairs": (lambda: LinearSVC(multi_class="ovo").fit(X4, Y4), "multi_class='ovr'"),
    "multinomial": (lambda: LogisticRegression().fit(X4, Y4), r"loss 'multinomial'.*multi_class='ovr'"),
    "power": (lambda: LinearSVC(loss=1.5).fit(X4, Y4), r"loss 'slack_power'.*LIBLINEAR has solvers for squared_hinge"),
    "unfitted": (lambda: LinearSVC(), "LinearSVC is not fitted yet"),
    "kernel": (lambda: SVC().fit(X4, Y4), "SVC cannot be written.*known are LinearSVC"),
    "nan": (lambda: broken_in("coef_", LinearSVC().fit(X4, Y4)), "not finite"),
}


@pytest.mark.parametrize("name", UNWRITABLE)
def test_what_cannot_be_written_says_so_and_leaves_no_file(name, tmp_path):
    make, problem = UNWRITABLE[name]
    with pytest.raises(InputError, match=problem):
        write_liblinear_model(make(), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


# --- what cannot be read --------------------------------------------------------------------------------------------

GOOD = """solver_type L2R_L2LOSS_SVC
nr_class 3
label 3 -1 7
nr_feature 2
bias 0.5
w
1 2 -3
.25 -0 1e-3
4 5. 6
"""
MALFORMED = {  # what is replaced, by what, the line of the error, what it says
    "solver": ("L2R_L2LOSS_SVC", "L3R", 1, "expected solver_type to be one of L2R_L2LOSS_SVC, .*found 'L3R'"),
    "one class": ("L2R_L2LOSS_SVC", "ONECLASS_SVM", 1, "found 'ONECLASS_SVM'"),
    "no solver": ("solver_type L2R_L2LOSS_SVC\n", "", "header", "expected a line solver_type"),
    "no value": ("solver_type L2R_L2LOSS_SVC", "solver_type", 1, "expected 1 value after solver_type, found 0"),
    "two solvers": ("nr_class 3\n", "nr_class 3\nnr_class 3\n", 3, "nr_class occurs twice, here and on line 2"),
    "no classes": ("nr_class 3\n", "", "header", "expected a line nr_class"),
    "a single class": ("nr_class 3", "nr_class 1", 2, "expected at least 2 classes"),
    "negative": ("nr_class 3", "nr_class -3", 2, "whole number from 1 .*found '-3'"),
    "many classes": ("nr_class 3", "nr_class 2000000000", 3, "expected 2000000000 values after label, found 3"),
    "fewer classes": ("nr_class 3", "nr_class 2", 3, "expected 2 values after label, found 3"),
    "no label": ("label 3 -1 7\n", "", "header", "expected a line label"),
    "same label": ("label 3 -1 7", "label 3 3 7", 3, "expected different labels"),
    "fractional label": ("label 3 -1 7", "label 3 -1 7.5", 3, "whole number .*found '7.5'"),
    "no width": ("nr_feature 2\n", "", "header", "expected a line nr_feature"),
    "no columns": ("nr_feature 2", "nr_feature 0", 4, "whole number from 1 .*found '0'"),
    "wider": ("nr_feature 2", "nr_feature 3", 10, "expected 4 lines of weights in all, found 3"),
    "narrower": ("nr_feature 2", "nr_feature 1", 9, "expected 2 lines of weights in all, found 3"),
    "huge": ("nr_feature 2", "nr_feature 2000000000", 10, "expected 2000000001 lines of weights in all, found 3"),
    "beyond": ("nr_feature 2", "nr_feature 1e3", 4, "whole number .*found '1e3'"),
    "no bias": ("bias 0.5\n", "", "header", "expected a line bias"),
    "bias nan": ("bias 0.5", "bias nan", 5, "expected a finite number, found 'nan'"),
    "other bias": ("bias 0.5", "bias -1", 9, "expected 2 lines of weights in all, found 3"),
    "infinite product": ("bias 0.5", "bias 1e308", 9, "product with the bias, 1e\\+308, is finite"),
    "rho": ("w\n", "rho 0.5\nw\n", 6, "rho does not belong to a machine by the solver L2R_L2LOSS_SVC"),
    "unknown": ("w\n", "v\n", 6, "expected one of solver_type, .*found 'v'"),
    "no w": ("w\n", "", 6, "expected one of solver_type, .*found '1'"),
    "nothing after w": ("w\n1 2 -3\n.25 -0 1e-3\n4 5. 6\n", "w\n", 7, "expected 3 lines of weights in all, found 0"),
    "comment": ("w\n", "# weights\nw\n", 6, "found '#'"),
    "few weights": ("1 2 -3", "1 2", 7, "expected 3 weights, found 2"),
    "many weights": ("1 2 -3", "1 2 -3 4", 7, "expected 3 weights, found 4"),
    "empty line": ("1 2 -3\n", "\n", 7, "expected 3 weights, found 0"),
    "nan": (".25 -0 1e-3", ".25 nan 1e-3", 8, "expected a finite number, found 'nan'"),
    "infinity": (".25 -0 1e-3", ".25 -Inf 1e-3", 8, "expected a finite number, found '-Inf'"),
    "overflow": (".25 -0 1e-3", ".25 -0 1e309", 8, "expected a finite number, found '1e309'"),
    "text": (".25 -0 1e-3", ".25 x 1e-3", 8, "expected a finite number, found 'x'"),
    "hexadecimal": (".25 -0 1e-3", ".25 0x1 1e-3", 8, "expected a finite number, found '0x1'"),
    "comma": (".25 -0 1e-3", "0,25 -0 1e-3", 8, "expected a finite number, found '0,25'"),
    "line too many": ("4 5. 6\n", "4 5. 6\n7 8 9\n", 10, "expected 3 lines of weights in all, found 4"),
    "line too few": ("4 5. 6\n", "", 9, "expected 3 lines of weights in all, found 2"),
    "no end": ("4 5. 6\n", "4 5. 6", 9, "the last line has no end"),
    "regression": ("L2R_L2LOSS_SVC\nnr_class 3", "L2R_L2LOSS_SVR\nnr_class 2", 3, "label does not belong to .*SVR"),
    "LIBSVM": ("solver_type L2R_L2LOSS_SVC", "svm_type c_svc", 1, "no LIBLINEAR model file: .*begins with 'svm_type'"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_files(name, tmp_path):
    old, new, line, problem = MALFORMED[name]
    assert GOOD.count(old) == 1
    path = tmp_path / "bad.model"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(ModelFileError, match=problem) as caught:
        read_liblinear_model(path)
    place = "header" if line == "header" else f"line {line}"
    assert (caught.value.source, caught.value.place) == (str(path), place)


@pytest.mark.parametrize("name", ["joint", "logistic", "regression"])
def test_a_file_cut_off_anywhere_is_refused(name, tmp_path):
    write_liblinear_model(fitted(name, 4)[0], tmp_path / "model")
    text = (tmp_path / "model").read_bytes()
    path = tmp_path / "cut"
    for size in range(len(text)):
        path.write_bytes(text[:size])
        with pytest.raises(ModelFileError, match=r"cut, (line \d+|header): "):
            read_liblinear_model(path)
    path.write_bytes(text)
    read_liblinear_model(path)


def test_every_line_is_needed_and_none_may_come_twice(tmp_path):
    lines, path = GOOD.splitlines(keepends=True), tmp_path / "model"
    for i in range(len(lines)):
        for changed in (lines[:i] + lines[i + 1 :], lines[: i + 1] + lines[i:]):
            path.write_text("".join(changed))
            with pytest.raises(ModelFileError):
                read_liblinear_model(path)


def test_the_same_in_other_dress(tmp_path):
    path = tmp_path / "model"
    path.write_text(GOOD)
    expected = read_liblinear_model(path)
    np.testing.assert_array_equal(expected.classes_, [-1, 3, 7])
    np.testing.assert_array_equal(expected.coef_, [[2.0, -0.0], [1.0, 0.25], [-3.0, 1e-3]])
    np.testing.assert_array_equal(expected.intercept_, [2.5, 2.0, 3.0])
    lines = GOOD.splitlines(keepends=True)
    for text in (GOOD.replace("\n", " \r\n"), "".join([*lines[4::-1], *lines[5:]])):
        path.write_bytes(text.encode())
        again = read_liblinear_model(path)
        np.testing.assert_array_equal(again.coef_, expected.coef_)
        np.testing.assert_array_equal(again.intercept_, expected.intercept_)


def test_a_file_of_many_gigabytes_is_refused_by_its_first_bytes(tmp_path):
    path = tmp_path / "zeros"
    path.touch()
    os.truncate(path, 20 << 30)
    with pytest.raises(ModelFileError, match="no LIBLINEAR model file"):
        read_liblinear_model(path)
