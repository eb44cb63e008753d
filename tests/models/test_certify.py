"""certify accepts what was trained and rejects any changed number, even when the checksum was made to fit."""

from dataclasses import replace

import numpy as np
import pytest

from maxmargin import LinearSVC, ModelFileError
from maxmargin.certificates import Outcome
from maxmargin.data import Table, table_from_arrays
from maxmargin.data.csv import parse_csv
from maxmargin.models import Model, Scaling, certify, from_bytes, to_bytes, trained_on
from tests.conftest import tall
from tests.models.conftest import CSV, MODELS, table_model
from tests.models.test_file import unpacked, with_document


def data_of(name):
    X, y = tall(40, 3)
    if name == "table":
        return parse_csv(CSV, "t.csv")
    labels = MODELS[name]().machine.classes_
    return table_from_arrays(X, np.where(y > 0, labels[1], labels[0]))


@pytest.mark.parametrize("dual", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_accepts_every_saved_model(name, dual):
    model = from_bytes(to_bytes(MODELS[name](), dual=dual))
    verdict = certify(model, data_of(name))
    assert verdict, verdict


@pytest.mark.parametrize("name", MODELS)
def test_rejects_other_data(name):
    model, table = MODELS[name](), data_of(name)
    other = table.take(np.arange(table.n_rows)[::-1])
    assert not certify(model, other)
    assert not certify(model, replace(table, y=table.y[::-1]))


def changed_tensor(blob, name, place, factor):
    header, body = unpacked(blob)
    begin, _ = header[name]["data_offsets"]
    at = begin + 8 * place
    value = np.frombuffer(body[at : at + 8], "<f8")[0]
    body = body[:at] + np.float64(value * factor).tobytes() + body[at + 8 :]
    return value, header, body


def forged(blob, name, place, factor=1.001):
    """The file with one number changed, and a checksum that fits again; None if the number does not matter."""
    value, header, body = changed_tensor(blob, name, place, factor)
    if value == 0.0:
        return None
    from tests.models.test_file import packed

    return with_document(packed(header, body), lambda document: None)


@pytest.mark.parametrize("name", ["plain", "table", "penalised", "no bias", "subset"])
def test_rejects_each_changed_tensor_number(name):
    model, table = MODELS[name](), data_of(name)
    blob = to_bytes(model)
    header, body = unpacked(blob)
    n_forged = 0
    for tensor, entry in header.items():
        if tensor in ("__metadata__", "rows"):
            continue
        begin, end = entry["data_offsets"]
        numbers = np.abs(np.frombuffer(body[begin:end], "<f8"))
        # What rounding could have caused is beyond arithmetic; the checksum notices it all the same.
        for place in np.flatnonzero(numbers > 1e-3 * numbers.max()):
            changed = forged(blob, tensor, int(place))
            verdict = certify(from_bytes(changed), table)
            assert not verdict, (tensor, place, verdict)
            n_forged += 1
    assert n_forged > 10


@pytest.mark.parametrize("key", ["primal", "dual"])
def test_rejects_changed_objectives(key):
    blob = to_bytes(MODELS["plain"]())
    changed = with_document(blob, lambda d: d["solution"].update({key: d["solution"][key] * 1.001}))
    assert not certify(from_bytes(changed), data_of("plain"))


def test_rejects_changed_parameters():
    blob = to_bytes(MODELS["plain"]())
    for key, value in (("C", 1.001), ("loss", "hinge"), ("fit_intercept", False), ("class_weight", "balanced")):
        changed = with_document(blob, lambda d, key=key, value=value: d["params"].update({key: value}))
        assert not certify(from_bytes(changed), data_of("plain")), key


def test_rejects_changed_fill_values_and_levels():
    blob = to_bytes(table_model())

    def other_fill(document):
        document["encoding"][2]["fill"] *= 1.001

    def other_level(document):
        document["encoding"][1]["levels"][0] = "Bonn"

    def other_name(document):
        other_level(document)
        document["feature_names"][1] = "town=Bonn"

    def no_fill(document):
        document["encoding"][0]["fill"] = None

    for change in (other_fill, other_name, no_fill):
        assert not certify(from_bytes(with_document(blob, change)), data_of("table"))
    with pytest.raises(ModelFileError, match="feature names"):
        from_bytes(with_document(blob, other_level))


def forged_model(model, **parts):
    """A model file with other weights and claims, and a checksum that fits."""
    import copy

    machine = copy.deepcopy(model.machine)
    solution = replace(machine.solution_, **parts)
    signs = np.zeros(model.training.n_rows)
    signs[machine.support_] = np.sign(machine.dual_coef_[0])
    machine._store(machine.classes_, solution, signs * solution.alpha)
    return from_bytes(to_bytes(replace(model, machine=machine)))


def test_a_poor_model_cannot_claim_to_have_converged():
    model, table = MODELS["plain"](), data_of("plain")
    X, y = table.columns, np.where(table.y == "yes", 1.0, -1.0)
    rate = y.mean()
    primal = float(np.sum(np.maximum(0.0, 1.0 - y * rate) ** 2)) * (1.0 + 1e-14)
    parts = {"w": np.zeros(3), "b": rate, "alpha": np.zeros(len(X)), "primal": primal, "dual": 0.0, "gap": 1.0}
    verdict = certify(forged_model(model, **parts), table)
    assert not verdict
    assert verdict.worst == "status", str(verdict)
    from maxmargin import Status

    honest = certify(forged_model(model, **parts, status=Status.ITERATION_LIMIT), table)
    assert honest.outcome is Outcome.HONEST
    assert honest.gap == pytest.approx(1.0)


def test_signs_of_the_dual_point():
    model, table = MODELS["plain"](), data_of("plain")
    model.machine.dual_coef_ = -model.machine.dual_coef_
    verdict = certify(from_bytes(to_bytes(model)), table)
    assert verdict.worst == "signs of the dual point"


def test_without_dual_point_a_wrong_hyperplane_is_noticed():
    model, table = MODELS["plain"](), data_of("plain")
    X, y = table.columns, np.where(table.y == "yes", 1.0, -1.0)
    w, b = -model.machine.coef_[0], -float(model.machine.intercept_[0])
    primal = 0.5 * float(w @ w) + float(np.sum(np.maximum(0.0, 1.0 - y * (X @ w + b)) ** 2))
    for dual in (model.machine.solution_.dual, -10.0 * primal, primal):
        gap = (primal - dual) / max(abs(primal), abs(dual))
        forged = forged_model(model, w=w, b=b, primal=primal, dual=dual, gap=gap)
        assert not certify(from_bytes(to_bytes(forged, dual=False)), table)


def test_weights_are_saved_and_certified():
    X, y = tall(40, 3)
    weight = np.random.default_rng(0).integers(0, 4, 40).astype(float)
    model = Model(LinearSVC(C=0.3).fit(X, y, sample_weight=weight), trained_on(X, y))
    for dual in (True, False):
        back = from_bytes(to_bytes(model, dual=dual))
        np.testing.assert_array_equal(back.machine._sample_weight, weight)
        assert certify(back, table_from_arrays(X, y))


def test_parameters_changed_after_the_fit_do_not_matter():
    model, table = MODELS["plain"](), data_of("plain")
    model.machine.set_params(C=5.0, loss="hinge")
    assert certify(from_bytes(to_bytes(model)), table)


def test_huge_and_tiny_columns():
    generator = np.random.default_rng(1)
    X, y = generator.normal(size=(60, 3)) * [1e200, 1e-200, 1.0], np.repeat([0, 1], 30)
    scaling = Scaling.learn(X)
    np.testing.assert_allclose(scaling.apply(X).std(axis=0), 1.0)
    model = Model(LinearSVC().fit(scaling.apply(X), y), trained_on(X, y), scaling=scaling)
    assert certify(from_bytes(to_bytes(model)), table_from_arrays(X, y))


def test_the_same_rows_from_a_sparse_file():
    import scipy.sparse as sp

    X, y = tall(40, 3)
    for first, second in ((X, sp.csr_array(X)), (sp.csr_array(X), X)):
        scaling = Scaling.learn(first)
        model = Model(LinearSVC().fit(scaling.apply(first), y), trained_on(first, y), scaling=scaling)
        assert certify(model, table_from_arrays(second, y))


def test_scaling_of_constant_and_large_columns():
    generator = np.random.default_rng(1)
    X = generator.normal(size=(60, 3)) * [1.0, 1e-3, 1e5] + [1e6, 0.0, 3.0]
    X = np.column_stack([X, np.full(60, 7.3), np.zeros(60)])
    y = np.where(generator.normal(size=60) > 0, "p", "q")
    scaling = Scaling.learn(X)
    np.testing.assert_allclose(scaling.scale[:3], X[:, :3].std(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(scaling.scale[3:], 1.0)
    model = Model(LinearSVC().fit(scaling.apply(X), y), trained_on(X, y), scaling=scaling)
    assert certify(from_bytes(to_bytes(model)), table_from_arrays(X, y))


def test_unfinished_models_are_certified_with_their_gap():
    X, y = tall(2000, 5)
    machine = LinearSVC(loss="hinge", C=100.0, max_iter=2, solver="interior_point")
    with pytest.warns(UserWarning, match="stopped at a relative gap"):
        machine.fit(X, y)
    model = Model(machine, trained_on(X, y))
    verdict = certify(from_bytes(to_bytes(model)), table_from_arrays(X, y))
    assert verdict.outcome is Outcome.HONEST
    assert verdict.gap > 1e-6
    assert certify(model, table_from_arrays(X, y), max_gap=1.0)


def test_a_subset_needs_the_whole_file():
    from maxmargin import DataError

    model = MODELS["subset"]()
    X, y = tall(40, 3)
    assert certify(model, Table("t", X, None, y))
    assert certify(model, Table("t", X[::2], None, y[::2]))  # the training rows alone
    with pytest.raises(DataError, match="row 38"):
        certify(model, Table("t", X[:30], None, y[:30]))
