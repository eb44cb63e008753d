"""The other commands, help, completion, and what is imported."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

import maxmargin
from maxmargin.cli.exit_codes import MEANING
from tests.cli.conftest import csv_text

COMMANDS = ("train", "predict", "check", "certify", "convert", "info", "demo")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(cli, command):
    text = cli(command, "--help").output
    assert f"maxmargin {command}" in text
    assert "Examples" in text or command == "demo"


def test_help_lists_commands_and_exit_codes(cli):
    text = " ".join(cli("--help").output.split())
    for command in COMMANDS:
        assert command in text
    for code, meaning in MEANING.items():
        assert f"{code.value} {meaning[:30]}" in text


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom maxmargin.cli import main\nsys.argv = ['maxmargin', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'pyarrow', 'matplotlib', 'safetensors'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(shell):
    done = subprocess.run(
        [sys.executable, "-c", "from maxmargin.cli import main; main()", "--show-completion", shell],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin", "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
    )
    assert "MAXMARGIN_COMPLETE" in done.stdout.upper(), done.stderr


def test_version(cli):
    assert cli("--version").output == f"maxmargin {maxmargin.__version__}\n"


def test_unknown_option_is_wrong_usage(cli):
    cli("train", "x.csv", "--nonsense", code=2)


# --- predict --------------------------------------------------------------------------------------------------------


@pytest.fixture
def model(cli, spam):
    cli("train", spam, "--C", "1")
    return "spam.safetensors"


def test_predict_to_a_file(cli, model, spam, tmp_path):
    (tmp_path / "new.csv").write_text(csv_text(50, seed=7))
    result = cli("predict", model, "new.csv", "--output", "answers.csv", "--scores")
    assert "of 50 rows" in result.output
    rows = list(csv.DictReader((tmp_path / "answers.csv").read_text().splitlines()))
    loaded = maxmargin.load(model)
    table = maxmargin.read_table("new.csv")
    assert [row["prediction"] for row in rows] == loaded.predict(table).tolist()
    assert [float(row["score"]) for row in rows] == loaded.decision_function(table).tolist()


def test_predict_without_labels_and_with_other_columns(cli, model, tmp_path):
    lines = csv_text(20).splitlines()
    cells = [line.split(",") for line in lines]
    shuffled = "\n".join(",".join([row[2], "note" if i == 0 else "x", row[0], row[1]]) for i, row in enumerate(cells))
    (tmp_path / "new.csv").write_text(shuffled)
    (tmp_path / "same.csv").write_text("\n".join(lines))
    told = json.loads(cli("predict", model, "new.csv", "--json").stdout)
    assert told["predictions"] == maxmargin.load(model).predict(maxmargin.read_table("same.csv")).tolist()
    assert "error" not in told


def test_predict_says_which_columns_are_missing(cli, model, tmp_path):
    (tmp_path / "new.csv").write_text("f0,f2\n1,2\n")
    assert "'f1'" in cli("predict", model, "new.csv", code=3).output


def test_predict_from_something_else(cli, spam):
    assert "model file" in cli("predict", spam, spam, code=3).output


# --- check ----------------------------------------------------------------------------------------------------------


def test_check_a_good_file(cli, spam):
    assert "nothing is wrong" in cli("check", spam).output


def test_check_finds_everything(cli, tmp_path):
    (tmp_path / "bad.csv").write_text(
        "age,town,height,same,label\n30,Oslo,1.8,5,a\n,Rome,?,5,b\n40,Oslo,1.7,5\n50,Rome,1.9,5,b\n60,Rome,1.9,5,a\n"
    )
    text = cli("check", "bad.csv", code=1).output
    for words in ("line 4", "'town'", "'age', row 1", "--missing mean", "--na '?'", "every row has 5"):
        assert words in text, text
    told = json.loads(cli("check", "bad.csv", "--json", code=1).stdout)
    assert {p["severity"] for p in told["problems"]} == {"error", "warning"}


def test_check_knows_what_train_will_do(cli, tmp_path):
    rows = "".join(f"{20 + 3 * i if i % 5 else ''},{'Oslo' if i % 2 else 'Rome'},{'abc'[i % 3]}\n" for i in range(30))
    (tmp_path / "t.csv").write_text("age,town,label\n" + rows)
    assert "3 errors, 0 warnings" in cli("check", "t.csv", code=1).output
    text = cli("check", "t.csv", "--missing", "mean", "--text", "onehot", "--positive", "a").output
    assert "0 errors, 3 warnings" in text


def test_check_says_the_same_of_many_columns_once(cli, tmp_path):
    header = ",".join(f"c{j}" for j in range(30))
    row = ",".join(["red"] * 30)
    (tmp_path / "t.csv").write_text(f"{header},label\n{row},a\n{row},b\n")
    text = cli("check", "t.csv", code=1).output
    assert "text in 30 columns: 'c0'" in text
    assert "1 error, 0 warnings" in text


def test_check_svmlight_goes_on_after_an_error(cli, tmp_path):
    (tmp_path / "bad.svm").write_text("1 1:1\nx 1:2\n-1 3:1 2:1\n# fine\n-1 1:nan\n1 4:1e6 5:1e-3\n")
    text = cli("check", "bad.svm", code=1).output
    for words in ("line 2, column 1", "line 3, column 8", "line 5, column 6", "2 good rows", "4 errors"):
        assert words in text, text


def test_check_lists_only_the_first_problems(cli, tmp_path):
    (tmp_path / "bad.svm").write_text("1 1:1\n-1 1:1\n" + "oops\n" * 100)
    assert "and 80 more" in cli("check", "bad.svm", code=1).output


@pytest.mark.parametrize("name", ["empty.csv", "empty.svm", "empty.npz", "empty.parquet"])
def test_check_empty_files(cli, tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    cli("check", name, code=1)


# --- convert and info -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.arrow", "t.npz", "t.svm"])
def test_convert_keeps_every_bit(cli, svm, name):
    cli("convert", svm, name)
    cli("convert", name, "back.svm")
    first, second = maxmargin.read_table(svm), maxmargin.read_table("back.svm")
    np.testing.assert_array_equal(first.columns.toarray(), second.columns.toarray())
    np.testing.assert_array_equal(first.y, second.y)


def test_convert_text_labels(cli, spam):
    assert "--number-labels" in cli("convert", spam, "spam.svm", code=3).output
    assert "ham → 0, spam → 1" in cli("convert", spam, "spam.svm", "--number-labels").output
    assert set(maxmargin.read_table("spam.svm").y.tolist()) == {0, 1}


def test_convert_to_an_unknown_format(cli, spam):
    assert "'.xyz'" in cli("convert", spam, "spam.xyz", code=3).output


def test_info(cli, model, spam):
    assert maxmargin.__version__ in cli("info").output
    text = cli("info", model).output
    for words in ("LinearSVC", "ham, spam", "80 rows of spam.csv", "CONVERGED", "support vectors"):
        assert words in text
    assert "ham (" in cli("info", spam).output
    assert json.loads(cli("info", model, "--json").stdout)["features"] == 3


def test_files_that_unpack_to_more_than_the_limit(cli, spam):
    import gzip

    packed = spam.with_suffix(".csv.gz")
    packed.write_bytes(gzip.compress(spam.read_bytes()))
    for command in (["train"], ["info"], ["convert"]):
        arguments = [*command, packed, *(["other.csv"] if command == ["convert"] else [])]
        output = cli(*arguments, "--max-bytes", "1kB", code=3).output
        assert "and the limit is 1 kB" in output
        assert "--max-bytes" in output
    assert "the limit is 1 kB" in cli("check", packed, "--max-bytes", "1kB", code=1).output
    assert "expected a number of bytes such as 8GB" in cli("check", packed, "--max-bytes", "much", code=2).output
    cli("train", packed, "--C", "1", "--max-bytes", "1 MB")
    model = next(packed.parent.glob("*.safetensors"))
    assert "and the limit is 1 kB" in cli("predict", model, packed, "--max-bytes", "1kB", code=3).output
    cli("predict", model, packed, "--max-bytes", "1MB", "-o", "answers.csv")
