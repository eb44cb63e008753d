"""Cases in which files of the same rows look different: nothing may be silently wrong."""

import json
import signal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import maxmargin
from tests.cli.conftest import csv_text
from tests.conftest import tall


def rows(n=60, seed=0):
    X, y = tall(n, 3, seed=seed)
    return X, y > 0


def write_csv(path, X, labels, names=("a", "b", "c")):
    lines = [",".join([*names, "label"])] + [
        ",".join([*map(repr, x.tolist()), str(v)]) for x, v in zip(X, labels, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")


def test_truth_values_through_every_format(cli, tmp_path):
    X, y = rows()
    parquet.write_table(pa.table({**{n: X[:, j] for j, n in enumerate("abc")}, "label": y}), tmp_path / "t.parquet")
    cli("train", "t.parquet", "--C", "1")
    for name in ("t.csv", "t.arrow", "t.npz", "t.svm"):
        cli("convert", "t.parquet", name)
        if name != "t.svm":  # which has no truth values, and no names
            assert "verified" in cli("certify", "t.safetensors", name).output
    told = json.loads(cli("train", "t.parquet", "--test", "t.csv", "--C", "1", "--json").stdout)
    assert told["test"]["error"] < 0.4


def test_a_test_file_with_one_class_only(cli, tmp_path):
    X, y = rows()
    write_csv(tmp_path / "t.csv", X, np.where(y, "1", "none"))
    write_csv(tmp_path / "ones.csv", X[y], np.full(y.sum(), "1"))
    told = json.loads(cli("train", "t.csv", "--test", "ones.csv", "--C", "1", "--json").stdout)
    assert told["test"]["error"] < 0.5
    write_csv(tmp_path / "other.csv", X[:5], ["2"] * 5)
    assert "'2' is unknown" in cli("train", "t.csv", "--test", "other.csv", "--C", "1", code=3).output
    assert "'2' is unknown" in cli("predict", "t.safetensors", "other.csv").output


def test_labels_with_leading_zeros_are_names(cli, tmp_path):
    X, y = rows()
    write_csv(tmp_path / "t.csv", X, np.where(y, "01", "1"))
    cli("train", "t.csv", "--C", "1")
    assert maxmargin.load("t.safetensors").machine.classes_.tolist() == ["01", "1"]


def test_columns_count_from_where_the_training_file_did(cli, tmp_path):
    X, y = rows()
    X[:, 0] += 3.0

    def svm(path, part, first, skip=0):
        lines = [
            f"{int(v):d} " + " ".join(f"{j + first}:{float(x[j])!r}" for j in range(skip, 3))
            for x, v in zip(X, y, strict=True)
        ]
        path.write_text("\n".join(lines[part]) + "\n")

    svm(tmp_path / "train.svm", slice(None), 0)
    svm(tmp_path / "test.svm", slice(20), 0, skip=1)  # no column 0 here
    cli("train", "train.svm", "--C", "1")
    scores = json.loads(cli("predict", "train.safetensors", "test.svm", "--scores", "--json").stdout)["scores"]
    inside = X[:20].copy()
    inside[:, 0] = 0.0
    np.testing.assert_allclose(scores, maxmargin.load("train.safetensors").decision_function(inside), rtol=1e-12)
    cli("train", "train.svm", "--one-based", "--C", "1", code=3)
    cli("train", "test.svm", "--zero-based", "--C", "1")
    assert maxmargin.load("test.safetensors").n_features == 3


def test_positive_with_two_classes_and_a_test_file(cli, spam, tmp_path):
    (tmp_path / "new.csv").write_text(csv_text(50, seed=7))
    told = json.loads(cli("train", spam, "--positive", "ham", "--test", "new.csv", "--C", "1", "--json").stdout)
    assert told["test"]["rows"] == 50


def test_rows_to_predict_may_lack_labels(cli, spam, tmp_path):
    cli("train", spam, "--C", "1")
    lines = csv_text(10).splitlines()
    empty = [lines[0]] + [line.rsplit(",", 1)[0] + "," for line in lines[1:]]
    (tmp_path / "empty.csv").write_text("\n".join(empty))
    (tmp_path / "some.csv").write_text("\n".join(empty[:5] + lines[5:]))
    for name in ("empty.csv", "some.csv"):
        told = json.loads(cli("predict", "spam.safetensors", name, "--json").stdout)
        assert told["rows"] == 10


def test_gaps_and_new_texts_in_rows_to_predict(cli, tmp_path):
    text = "age,town,label\n" + "".join(f"{20 + i},{'Oslo' if i % 3 else 'Rome'},{'ab'[i % 2]}\n" for i in range(30))
    (tmp_path / "t.csv").write_text(text)
    cli("train", "t.csv", "--text", "onehot", "--C", "1")
    (tmp_path / "new.csv").write_text("age,town\n30,Osl0\n31,Rome\n")
    assert "'Osl0'" in cli("predict", "t.safetensors", "new.csv").output
    (tmp_path / "gap.csv").write_text("age,town\n30,\n")
    assert "train it with --missing mean" in cli("predict", "t.safetensors", "gap.csv", code=3).output


def test_dropped_text_columns_do_not_cost_rows(cli, tmp_path):
    text = "age,note,label\n" + "".join(f"{20 + i},{'seen' if i == 3 else ''},{'ab'[i % 2]}\n" for i in range(30))
    (tmp_path / "t.csv").write_text(text)
    told = json.loads(cli("train", "t.csv", "--text", "drop", "--missing", "drop", "--C", "1", "--json").stdout)
    assert told["data"]["rows"] == 30


def test_numbers_that_are_not_finite_are_placed(cli, tmp_path):
    X, y = rows()
    X[7, 1] = np.nan
    np.savez(tmp_path / "t.npz", X=X, y=y)
    for options in ([], ["--holdout", "0.3"]):
        assert "row 7, column 1" in cli("train", "t.npz", "--C", "1", *options, code=3).output
    np.savez(tmp_path / "good.npz", X=np.nan_to_num(X), y=y)
    cli("train", "good.npz", "--C", "1")
    assert "row 7" in cli("predict", "good.safetensors", "t.npz", code=3).output


def test_keys_are_no_numbers(cli, tmp_path):
    key = np.arange(2**53 + 1, 2**53 + 61)
    X, y = rows()
    parquet.write_table(pa.table({"key": key, "x": X[:, 0], "label": y}), tmp_path / "t.parquet")
    assert "--drop 'key'" in cli("train", "t.parquet", code=3).output
    cli("train", "t.parquet", "--drop", "key", "--C", "1")


def test_csv_is_refused_what_it_cannot_hold(cli, tmp_path):
    X, y = rows()
    write_csv(tmp_path / "t.csv", X, np.where(y, "yes", "no"))
    parquet.write_table(pa.table({"0": X[:, 0], "label": y}), tmp_path / "names.parquet")
    assert "'0' is a number" in cli("convert", "names.parquet", "out.csv", code=3).output
    parquet.write_table(pa.table({"a": X[:, 0], "label": np.where(y, "NA", "no").tolist()}), tmp_path / "na.parquet")
    assert "missing value" in cli("convert", "na.parquet", "out.csv", code=3).output
    assert not (tmp_path / "out.csv").exists()


def test_ctrl_c_after_the_save_says_where_the_model_is(cli, spam, monkeypatch):
    monkeypatch.setattr("maxmargin.cli.job.judge_separability", lambda *a, **k: signal.raise_signal(signal.SIGINT))
    result = cli("train", spam, "--C", "1", "--report", "r.html", code=130)
    assert "saved in spam.safetensors" in result.output
    maxmargin.load("spam.safetensors")


def test_a_mistake_of_ours_has_its_own_exit_code(cli, spam, monkeypatch):
    monkeypatch.setattr("maxmargin.cli.job.run", lambda *a: 1 // 0)
    assert "division" in cli("train", spam, code=70).output


@pytest.mark.parametrize("options", [["--tol", "0"], ["--max-seconds", "0"], ["--folds", "1"], ["--holdout", "2"]])
def test_values_out_of_range_are_wrong_usage(cli, spam, options):
    cli("train", spam, *options, code=2)


def test_a_huge_column_number_needs_no_memory(cli, tmp_path):
    (tmp_path / "t.svm").write_text("1 1:1 2147483646:1\n-1 1:2\n")
    cli("check", "t.svm")


def test_check_text_that_is_not_utf8(cli, tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,b,label\n1,2,x\n\xff,3\n")
    assert "iconv" in cli("check", "t.csv", code=1).output


def test_check_tsv(cli, tmp_path):
    (tmp_path / "t.tsv").write_text("size, kg, net\tlabel\n1\ta\n2\tb\n3\ta\n")
    cli("check", "t.tsv")
