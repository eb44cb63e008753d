"""The page as people see it: figures with words, nothing from outside, no console error, fits a phone."""

import html
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

from maxmargin import LinearSVC
from maxmargin.cli.job import Job, run
from maxmargin.cli.output import Output
from maxmargin.data import breast_cancer, table_from_arrays
from maxmargin.report import clopper_pearson, render, write_report
from maxmargin.report.words import certificate_in_words
from tests.conftest import tall

BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium here: install Debian's package chromium")
NASTY = "<script>alert('no')</script> & \"quoted\" $x$"


class Page(HTMLParser):
    """Collects tags with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "model.safetensors"
    job = Job(breast_cancer(), LinearSVC(loss="hinge"), "maxmargin demo", path, Cs=(0.01, 1.0), holdout=0.25)
    return run(job, Output(as_json=True))


@pytest.fixture(scope="module")
def nasty_outcome(tmp_path_factory):
    """Names and labels that want to break out, no test part, no search, one column."""
    X, y = tall(60, 1)
    names = (NASTY,)
    table = table_from_arrays(X, np.where(y > 0, NASTY, "plain"), names=names, source=NASTY)
    path = tmp_path_factory.mktemp("nasty") / "model.safetensors"
    return run(Job(table, LinearSVC(), f"maxmargin train {NASTY}", path, Cs=(1.0,)), Output(as_json=True))


def test_has_every_part(outcome):
    text = render(outcome)
    for heading in ("The data", "Test", "The proof", "Choosing C", "Margins", "Largest weights", "Reproduce"):
        assert f"<h2>{heading}</h2>" in text
    assert html.escape(certificate_in_words(outcome)) in text
    assert "No hyperplane can have an objective below" in text
    assert "worst texture" in text
    assert outcome.model.training.digest in text
    low, high = outcome.test.interval
    assert f"{100 * low:.1f} % to {100 * high:.1f} %" in text


def test_every_figure_has_words(outcome, nasty_outcome):
    for result, n_figures in ((outcome, 4), (nasty_outcome, 3)):
        page = Page(render(result))
        images = page.all("img")
        assert len(images) == len(page.all("figure")) == n_figures
        assert all(len(image["alt"]) > 40 for image in images)


def test_nothing_comes_from_outside(outcome, nasty_outcome):
    for result in (outcome, nasty_outcome):
        page = Page(render(result))
        links = [value for _, attributes in page.tags for key, value in attributes.items() if key in ("src", "href")]
        assert links
        assert all(link.startswith("data:") for link in links)
        assert not page.all("script")
        assert any(m.get("http-equiv") == "Content-Security-Policy" for m in page.all("meta"))


def test_is_the_same_for_the_same_outcome(outcome):
    assert render(outcome) == render(outcome)


def test_is_written_whole(outcome, tmp_path):
    write_report(outcome, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == render(outcome)


def test_confusion_matrix_adds_up(outcome):
    confusion = outcome.test.confusion
    assert confusion.sum() == len(outcome.test.y)
    assert confusion.sum() - np.trace(confusion) == outcome.test.n_wrong
    for i, label in enumerate(outcome.test.classes):
        assert confusion[i].sum() == np.sum(outcome.test.y == label)


def test_confidence_interval_covers():
    """The exact interval holds the true share in at least 95 % of all samples."""
    from scipy.stats import binom

    for n, share in ((20, 0.1), (142, 0.04), (50, 0.5)):
        counts = np.arange(n + 1)
        holds = np.array([low <= share <= high for low, high in (clopper_pearson(k, n) for k in counts)])
        assert binom.pmf(counts, n, share)[holds].sum() >= 0.95


# --- in a browser ---------------------------------------------------------------------------------------------------

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--enable-logging=stderr",
    "--v=0",
]


def browse(page, tmp_path, *more):
    """The page's DOM after loading, and what it wrote to the console."""
    file = tmp_path / "page.html"
    file.write_text(page)
    done = subprocess.run(
        [BROWSER, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", *more, "--dump-dom", file.as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    return done.stdout, re.findall(r"CONSOLE[^\n]*", done.stderr)


@needs_browser
def test_the_browser_would_report_errors(tmp_path):
    _, console = browse("<!doctype html><script>console.error('seen')</script>", tmp_path)
    assert any("seen" in line for line in console)


@needs_browser
def test_no_console_errors(outcome, nasty_outcome, tmp_path):
    for result in (outcome, nasty_outcome):
        dom, console = browse(render(result), tmp_path)
        assert console == []
        assert "<h2>Reproduce</h2>" in dom


MEASURE = """<!doctype html><body><iframe id="f" style="width:{width}px;height:800px;border:0"></iframe><p id="out"></p>
<script>
const f = document.getElementById("f");
f.onload = () => {{
  const d = f.contentDocument.documentElement;
  const unseen = [...f.contentDocument.images].filter(i => !i.complete || i.naturalWidth === 0).length;
  document.getElementById("out").textContent = `width ${{d.scrollWidth}} unseen ${{unseen}}`;
}};
f.srcdoc = document.getElementById("page").content.textContent;
</script></body>"""


@needs_browser
@pytest.mark.parametrize("width", [360, 1280])
def test_fits_the_screen(outcome, nasty_outcome, width, tmp_path):
    for result in (outcome, nasty_outcome):
        holder = f'<template id="page">{html.escape(render(result))}</template>'
        dom, _ = browse(MEASURE.format(width=width).replace("<script>", holder + "<script>"), tmp_path)
        found = re.search(r"width (\d+) unseen (\d+)", dom)
        assert found, "the page did not load"
        assert int(found[1]) <= width
        assert int(found[2]) == 0
