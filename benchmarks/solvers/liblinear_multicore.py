"""LIBLINEAR's version for several cores, with as many threads as there are cores.

Its module has the same name as that of liblinear-official, so it cannot be installed beside it. Install it into a
folder of its own and name that folder in the environment variable MAXMARGIN_LIBLINEAR_MULTICORE:

    pip install --no-deps --target <folder> liblinear-multicore
    MAXMARGIN_LIBLINEAR_MULTICORE=<folder> python -m benchmarks.run --peers liblinear_multicore

Only the solvers that use several threads are run; the others are the same as in :mod:`benchmarks.solvers.liblinear`.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from benchmarks.forms import Form
from benchmarks.solvers import liblinear
from benchmarks.solvers.base import Setting, Vector, usable_cores

VARIABLE = "MAXMARGIN_LIBLINEAR_MULTICORE"
PARALLEL = (0, 1, 2, 3, 5, 6, 11)


class Solver(liblinear.Solver):
    name = "liblinear_multicore"
    distribution = "liblinear-multicore"
    forms = tuple(form for form, numbers in liblinear.PENALISED.items() if set(numbers) & set(PARALLEL))

    def available(self) -> tuple[bool, str]:
        folder = os.environ.get(VARIABLE)
        if not folder or not (Path(folder) / "liblinear").is_dir():
            return False, f"pip install --no-deps --target <folder> {self.distribution}, and {VARIABLE}=<folder>"
        return True, ""

    def version(self) -> str:
        folder = os.environ.get(VARIABLE)
        found = distributions(name=self.distribution, path=[folder]) if folder else ()
        return next((one.version for one in found), "not installed")

    def settings(self, form: Form) -> list[Setting]:
        return [setting for setting in super().settings(form) if setting.options["s"] in PARALLEL]

    def fit(self, X: Any, y: Vector, C: float, form: Form, setting: Setting) -> Vector:
        if os.environ[VARIABLE] not in sys.path:
            sys.path.insert(0, os.environ[VARIABLE])
        return super().fit(X, y, C, form, setting)

    def _more(self, s: int) -> str:
        return f" -m {usable_cores()}"
