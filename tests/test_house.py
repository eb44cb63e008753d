"""Rules of the house that no linter knows: who may ask for the format of X, and how long a file may be."""

import ast
from pathlib import Path

import maxmargin

ROOT = Path(maxmargin.__file__).parent
FILES = {path.relative_to(ROOT).as_posix(): path for path in sorted(ROOT.rglob("*.py"))}
MOST_LINES = 400

# Where X is not yet, or cannot be, a `Rows` that knows whether it is sparse; a folder stands for all that is in it.
ASKS_FOR_THE_FORMAT = {
    "space/": "the rows themselves: they are the answer for everybody else",
    "inputs.py": "what users pass becomes rows here",
    "positions.py": "positions are checked before anything may touch a matrix",
    "data/": "tables of files, before they are rows",
    "certificates/": "a check has its own view of X, since it may not import the core",
    "models/": "tables are encoded and scaled before they are rows",
    "cli/job.py": "a table's cells are named in messages before they are rows",
}


def names_in(path: Path) -> set[str]:
    """Every name and attribute that the code mentions, imports included."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return names | {node.name.split(".")[-1] for node in nodes if isinstance(node, ast.alias)}


def asks(file: str) -> bool:
    return bool(names_in(FILES[file]) & {"issparse", "isspmatrix", "isspmatrix_csr"})


def is_allowed(file: str, place: str) -> bool:
    return file.startswith(place) if place.endswith("/") else file == place


def test_only_the_owner_of_the_rows_asks_for_their_format():
    strangers = [
        file for file in FILES if asks(file) and not any(is_allowed(file, place) for place in ASKS_FOR_THE_FORMAT)
    ]
    assert not strangers, "ask maxmargin.space.Rows: rows.sparse, rows.facts, rows.take, ..."


def test_nothing_is_allowed_that_nobody_needs():
    idle = [place for place in ASKS_FOR_THE_FORMAT if not any(asks(f) for f in FILES if is_allowed(f, place))]
    assert not idle, "take these off the list"


def test_no_file_is_too_long():
    lengths = {file: len(path.read_text(encoding="utf-8").splitlines()) for file, path in FILES.items()}
    assert not [file for file, length in lengths.items() if length > MOST_LINES], "split what is too long"
