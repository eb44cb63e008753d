"""Polynomial kernels on the satimage data, class 6 against the rest: C and degree by cross-validation, the number of
support vectors, and errors of unequal price.

The exercise "SVMs hands-on" of Mohri, Rostamizadeh and Talwalkar, Foundations of machine learning. Columns are
standardised by the rows learned from. Takes a minute or two; ``--quick`` takes seconds. The folder MAXMARGIN_DATA has
satimage.npz (X: 4435×36, y, X_test: 2000×36, y_test; its labels are 1, 2, 3, 4, 5 and 7, so that class 6 is label 7);
without it scikit-learn's digits take part, the 8 against the rest.
"""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC

DEGREES = (1, 2, 3, 4)
DEARER = (1, 2, 4, 8, 16)  # how much more an error on a negative row costs
TOL = 1e-4  # relative gap: more digits change no error rate
COLOURS = ("#009e73", "#e69f00", "#0072b2", "#d55e00")  # which colour-blind readers tell apart
INK = "#1f2937"
STYLE = {
    "font.size": 10.5,
    "text.color": INK,
    "axes.edgecolor": "#9ca3af",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e5e7eb",
    "axes.axisbelow": True,
    "legend.frameon": False,
}


@dataclass(frozen=True)
class Task:
    """Labels are ±1."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def load(n_rows):
    """satimage if it is there, else digits; some of the rows to learn from, if a number is given."""
    path = Path(os.environ.get("MAXMARGIN_DATA", "")) / "satimage.npz"
    if path.is_file():
        with np.load(path) as file:
            X, y, X_test, y_test = (file[key] for key in ("X", "y", "X_test", "y_test"))
        name, label = "satimage, class 6 against the rest", 7
    else:
        X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), test_size=0.3, random_state=0)
        name, label = "digits, the 8 against the rest", 8
    scaler = StandardScaler().fit(X)
    chosen = np.random.default_rng(0).permutation(len(y))[:n_rows]
    signs, signs_test = np.where(y == label, 1, -1), np.where(y_test == label, 1, -1)
    return Task(name, scaler.transform(X)[chosen], signs[chosen], scaler.transform(X_test), signs_test)


def fitted(degree, C, X, y, dearer=1):
    """The machine, proven to be within TOL of the best one."""
    machine = SVC(kernel="poly", gamma=1.0, coef0=1.0, degree=degree, C=C, class_weight={-1: dearer}, tol=TOL)
    verdict = machine.fit(X, y).certificate_.verify(X, y)
    assert verdict, verdict
    return machine


def percent_wrong(machine, X, y):
    return 100.0 * float(np.mean(machine.predict(X) != y))


def cross_validated(task, Cs, n_folds):
    """Training, validation and test error and support vectors, all and on the margin: degree × C × fold × 5."""
    folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=0).split(task.X, task.y))
    found = np.empty((len(DEGREES), len(Cs), n_folds, 5))
    for i, degree in enumerate(DEGREES):
        for j, C in enumerate(Cs):
            for k, (learn, held_out) in enumerate(folds):
                machine = fitted(degree, C, task.X[learn], task.y[learn])
                found[i, j, k] = (
                    percent_wrong(machine, task.X[learn], task.y[learn]),
                    percent_wrong(machine, task.X[held_out], task.y[held_out]),
                    percent_wrong(machine, task.X_test, task.y_test),
                    len(machine.support_),
                    len(machine.free_),
                )
    return found


def unequal(task, degree, C):
    """Per factor k: k, false positives and negatives of the test rows, slack of the negative rows, and gap over C."""
    lines = []
    for k in DEARER:
        machine = fitted(degree, C, task.X, task.y, dearer=k)
        called = machine.predict(task.X_test)
        positives, negatives = ((called != task.y_test) & (called == label) for label in (1, -1))
        slack = np.maximum(0.0, 1.0 + machine.decision_function(task.X[task.y < 0])).sum()
        gap = machine.solution_.absolute_gap / C
        lines.append((k, int(positives.sum()), int(negatives.sum()), float(slack), gap))
    return lines


def tell_search(Cs, errors, best):
    print(f"cross-validation error ± standard deviation over {errors.shape[2]} folds, %")
    print("  degree  " + "".join(f"{f'C = {C:.0e}':>14}" for C in Cs))
    for degree, line in zip(DEGREES, errors, strict=True):
        print(f"  {degree:<8}" + "".join(f"{fold.mean():7.2f} ± {fold.std(ddof=1):4.2f}" for fold in line))
    print(f"  best: degree {DEGREES[best[0]]}, C = {Cs[best[1]]:.0e}")


def tell_degrees(C, means):
    print(f"at C = {C:.0e}, means over the folds")
    print("  degree  training error  validation error  test error  support vectors  on the margin")
    for degree, (train, validation, test, support, free) in zip(DEGREES, means, strict=True):
        print(f"  {degree:<6}{train:14.2f} %{validation:16.2f} %{test:10.2f} %{support:17.1f}{free:15.1f}")


def tell_costs(lines, degree, n_test):
    print(f"errors on negative rows cost k times as much, degree {degree}, {n_test} test rows")
    print("  k   false positives  false negatives  slack of the negative rows learned from")
    for k, positives, negatives, slack, _ in lines:
        print(f"  {k:<4}{positives:15d}{negatives:17d}{slack:41.3f}")


def keep_promises(means, lines):
    """What is always so, and that more features leave fewer errors in training.

    Of two optima, the one for the larger k has no more slack on negative rows: add up what either is no worse in. Where
    each may be away from its optimum by a gap, it has more by at most both gaps over the difference of the k.
    """
    train, support, free = means[:, 0], means[:, 3], means[:, 4]
    assert (np.diff(train) <= 0.0).all(), train
    assert (free <= support).all()
    k, _, _, slack, gap = np.array(lines).T
    assert (np.diff(slack) <= (gap[1:] + gap[:-1]) / np.diff(k) + 1e-9).all(), slack
    print(
        "  verified: every fit is proven; training error falls with the degree; the slack of rows falls with its price"
    )


def search_figure(name, Cs, errors):
    figure = Figure(figsize=(10.0, 6.8), layout="constrained")
    figure.suptitle(f"{name}: cross-validation error ± one standard deviation", weight="bold")
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for ax, degree, colour, line in zip(panels.flat, DEGREES, COLOURS, errors, strict=True):
        mean = line.mean(axis=1)
        ax.errorbar(Cs, mean, line.std(axis=1, ddof=1), color=colour, marker="o", capsize=4, linewidth=1.8)
        ax.set(xscale="log", ylim=(0.0, None), title=f"degree {degree}: {mean.min():.1f} % at best")
    for ax in panels[:, 0]:
        ax.set_ylabel("error, %")
    for ax in panels[1]:
        ax.set_xlabel("C")
    return figure


def degrees_figure(name, C, found):
    """``found``: degree × fold × 5, as :func:`cross_validated` has it at one C."""
    figure = Figure(figsize=(10.0, 4.2), layout="constrained")
    figure.suptitle(f"{name}, C = {C:.0e}: more features, fewer errors in training", weight="bold")
    errors, counts = figure.subplots(1, 2)
    parts = ((errors, ("training", "validation", "test"), 0), (counts, ("all", "on the margin"), 3))
    for ax, names, first in parts:
        for m, label in enumerate(names, start=first):
            mean, away = found[:, :, m].mean(axis=1), found[:, :, m].std(axis=1, ddof=1)
            ax.errorbar(DEGREES, mean, away, color=COLOURS[m - first], marker="os^"[m - first], capsize=4, label=label)
        ax.set(xticks=DEGREES, xlabel="degree of the polynomial", ylim=(0.0, None))
        ax.legend()
    errors.set_ylabel("error, %")
    counts.set_ylabel("support vectors")
    return figure


def costs_figure(name, lines):
    figure = Figure(figsize=(6.4, 4.6), layout="constrained")
    figure.suptitle(f"{name}:\nthe dearer false positives are, the fewer there are", weight="bold")
    ax = figure.subplots()
    for m, label, colour in ((1, "false positives", COLOURS[2]), (2, "false negatives", COLOURS[3])):
        ax.plot(DEARER, [line[m] for line in lines], color=colour, marker="o", linewidth=1.8, label=label)
    ax.set(xscale="log", xlabel="k: a false positive costs k times as much", ylabel="test rows", ylim=(0.0, None))
    ax.set_xticks(DEARER, [str(k) for k in DEARER])
    ax.minorticks_off()
    ax.legend()
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(), help="folder for the figures (default: here)")
    parser.add_argument("--quick", action="store_true", help="few rows, folds and values of C")
    options = parser.parse_args()
    Cs = [1e-5, 1e-4, 1e-3] if options.quick else np.logspace(-5.0, -1.0, 9).tolist()
    n_folds = 3 if options.quick else 10

    task = load(300 if options.quick else None)
    shape = f"{len(task.y)} rows to learn from, {len(task.y_test)} to test, {task.X.shape[1]} columns"
    print(f"{task.name}: {shape}")
    found = cross_validated(task, Cs, n_folds)
    error = found[..., 1].mean(axis=2)
    best = np.unravel_index(error.argmin(), error.shape)
    tell_search(Cs, found[..., 1], best)
    degree, C, at_C = DEGREES[best[0]], Cs[best[1]], found[:, best[1]]
    tell_degrees(C, at_C.mean(axis=1))
    lines = unequal(task, degree, C)
    tell_costs(lines, degree, len(task.y_test))
    keep_promises(at_C.mean(axis=1), lines)

    options.output.mkdir(parents=True, exist_ok=True)
    with rc_context(STYLE):
        figures = {
            "cross_validation": search_figure(task.name, Cs, found[..., 1]),
            "degrees": degrees_figure(task.name, C, at_C),
            "costs": costs_figure(task.name, lines),
        }
        for name, figure in figures.items():
            figure.savefig(options.output / f"satimage_{name}.png", dpi=110)
            print(f"figure: {options.output / f'satimage_{name}.png'}")


if __name__ == "__main__":
    main()
