"""The measure of size: statements without docstrings, core lines without tests and blank lines."""

from pathlib import Path

from tools.size import core_lines, lines, rooms, statements, table

SOURCE = '''"""Module."""
import os

class Half:
    """Docstring."""

    factor = 0.5

    def of(self, x):
        """Docstring."""
        if x:  # a comment

            return self.factor * x
        "not a docstring"
        return None
'''


def test_statements_count_at_every_depth_without_docstrings():
    assert statements(SOURCE) == 8  # import, class, assignment, def, if, return, expression, return
    assert statements('"""Only a docstring."""') == 0
    assert statements("x = 1; y = 2") == 2


def test_layout_does_not_count():
    assert statements("f(a,\n  b)\n\n\n# comment\n") == statements("f(a, b)") == 1


def test_rooms_and_core_of_a_tree(tmp_path):
    package, core = tmp_path / "src" / "maxmargin", tmp_path / "core"
    (package / "solvers" / "deep").mkdir(parents=True)
    (core / "tests").mkdir(parents=True)
    (package / "one.py").write_text("x = 1\n")
    (package / "solvers" / "a.py").write_text("x = 1\ny = 2\n")
    (package / "solvers" / "deep" / "b.py").write_text("z = 3\n")
    (core / "a.hpp").write_text("int a;\n\n  \nint b;\n")
    (core / "tests" / "test.cpp").write_text("int c;\n")
    (core / "notes.txt").write_text("no code\n")
    assert rooms(tmp_path) == {"solvers/": 3, "one.py": 1}
    assert core_lines(tmp_path) == lines("int a;\n\n  \nint b;\n") == 2
    assert "| all of src/maxmargin | 4 |" in table(tmp_path)
    assert "| core/ (lines) | 2 |" in table(tmp_path)


def test_this_tree_has_its_rooms():
    found = rooms(Path(__file__).parents[2])
    assert {"solvers/", "svm/", "problem.py"} <= set(found)
    assert found["solvers/"] > found["problem.py"] > 0
