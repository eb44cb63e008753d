"""How large the project is: ``python tools/size.py [folder]``.

Statements of every room of ``src/maxmargin`` (a first-level folder or file), docstrings left out, so that neither
layout nor documentation counts; and the lines of ``core`` that are not blank, its tests left out.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE, CORE = Path("src") / "maxmargin", Path("core")
CORE_ENDINGS = (".hpp", ".cpp")
WITH_DOCSTRINGS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def statements(source: str) -> int:
    """Statements at every depth, without docstrings.

    Examples
    --------
    >>> statements('''def half(x):
    ...     "A docstring."
    ...     return x / 2''')
    2
    """
    nodes = list(ast.walk(ast.parse(source)))
    documented = sum(isinstance(node, WITH_DOCSTRINGS) and ast.get_docstring(node) is not None for node in nodes)
    return sum(isinstance(node, ast.stmt) for node in nodes) - documented


def lines(source: str) -> int:
    """Lines that are not blank."""
    return sum(bool(line.strip()) for line in source.splitlines())


def rooms(root: Path) -> dict[str, int]:
    """Statements per room, the largest first."""
    count: Counter[str] = Counter()
    for path in _python_files(root / PACKAGE):
        inside = path.relative_to(root / PACKAGE).parts
        count[inside[0] + ("/" if len(inside) > 1 else "")] += statements(path.read_text(encoding="utf-8"))
    return dict(count.most_common())


def core_lines(root: Path) -> int:
    """Lines of the core."""
    return sum(
        lines(path.read_text(encoding="utf-8"))
        for path in (root / CORE).rglob("*")
        if path.suffix in CORE_ENDINGS and "tests" not in path.relative_to(root / CORE).parts
    )


def _python_files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*.py")) if "__pycache__" not in path.parts)


def table(root: Path) -> str:
    """A Markdown table."""
    by_room = rooms(root)
    rows = [("room", "statements"), ("---", "---:"), *((name, str(count)) for name, count in by_room.items())]
    rows += [("all of src/maxmargin", str(sum(by_room.values()))), ("core/ (lines)", str(core_lines(root)))]
    return "\n".join(f"| {name} | {count} |" for name, count in rows)


def main() -> None:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1]
    if not (root / PACKAGE).is_dir():
        raise SystemExit(f"{root} has no folder {PACKAGE}: name the top of a source tree")
    print(table(root))


if __name__ == "__main__":
    main()
