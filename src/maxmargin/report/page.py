"""One self-contained HTML page: no scripts, no network, readable on a phone, printable."""

from __future__ import annotations

import os
import platform
from html import escape
from importlib.metadata import version
from typing import Any

from maxmargin.certificates import Outcome as Proof
from maxmargin.data.files import atomic_write
from maxmargin.report.figures import Figure, gap_figure, margin_figure, search_figure, weights_figure
from maxmargin.report.outcome import Outcome
from maxmargin.report.words import (
    answers_in_words,
    certificate_in_words,
    duration,
    percent,
    share_above_best,
    status_in_words,
)
from maxmargin.runtime import core_info

STYLE = """
:root {
  color-scheme: light; --ink: #1f2937; --soft: #6b7280; --line: #e5e7eb;
  --good: #15803d; --bad: #b91c1c; --early: #b45309;
}
* { box-sizing: border-box; }
body {
  margin: 0; color: var(--ink); background: #f8fafc;
  font: 16px/1.55 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
main { max-width: 1080px; margin: 0 auto; padding: 1.2rem 1rem 3rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .4rem 0 .2rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 0 0 .6rem; }
p { margin: .4rem 0; }
.soft { color: var(--soft); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: .7rem; margin: 1rem 0; }
.card, section { background: #fff; border: 1px solid var(--line); border-radius: 10px; padding: .9rem 1rem; }
.card b { display: block; font-size: 1.35rem; line-height: 1.2; }
.card span { color: var(--soft); font-size: .85rem; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 430px), 1fr)); gap: .9rem; }
.grid > * { min-width: 0; }
.wide { grid-column: 1 / -1; }
figure { margin: 0; }
figure img { display: block; width: 100%; max-width: 520px; height: auto; margin: 0 auto; }
figcaption, caption { color: var(--soft); font-size: .85rem; text-align: left; padding: .3rem 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .32rem .6rem .32rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td { overflow-wrap: anywhere; }
.facts th { width: 8.5em; }
td.n, th.n { text-align: right; padding-right: .2rem; }
td.hit { background: #eff6ff; font-weight: 600; }
td.miss { background: #fff7ed; }
.verdict { border-left: 5px solid var(--good); }
.verdict.early { border-left-color: var(--early); }
.verdict.bad { border-left-color: var(--bad); }
.scroll { overflow-x: auto; }
pre {
  background: #f1f5f9; border-radius: 8px; padding: .7rem .8rem; white-space: pre-wrap; overflow-wrap: anywhere;
  font: 13px/1.45 ui-monospace, "DejaVu Sans Mono", monospace;
}
@media print {
  body { background: #fff; font-size: 11pt; }
  main { max-width: none; padding: 0; }
  section, .card { break-inside: avoid; border-color: #ccc; }
}
"""
# The browser itself then refuses any request, script or plug-in.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def write_report(outcome: Outcome, path: str | os.PathLike[str]) -> None:
    """Write the page; it appears whole or not at all."""
    page = render(outcome).encode()
    with atomic_write(path) as file:
        file.write(page)


def render(outcome: Outcome) -> str:
    """The page as text."""
    title = f"{type(outcome.model.machine).__name__} on {outcome.data.source}"
    sections = [
        _data(outcome),
        _test(outcome),
        _certificate(outcome),
        _search(outcome),
        _section("Margins", _figure(margin_figure(outcome))),
        _section("Largest weights", _figure(weights_figure(outcome))),
        _reproduce(outcome),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style></head>\n<body><main>\n"
        f'<p class="soft">maxmargin report</p>\n<h1>{escape(title)}</h1>\n{_cards(outcome)}\n'
        f'<div class="grid">\n{"".join(sections)}</div>\n</main></body></html>\n'
    )


def _section(title: str, body: str, kind: str = "") -> str:
    return f'<section class="{kind}"><h2>{escape(title)}</h2>\n{body}</section>\n'


def _figure(figure: Figure) -> str:
    return (
        f'<figure><img src="{figure.data_uri}" alt="{escape(figure.alt, quote=True)}">'
        f"<figcaption>{escape(figure.caption)}</figcaption></figure>\n"
    )


def _rows(pairs: list[tuple[str, Any]]) -> str:
    cells = "".join(f'<tr><th scope="row">{escape(k)}</th><td>{escape(str(v))}</td></tr>' for k, v in pairs)
    return f'<table class="facts">{cells}</table>\n'


