"""Every recorded fit again: the same status, and weights within what both certificates allow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.contracts.fits import cases, compare, reference, run
from tests.contracts.fits_branches import EXPECTED, Branches, watched
from tests.contracts.fits_record import Record, difference, learned, make_record

Fitted = tuple[dict[str, Record], Branches]
PARTS = 10  # of all fits, so that each test is short where threads have to share their processors


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    """All fits on one thread, and the branches they entered."""
    records = {}
    with watched() as branches:
        for name, case in cases().items():
            branches.fit = name
            records[name] = run(case, 1)
    return records, branches


@pytest.fixture(scope="module")
def recorded() -> dict[str, Record]:
    return reference()


@pytest.mark.parametrize("name", cases())
def test_a_fit_is_the_recorded_one(name: str, fitted: Fitted, recorded: dict[str, Record]) -> None:
    assert name in recorded, "not recorded yet: make record-fits"
    assert difference(fitted[0][name], recorded[name]) == ""


def test_nothing_is_recorded_that_is_not_fitted(recorded: dict[str, Record]) -> None:
    assert recorded.keys() <= cases().keys()


def test_every_branch_is_entered_by_some_fit(fitted: Fitted) -> None:
    entered = fitted[1].entered
    assert sorted(EXPECTED - entered.keys()) == []
    assert sorted(entered.keys() - EXPECTED) == [], "branches that are not expected yet: add them to EXPECTED"


@pytest.mark.parametrize("turn", range(PARTS))
def test_the_number_of_threads_changes_no_bit(turn: int, fitted: Fitted) -> None:
    names = list(cases())[turn::PARTS]
    again = {name: run(cases()[name], 3).digest for name in names}
    assert [name for name in names if fitted[0][name].digest != again[name]] == []


# --- the comparison itself --------------------------------------------------------------------------------------------


def proven(w: list[float], b: float, bound: float, primal: float = 1.0, reach: float = 2.0) -> Record:
    return make_record(
        [w], b, how="proven", status="CONVERGED", gap=0.0, steps=1, bounds=(bound,), primal=(primal,),
        dual=(primal - 0.5 * bound**2,), bias_reach=reach,
    )  # fmt: skip


def test_certified_weights_may_differ_by_the_sum_of_their_bounds() -> None:
    one = proven([1.0, 2.0], 0.0, 0.1)
    assert difference(proven([1.19, 2.0], 0.0, 0.1), one) == ""
    assert "weights 0 differ by 0.21" in difference(proven([1.21, 2.0], 0.0, 0.1), one)
    assert difference(proven([1.21, 2.0], 0.0, 0.2), one) == ""


def test_a_bias_may_move_as_far_as_the_scores() -> None:
    one = proven([1.0], 0.0, 0.1)
    assert difference(proven([1.0], 0.39, 0.1), one) == ""
    assert "bias 0 differs by 0.41" in difference(proven([1.0], 0.41, 0.1), one)
    unknown = replace(one, bias_reach=np.inf)
    assert difference(replace(unknown, biases=(9.0,)), unknown) == ""


def test_no_objective_lies_below_a_proven_bound() -> None:
    one = proven([1.0], 0.0, 0.1, primal=1.0)
    assert "proves that no objective is below" in difference(one, proven([1.0], 0.0, 0.1, primal=0.99))
    assert difference(one, proven([1.0], 0.0, 0.1, primal=0.997)) == ""


def test_vectors_that_are_kept_in_part_are_told_apart_by_their_norm() -> None:
    w = np.ones(1000)
    one = learned([w], 0.0)
    w[900] = 1.1
    assert len(one.weights[0]) < 900
    assert "weights 0 differ" in difference(learned([w], 0.0), one)


def test_weights_without_a_proof_agree_to_rounding_or_exactly() -> None:
    assert difference(learned([[1.0 + 1e-12]], 0.0), learned([[1.0]], 0.0)) == ""
    assert "weights 0 differ" in difference(learned([[1.0 + 1e-6]], 0.0), learned([[1.0]], 0.0))
    assert "biases differ" in difference(learned([[1.0]], 1e-6), learned([[1.0]], 0.0))
    assert "weights 0 differ" in difference(
        learned([[1.0 + 1e-12]], 0.0, exact=True), learned([[1.0]], 0.0, exact=True)
    )
    assert "biases differ" in difference(learned([[1.0]], 1e-12, exact=True), learned([[1.0]], 0.0, exact=True))


def test_weights_that_are_no_numbers_are_a_difference() -> None:
    for exact in (False, True):
        assert difference(learned([[np.nan]], 0.0, exact=exact), learned([[1.0]], 0.0, exact=exact))
    assert difference(proven([np.nan], 0.0, 0.1), proven([1.0], 0.0, 0.1))
    assert difference(proven([1.0], np.nan, 0.1), proven([1.0], 0.0, 0.1))


def test_another_status_or_shape_is_a_difference() -> None:
    one = proven([1.0], 0.0, 0.1)
    assert difference(replace(one, status="TIME_LIMIT"), one) == "proven TIME_LIMIT, before: proven CONVERGED"
    assert "shapes" in difference(proven([1.0, 2.0], 0.0, 0.1), one)


def test_a_record_survives_being_written() -> None:
    for one in (proven([1.0, 1.0 / 3.0], 0.5, 0.1), learned([[1.0 / 3.0], [2.0, 3.0]], [0.1, 0.2], exact=True)):
        again = Record.from_json(one.as_json())
        assert difference(again, one) == ""
        assert (again.digest, again.bounds, again.primal, again.dual) == (one.digest, one.bounds, one.primal, one.dual)


def test_builds_are_compared_fit_by_fit() -> None:
    one = {"a": "00 CONVERGED", "b": "11 CONVERGED", "c": "22 CONVERGED"}
    other = {"a": "00 CONVERGED", "b": "12 CONVERGED", "d": "22 TypeError"}
    assert compare(one, one) == []
    assert compare(one, other) == ["b: CONVERGED", "c: CONVERGED | -", "d: - | TypeError"]
