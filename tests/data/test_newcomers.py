"""What people's files look like, and what they are told."""

import numpy as np
import pandas as pd
import pytest

from maxmargin import DataError, LinearSVC, load, read_table, save
from maxmargin.data import CsvOptions, Encoding
from maxmargin.data.csv import parse_csv


def told(content, **options):
    table = parse_csv(content.encode(), "t.csv")
    with pytest.raises(DataError) as caught:
        Encoding.learn(table, **options)
    return str(caught.value)


def test_decimal_commas():
    text = "a;b;label\n1,5;2;x\n2,25;3;y\n"
    for options in ({}, {"text": "onehot"}):
        message = told(text, **options)
        assert "--decimal ','" in message
        assert "onehot" not in message
    X, _ = parse_csv(text.encode(), "t.csv", options=CsvOptions(decimal=",")).arrays()
    np.testing.assert_array_equal(X, [[1.5, 2.0], [2.25, 3.0]])
    with pytest.raises(DataError, match="decimal point"):
        parse_csv(b"a,b\n1,2\n", "t.csv", options=CsvOptions(decimal=","))


@pytest.mark.parametrize("cell", ["$ 3.04", "4.5%", '"71,952"'])
def test_numbers_with_signs(cell):
    assert "Write numbers plainly" in told(f"a,label\n{cell},x\n{cell},y\n", text="onehot")


def test_strange_cells_are_no_category():
    rows = "".join(f"{i % 4},x\n" for i in range(20))
    assert "--na '?'" in told(
        "town,ca,label\nOslo,?,x\n" + "".join(f"Rome,{r}" for r in rows.splitlines(True)), text="onehot"
    )
    assert "Correct these cells" in told(f"ca,label\n?,x\n-,y\n{rows}", text="onehot")


def test_a_delimiter_at_the_end_of_every_line():
    table = parse_csv(b"a,label,\n1,x,\n2,y,\n", "t.csv")
    assert table.names == ("a",)


def test_which_column_holds_the_labels():
    for text, hint in (
        ("town,a,sick\nOslo,1,yes\nRome,2,no\nBern,3,yes\n", "perhaps --target 'sick'"),
        ("a|b\n1|2\n", "The columns are 'a', 'b'"),
        ("a b c\n1 2 3\n", "is the delimiter right?"),
    ):
        with pytest.raises(DataError, match="which column") as caught:
            parse_csv(text.encode(), "t.csv").labels()
        assert hint in str(caught.value)


def test_one_name_to_drop():
    table = parse_csv(b"id,a,label\n1,2,x\n2,3,y\n", "t.csv", drop="id")
    assert table.names == ("a",)
    with pytest.raises(DataError, match="holds the labels"):
        parse_csv(b"id,a,label\n1,2,x\n2,3,y\n", "t.csv", drop=["label"])


def test_from_a_file_to_a_machine_and_back(tmp_path):
    (tmp_path / "t.csv").write_text("age,town,class\n30,Oslo,a\n41,Rome,b\n50,,b\n22,Oslo,a\n")
    X, y = read_table(tmp_path / "t.csv").arrays(missing="mean", text="onehot")
    assert LinearSVC().fit(X, y).score(X, y) == 1.0


def test_pipelines_are_saved_with_their_scaling(tmp_path):
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    from maxmargin import InputError, certify
    from maxmargin.data import table_from_arrays

    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) * [1.0, 50.0, 0.1] + 7.0
    y = np.where(X[:, 0] > 7.0, "p", "q")
    pipeline = make_pipeline(StandardScaler(), LinearSVC()).fit(X, y)
    save(pipeline, tmp_path / "m.safetensors", data=(X, y))
    model = load(tmp_path / "m.safetensors")
    np.testing.assert_allclose(model.decision_function(X), pipeline.decision_function(X), rtol=1e-10)
    assert model.score(X, y) == pipeline.score(X, y)
    assert certify(model, table_from_arrays(X, y))
    for other in (make_pipeline(MinMaxScaler(), LinearSVC()).fit(X, y), LogisticRegression().fit(X, y)):
        with pytest.raises(InputError, match="cannot be saved"):
            save(other, tmp_path / "x.safetensors")


def test_models_take_data_frames(tmp_path):
    frame = pd.DataFrame({"b": [1.0, 2.0, 3.0, 4.0], "a": [4.0, 3.0, 1.0, 0.0]})
    machine = LinearSVC().fit(frame, ["x", "x", "y", "y"])
    save(machine, tmp_path / "m.safetensors")
    model = load(tmp_path / "m.safetensors")
    assert model.predict(frame[["a", "b"]]).tolist() == ["x", "x", "y", "y"]
    with pytest.raises(DataError, match="'b'"):
        model.predict(frame[["a"]])
