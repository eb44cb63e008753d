"""Several hundred small fits that run every solver on every branch, and what they gave when they were last recorded.

``python -m tests.contracts.fits record``
    Fit all and write the reference, fits.json, one line per fit.
``python -m tests.contracts.fits digest``
    Fit all and print a digest of all bits of each result.
``python -m tests.contracts.fits compare OTHER [THIS]``
    Compare two builds on one machine, bit for bit, and list the fits that differ. Each is a Python interpreter that
    has the build, or a file of digests; THIS is the running interpreter unless given. Both run the fits of this tree.

``--threads N`` sets the number of threads of every fit, ``--only TEXT`` takes the fits whose name contains the text.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from functools import cache
from pathlib import Path

from maxmargin import ConvergenceWarning
from tests.contracts import fits_machines, fits_rules, fits_shapes
from tests.contracts.fits_machines import Case, Cases
from tests.contracts.fits_record import Record, refused

REFERENCE = Path(__file__).with_suffix(".json")


@cache
def cases() -> Cases:
    """Every fit by name."""
    out: Cases = {}
    for family in (*fits_machines.FAMILIES, *fits_shapes.FAMILIES, *fits_rules.FAMILIES):
        made = {name.replace(" ", "-"): case for name, case in family().items()}
        assert not out.keys() & made.keys(), f"{family.__name__} uses a name again"
        out |= made
    return out


def run(case: Case, n_threads: int | None = None) -> Record:
    """One fit; that some of them stop early is part of the record."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return case(n_threads)


def reference() -> dict[str, Record]:
    """What was recorded."""
    with REFERENCE.open(encoding="utf-8") as file:
        return {name: Record.from_json(fields) for name, fields in json.load(file).items()}


def record(path: Path, only: str, n_threads: int | None) -> None:
    """Fit and write; fits that are not asked for keep what was recorded of them."""
    kept = json.loads(path.read_text(encoding="utf-8")) if only and path.exists() else {}
    lines = []
    for name, case in cases().items():
        fields = run(case, n_threads).as_json() if only in name else kept.get(name)
        if fields is not None:
            lines.append(f"{json.dumps(name)}: {json.dumps(fields, separators=(',', ':'))}")
    whole = path.with_suffix(".new")
    whole.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    whole.replace(path)
    print(f"{len(lines)} fits, {path.stat().st_size / 1000:.0f} kB in {path.name}")


def digest_of(case: Case, n_threads: int | None) -> str:
    """The digest of a fit and why it stopped; another build may refuse it, which is a result, too."""
    try:
        found = run(case, n_threads)
    except Exception as error:
        found = refused(error)
    return f"{found.digest} {found.status.replace(' ', '+')}"


def print_digests(only: str, n_threads: int | None, seconds: bool) -> None:
    """One line per fit: its name, the digest of its bits, and its status."""
    for name, case in cases().items():
        if only in name:
            begun = time.perf_counter()
            line = f"{name} {digest_of(case, n_threads)}"
            print(f"{line} {time.perf_counter() - begun:.4f}" if seconds else line, flush=True)


def digests(source: str, arguments: list[str]) -> dict[str, str]:
    """Digests by name, from a file of them, or of the build that an interpreter has."""
    if not Path(source).is_file():
        sys.exit(f"{source} is no file; give a Python interpreter, or a .txt file of what `digest` printed")
    if Path(source).suffix == ".txt":
        text = Path(source).read_text(encoding="utf-8")
    else:
        command = [source, "-m", "tests.contracts.fits", "digest", *arguments]
        root = Path(__file__).parents[2]
        answer = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, check=False)
        if answer.returncode != 0:
            sys.exit(f"{source} could not run the fits; its message is above")
        text = answer.stdout
    out = {}
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        out[name] = rest
    return out


def compare(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """A line for every fit that differs in a bit or in its status, or that only one build has."""
    out = []
    for name in sorted(one.keys() | other.keys()):
        a, b = one.get(name, "missing -"), other.get(name, "missing -")
        if a != b:
            before, after = a.split()[1], b.split()[1]
            out.append(f"{name}: {before if before == after else f'{before} | {after}'}")
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("record", "digest", "compare"))
    parser.add_argument("builds", nargs="*", help="for compare: one or two interpreters or .txt files of digests")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", action="store_true", help="for digest: how long each fit takes")
    given = parser.parse_args()
    if len(given.builds) not in ((1, 2) if given.command == "compare" else (0,)):
        parser.error("compare needs one or two builds, the other commands none")
    if given.command == "record":
        record(REFERENCE, given.only, given.threads)
    elif given.command == "digest":
        print_digests(given.only, given.threads, given.seconds)
    else:
        options = ["--only", given.only, *(["--threads", str(given.threads)] if given.threads else [])]
        other, this, *_ = [*given.builds, sys.executable]
        one, two = digests(other, options), digests(this, options)
        different = compare(one, two)
        print("\n".join([*different, f"{len(different)} of {len(one.keys() | two.keys())} fits differ"]))
        return 1 if different else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
