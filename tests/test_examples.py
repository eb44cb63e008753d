"""Every example runs and keeps its own promise: what it prints is what its first lines say."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent.parent / "examples"
LINE = re.compile(r"^ {2}(.+?) +median +([-\d.]+)(?: %)?, 5–95 % of (\d+) splits: ([-\d.]+) … ([-\d.]+)")
ARGUMENTS = {
    "decision_regions": ("--output", "{folder}"),
    "satimage_polynomial": ("--quick", "--output", "{folder}"),
}


@pytest.fixture
def printed(capsys, monkeypatch):
    """Runs an example and returns what it said; the folder of data is empty unless a test fills it."""

    def run(name, data):
        arguments = [part.format(folder=data) for part in ARGUMENTS.get(name, ())]
        monkeypatch.syspath_prepend(str(FOLDER))
        monkeypatch.setattr("sys.argv", [name, *arguments])
        monkeypatch.setenv("MAXMARGIN_DATA", str(data))
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    return run


def told(out):
    """Per heading, the figures beside each name: (median, low, high) of a hundred splits."""
    figures, heading = {}, None
    for line in out.splitlines():
        match = LINE.match(line)
        if match:
            name, median, count, low, high = match.groups()
            assert count == "100"
            figures[heading][name] = (float(median), float(low), float(high))
        elif not line.startswith(" "):
            heading = line
            figures[heading] = {}
    assert all(low <= median <= high for part in figures.values() for median, low, high in part.values())
    return [part for part in figures.values() if part]


def proven(out):
    """The verdict that an example prints: nothing below the bound, and the objective is within its tolerance of it."""
    found = re.search(
        r"^verified: no hyperplane has an objective below (\S+); this one has (\S+) \(", out, re.MULTILINE
    )
    bound, value = float(found[1]), float(found[2])
    assert 0.0 < bound <= value <= bound * (1.0 + 1e-6)
    return value


def first_fit(out):
    assert out.startswith("398 rows to learn from, 171 held out, 30 columns\n")
    assert re.search(r"^C by 5-fold cross-validation: (0\.\d+|[13]\.0) \(accuracy 0\.9\d+\)$", out, re.MULTILINE)
    assert float(re.search(r"fit: Solution\(CONVERGED: .*primal ([\d.]+),", out)[1]) == pytest.approx(proven(out))
    assert 0 < int(re.search(r"support vectors: (\d+) of 398 rows", out)[1]) < 398
    assert float(re.search(r"accuracy on the held-out rows: ([\d.]+)", out)[1]) > 0.9


def soft_svm_iris(out):
    """Both separate the rows, one leaves more room."""
    (figures,) = told(out)
    assert set(figures) == {
        f"{name}, {what}" for name in ("perceptron", "soft SVM") for what in ("test error", "margin")
    }
    for name in ("perceptron", "soft SVM"):
        assert figures[f"{name}, test error"][0] == 0.0
        assert figures[f"{name}, margin"][1] > 0.0
    assert figures["soft SVM, margin"][0] > figures["perceptron, margin"][0]
    share = re.search(r"^ {2}verified: the soft SVM has the wider margin on (\d+)% of the splits$", out, re.MULTILINE)
    assert 50 < int(share[1]) <= 100


def perceptron_iris(out):
    (figures,) = told(out)
    assert figures["test error"][0] == 0.0
    assert 0.0 < figures["mistakes in training"][2] <= figures["Novikoff's bound on them"][1]
    assert out.endswith("\n  verified: no split made more mistakes than Novikoff's theorem allows\n")


def pocket_below_perceptron(figures):
    assert len(figures) == 4
    for pocket, perceptron in zip(
        figures["pocket, training error"], figures["perceptron, training error"], strict=True
    ):
        assert 0.0 <= pocket <= perceptron


def pocket_iris(out):
    (figures,) = told(out)
    pocket_below_perceptron(figures)
    assert figures["pocket, training error"][0] < figures["perceptron, training error"][0]
    assert out.endswith("\n  verified: the pocket's training error was never above the perceptron's\n")


def breast_cancer_online(out):
    """Row by row, the machine comes as near as two points to the exact optimum, which is proven."""
    proven(out)
    columns = told(out)
    assert len(columns) == 2
    for figures in columns:
        online, exact = figures["row by row, test error"][0], figures["the exact optimum, test error"][0]
        assert abs(online - exact) <= 2.0
        assert 0.0 < exact < 10.0


def heart_disease(out):
    """Without its data the example says how to get on, and nothing else."""
    assert out == "set MAXMARGIN_DATA to a folder with heart_cleveland.npz (X: 297×13, y) to run this example\n"


def pictures(out, word):
    """The names of the pictures that an example says it saved; they are there, and pictures."""
    names = re.findall(rf"^{word}: (.+)$", out, re.MULTILINE)
    assert all(Path(name).read_bytes().startswith(b"\x89PNG") for name in names)
    return [Path(name).name for name in names]


def decision_regions(out):
    """Every support vector has one mark, and the machine with the larger C has fewer of them."""
    line = r"^(\w+)\(.*\), C = ([\d.]+): (\d+) support vectors, (\d+) on the margin, (\d+) inside, (\d+) on the wrong"
    machines = re.findall(line, out, re.MULTILINE)
    assert [name for name, *_ in machines] == ["Linear", "Linear", "Polynomial", "Polynomial", "Gaussian", "Gaussian"]
    counts = np.array([[int(count) for count in found] for _, _, *found in machines])
    assert (counts[:, 0] == counts[:, 1:].sum(axis=1)).all()
    assert (counts[:, 1] > 0).all()
    assert (counts[::2, 0] > counts[1::2, 0]).all()
    assert "\n  verified: all 6 machines are the best of their kind, and free points lie on the margin\n" in out
    assert pictures(out, "picture") == ["decision_regions.png"]


def satimage_polynomial(out):
    assert out.startswith("digits, the 8 against the rest: 300 rows to learn from, 540 to test, 64 columns\n")
    polynomials_of_four_degrees(out)


def polynomials_of_four_degrees(out):
    """Every fit is proven, more features leave fewer errors in training, the best pair is the least of the table."""
    table = [
        [float(mean) for mean in re.findall(r"([\d.]+) ± ", line)] for line in out.splitlines() if line.count("±") == 3
    ]
    assert np.shape(table) == (4, 3)
    degree, C = re.search(r"^ {2}best: degree (\d), C = (\S+)$", out, re.MULTILINE).groups()
    assert table[int(degree) - 1][[1e-5, 1e-4, 1e-3].index(float(C))] == np.min(table)
    assert f"\nat C = {C}, means over the folds\n" in out

    line = r"^ {2}(\d) +([\d.]+) % +([\d.]+) % +([\d.]+) % +([\d.]+) +([\d.]+)$"
    rows = np.array(re.findall(line, out, re.MULTILINE), dtype=float)
    assert rows[:, 0].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert (np.diff(rows[:, 1]) <= 0.0).all()
    assert rows[3, 1] < rows[0, 1]
    assert (rows[:, 5] <= rows[:, 4]).all()

    costs = np.array(re.findall(r"^ {2}(\d+) +(\d+) +(\d+) +([\d.]+)$", out, re.MULTILINE), dtype=float)
    assert costs[:, 0].tolist() == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert costs[-1, 3] <= costs[0, 3]
    assert "\n  verified: every fit is proven; training error falls with the degree; " in out
    assert pictures(out, "figure") == [f"satimage_{name}.png" for name in ("cross_validation", "degrees", "costs")]


PROMISES = (
    first_fit,
    soft_svm_iris,
    perceptron_iris,
    pocket_iris,
    breast_cancer_online,
    heart_disease,
    decision_regions,
    satimage_polynomial,
)


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_an_example_keeps_its_promise(promise, printed, tmp_path):
    promise(printed(promise.__name__, tmp_path))


def test_every_example_has_a_promise():
    names = {path.stem for path in FOLDER.glob("*.py")} - {"worked"}
    assert names == {promise.__name__ for promise in PROMISES}


def test_heart_disease_with_data_shows_both_machines_on_both_numbers_of_columns(printed, tmp_path):
    """The stand-in is separable once grades 1 to 4 count as one class, in every direction that the columns have."""
    rng = np.random.default_rng(0)
    grade = np.where(rng.random(297) < 0.5, 0, rng.integers(1, 5, 297))
    X = np.where(grade > 0, 3.0, -3.0)[:, None] + rng.standard_normal((297, 13))
    np.savez(tmp_path / "heart_cleveland.npz", X=100.0 + 10.0 * X, y=grade)
    out = printed("heart_disease", tmp_path)
    assert re.findall(r"^heart disease, (\d+) columns, 50 passes$", out, re.MULTILINE) == ["13", "3"]
    for figures in told(out):
        pocket_below_perceptron(figures)
        assert figures["perceptron, training error"] == (0.0, 0.0, 0.0)
        assert figures["pocket, test error"][0] == 0.0


def test_satimage_with_data_learns_the_last_of_its_classes(printed, tmp_path):
    """In the stand-in the last class is a shell around the others, which no plane cuts off."""
    rng = np.random.default_rng(0)
    label = rng.choice([1, 2, 3, 4, 5, 7], 500)
    away = rng.standard_normal((500, 36))
    away *= np.where(label == 7, 60.0, 30.0)[:, None] / np.linalg.norm(away, axis=1)[:, None]
    X = (127.0 + away).astype(np.uint8)
    np.savez(tmp_path / "satimage.npz", X=X[:400], y=label[:400], X_test=X[400:], y_test=label[400:])
    out = printed("satimage_polynomial", tmp_path)
    assert out.startswith("satimage, class 6 against the rest: 300 rows to learn from, 100 to test, 36 columns\n")
    polynomials_of_four_degrees(out)
    assert int(re.search(r"best: degree (\d)", out)[1]) > 1