def _cards(outcome: Outcome) -> str:
    machine = outcome.model.machine
    cards = [
        (
            f"{share_above_best(outcome.verdict):.0e}" if outcome.verdict.outcome is not Proof.REJECTED else "REJECTED",
            "of its objective, at most, above the best one",
        ),
        (f"{machine.C:g}", "C" + (", by cross-validation" if outcome.search is not None else "")),
        (f"{len(machine.support_)} of {outcome.data.n_learn}", "rows are support vectors"),
    ]
    if outcome.test is not None:
        low, high = outcome.test.interval
        cards.insert(0, (percent(outcome.test.error), f"error on unseen rows ({percent(low)} to {percent(high)})"))
    body = "".join(f'<div class="card"><b>{escape(b)}</b><span>{escape(s)}</span></div>' for b, s in cards)
    return f'<div class="cards">{body}</div>'


def _data(outcome: Outcome) -> str:
    data = outcome.data
    head = '<tr><th>class</th><th class="n">learn</th><th class="n">test</th></tr>'
    body = "".join(
        f'<tr><td>{escape(label)}</td><td class="n">{learn}</td><td class="n">{test}</td></tr>'
        for label, (learn, test) in data.counts.items()
    )
    kind = f"sparse, {percent(data.density)} of the cells are not 0" if data.is_sparse else "dense"
    facts = [("columns", f"{data.n_columns} ({kind})")]
    if data.target is not None:
        facts.append(("labels", f"column {data.target}"))
    if data.n_incomplete:
        facts.append(("left out", f"{data.n_incomplete} rows with missing values"))
    facts += [("preparation", note) for note in data.notes]
    if outcome.separability is not None:
        facts.append(("separability", str(outcome.separability)))
    table = f"<table><caption>Rows of each class</caption>{head}{body}</table>"
    return _section("The data", table + _rows(facts))


def _test(outcome: Outcome) -> str:
    test = outcome.test
    if test is None:
        return _section(
            "Test",
            '<p class="soft">No rows were held out, so the error on unseen rows is not known. '
            "Hold some out with --holdout, or name a test file with --test.</p>",
        )
    classes = [str(c) for c in test.classes.tolist()]
    head = "".join(f'<th class="n" scope="col">{escape(c)}</th>' for c in classes)
    body = ""
    for i, label in enumerate(classes):
        cells = "".join(
            f'<td class="n {"hit" if i == j else "miss"}">{int(test.confusion[i, j])}</td>' for j in range(len(classes))
        )
        body += f'<tr><th scope="row">{escape(label)}</th>{cells}</tr>'
    table = (
        '<div class="scroll"><table><caption>Confusion matrix: true class by row, answer by column</caption>'
        f"<tr><td></td>{head}</tr>{body}</table></div>"
    )
    return _section("Test", f"<p>{escape(_sentence(answers_in_words(test)))}</p>{table}")


def _search(outcome: Outcome) -> str:
    if outcome.search is None:
        return _section("C", f'<p class="soft">C = {outcome.model.machine.C:g} was given, not searched for.</p>')
    return _section("Choosing C", _figure(search_figure(outcome.search)))


def _certificate(outcome: Outcome) -> str:
    machine, solution = outcome.model.machine, outcome.model.machine.solution_
    power = "" if machine.loss == "hinge" else "²"
    weight = "" if machine.class_weight is None else "c "
    problem = f"½‖w‖² + C Σ {weight}max(0, 1 − y(⟨w, x⟩ + b)){power}"
    if weight:
        problem += ", with c so that both classes weigh the same"
    facts = [
        ("minimised", problem),
        ("status", status_in_words(outcome)),
        ("solver", f"{solution.solver}, {solution.n_iter} iterations, {solution.seconds:.3f} s"),
        ("why this solver", solution.reason),
    ]
    words = f"<p><strong>{escape(certificate_in_words(outcome))}</strong></p>"
    how = (
        '<p class="soft">Checked after the fit by plain arithmetic, rounding included, without the solver: one matrix '
        "product for the hyperplane's objective, one for the lower bound (weak duality).</p>"
    )
    kinds = {Proof.PROVEN: "verdict", Proof.HONEST: "verdict early", Proof.REJECTED: "verdict bad"}
    kind = kinds[outcome.verdict.outcome]
    columns = f'<div class="grid"><div>{words}{how}{_rows(facts)}</div><div>{_figure(gap_figure(outcome))}</div></div>'
    return _section("The proof", columns, f"wide {kind}")


def _reproduce(outcome: Outcome) -> str:
    info = core_info()
    digest = outcome.model.training.digest
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    facts = [
        ("maxmargin", f"{info['version']} ({info['instruction_set']})"),
        ("libraries", libraries),
        ("Python", platform.python_version()),
        ("seed", outcome.seed),
        ("rows' fingerprint", f"sha256 {digest}" if digest else "none"),
        ("time", ", ".join(f"{stage} {duration(seconds)}" for stage, seconds in outcome.seconds.items())),
    ]
    body = f"<pre>{escape(outcome.command)}</pre>" + _rows(facts)
    note = '<p class="soft">The same command gives the same weights to the last bit for any number of threads.</p>'
    return _section("Reproduce", body + note)


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."
