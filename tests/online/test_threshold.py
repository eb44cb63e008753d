"""Threshold units, and what a single one can and cannot do."""

import numpy as np
import pytest

from maxmargin import Perceptron, ThresholdUnit, gate, judge_separability, truth_table
from maxmargin.online.threshold import AND, NAND, NETWORKS, NOR, NOT, OR

TABLES = {
    "and": [0, 0, 0, 1],
    "or": [0, 1, 1, 1],
    "nand": [1, 1, 1, 0],
    "nor": [1, 0, 0, 0],
    "xor": [0, 1, 1, 0],
    "xnor": [1, 0, 0, 1],
}


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_gate_from_nands(name):
    rows, values = truth_table(gate(name))
    assert rows.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert values.tolist() == TABLES[name]
    assert set(NETWORKS) == {*TABLES, "not"}


@pytest.mark.parametrize(("unit", "name"), [(AND, "and"), (OR, "or"), (NAND, "nand"), (NOR, "nor")])
def test_single_units(unit, name):
    assert truth_table(lambda a, b: unit([a, b]))[1].tolist() == TABLES[name]
    assert [int(NOT([a])) for a in (0, 1)] == [1, 0] == [gate("not")(a) for a in (0, 1)]


@pytest.mark.parametrize("name", sorted(TABLES))
@pytest.mark.parametrize("values", [(0, 1), (-1, 1)])
def test_the_perceptron_learns_what_can_be_separated_and_the_rest_is_proven_not_to_be(name, values):
    rows, target = truth_table(gate(name))
    X = np.where(rows == 1, values[1], values[0]).astype(float)
    if name in ("xor", "xnor"):
        verdict = judge_separability(X, target)
        assert verdict.separable is False
        weights = verdict.weights
        for label in (0, 1):
            assert weights[target == label].sum() == pytest.approx(1.0)
        np.testing.assert_allclose(weights[target == 0] @ X[target == 0], weights[target == 1] @ X[target == 1])
        return
    machine = Perceptron(n_iter_no_change=None).fit(X, target)
    assert machine.predict(X).tolist() == target.tolist()
    if values == (0, 1):
        assert ThresholdUnit.of(machine)(X).tolist() == target.tolist()


def test_a_sum_of_exactly_the_threshold_fires():
    assert ThresholdUnit((1.0,), 0.0)([[0.0], [-1.0]]).tolist() == [1, 0]


def test_errors_name_what_was_wrong():
    with pytest.raises(ValueError, match="2 inputs, got rows of 3"):
        AND([[1, 1, 1]])
    with pytest.raises(ValueError, match="no gate 'maybe'"):
        gate("maybe")
    with pytest.raises(ValueError, match="takes 2 inputs"):
        gate("xor")(1)
    with pytest.raises(ValueError, match="of 0 or 1"):
        gate("xor")(1, 2)
    with pytest.raises(ValueError, match="two classes"):
        ThresholdUnit.of(Perceptron().fit(np.eye(3), [0, 1, 2]))
