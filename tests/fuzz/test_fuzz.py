"""Ten thousand cases in this process, and by name what longer runs have found; ``make fuzz`` runs a million."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import DataError, InputError, ModelFileError
from maxmargin.data import Encoding
from maxmargin.data.csv import CsvOptions, parse_csv
from maxmargin.models import Model, Scaling, from_bytes, to_bytes
from tests.fuzz import SHARES
from tests.fuzz.cases import SvmlightCase
from tests.fuzz.model_cases import Parts, Raw, good_models, packed
from tests.fuzz.targets import TARGETS, BrokenRule, run_model, run_svmlight

CASES, SEED = 10_000, 20


@pytest.mark.parametrize("target", sorted(SHARES))
def test_sample(target: str) -> None:
    outcomes = []
    for case in range(round(CASES * SHARES[target])):
        made = TARGETS[target].make(SEED, case)
        try:
            outcomes.append(TARGETS[target].run(made))
        except Exception as error:
            raise AssertionError(f"python -m tests.fuzz --target {target} --seed {SEED} --only {case}") from error
    # A sample that is nearly always refused, or never, tests little.
    assert 0.1 < np.mean(outcomes) < 0.9


@pytest.mark.parametrize("target", sorted(SHARES))
def test_cases_depend_on_seed_and_number_alone(target: str) -> None:
    make = TARGETS[target].make
    assert repr(make(3, 14)) == repr(make(3, 14)) != repr(make(3, 15))


def test_a_broken_rule_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    case = SvmlightCase(b"1 1:2\n-1 2:0.1\n", None, 1)
    assert run_svmlight(case)
    monkeypatch.setattr("maxmargin.data.svmlight.plain_labels", lambda labels: labels[:-1])
    with pytest.raises(BrokenRule):
        run_svmlight(case)


# --- found --------------------------------------------------------------------------------------------------------

PLAIN, FLOATS, SCALED, SPARSE_SCALED, _, _, ENCODED = range(7)  # of good_models


def forged(which: int, change: Callable[[Parts], object]) -> bytes:
    parts = copy.deepcopy(good_models()[which])
    change(parts)
    return packed(parts)


def put(*path: Any, value: Any) -> Callable[[Parts], object]:
    """A value somewhere in the document."""

    def change(parts: Parts) -> None:
        place = parts.document
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


def entry(**change: Any) -> Callable[[Parts], object]:
    return lambda parts: parts.entries.update(coef=change)


REFUSED = {
    "dtype is a list": (PLAIN, entry(dtype=[]), "tensor 'coef'"),
    "seventy dimensions": (PLAIN, entry(shape=[1] * 69 + [3]), "tensor 'coef'"),
    "fill of 400 digits": (ENCODED, put("encoding", 0, "fill", value=10**400), "encoding.0..fill"),
    "fill 1e400": (ENCODED, put("encoding", 0, "fill", value=Raw("1e400")), "encoding.0..fill"),
    "primal 1e400": (PLAIN, put("solution", "primal", value=Raw("1e400")), "solution.primal"),
    "history of 400 digits": (PLAIN, put("solution", "history", 0, 1, value=10**400), "solution.history"),
    "interval of 400 digits": (PLAIN, put("solution", "bias_interval", 0, value=10**400), "bias_interval"),
    "weight of 400 digits": (PLAIN, put("params", "class_weight", value=[[0, 10**400]]), "class_weight"),
    "weight is a number": (PLAIN, put("params", "class_weight", value=7), "class_weight"),
    "verbose 1e400": (PLAIN, put("params", "verbose", value=Raw("1e400")), "verbose"),
    "random state is a list": (PLAIN, put("params", "random_state", value=[1]), "random_state"),
    "infinite label": (FLOATS, put("classes", "values", 1, value=Raw("1e400")), "classes.values"),
    "half a character": (PLAIN, put("training", "source", value="\ud800"), "document"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_forgeries_are_refused(name: str) -> None:
    which, change, place = REFUSED[name]
    with pytest.raises(ModelFileError, match=place):
        from_bytes(forged(which, change))


@pytest.mark.parametrize(("tensor", "value"), [("coef", 1e308), ("scale", 1e-308)])
def test_scores_beyond_float64_are_refused(tensor: str, value: float) -> None:
    """No infinite score, and no warning instead of an error."""
    blob = forged(SCALED, lambda parts: parts.tensors[tensor].fill(value))
    with pytest.raises(InputError, match="row 0"):
        from_bytes(blob).decision_function(np.full((1, 3), 2.0))
    run_model(blob)


def test_rows_of_another_width_or_type() -> None:
    for which in (PLAIN, SCALED, SPARSE_SCALED):
        model = from_bytes(packed(good_models()[which]))
        X = np.arange(6).reshape(2, 3)
        expected = model.decision_function(X.astype(np.float64))
        np.testing.assert_allclose(model.decision_function(sp.csr_array(X)), expected)
        for wrong in (X[:, :1], X[0], np.full((2, 3), np.nan)):
            with pytest.raises(InputError):
                model.decision_function(wrong)


def test_columns_of_any_size_are_scaled() -> None:
    X = np.array([[1.0, 1e200, 1e-200], [2.0, -1e200, 3e-200]])
    scaled = Scaling.learn(X).apply(X)
    np.testing.assert_allclose(scaled, [[-1.0, 1.0, -1.0], [1.0, -1.0, 1.0]])
    for rows in (X, sp.csr_array(X)):
        with pytest.raises(InputError, match="column 1"):
            Scaling.learn(rows * [[1.0, np.inf, 1.0]])


def test_names_that_are_no_text_cannot_be_saved() -> None:
    model = from_bytes(packed(good_models()[PLAIN]))
    with pytest.raises(InputError, match="no valid text"):
        to_bytes(Model(model.machine, model.training, names=("\ud800", "b", "c")))


def test_the_mean_of_huge_numbers_fills_gaps() -> None:
    table = parse_csv(b"a,b\n1.7e308,1\n1.7e308,1\n,1\n", "case.csv")
    assert Encoding.learn(table, missing="mean").apply(table)[2, 0] == pytest.approx(1.7e308)


def test_the_zero_byte_is_no_delimiter() -> None:
    with pytest.raises(DataError, match="delimiter"):
        parse_csv(b"a,b\n1,2\n", "case.csv", options=CsvOptions(delimiter="\0"))


def test_bad_rows_that_are_not_utf8_are_an_error() -> None:
    with pytest.raises(DataError, match="line 3"):
        parse_csv(b"a,b\n1,2\n1,\xa0,3\n", "case.csv", bad_rows=[])
