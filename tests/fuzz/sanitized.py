"""The extension built with sanitizers, in place of the installed one. Imports nothing of maxmargin.

The environment variable FUZZ_CORE names the module's file; without it everything here leaves the installed one alone.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys

VARIABLE = "FUZZ_CORE"
NAME = "maxmargin._core"


def environment() -> dict[str, str]:
    """The environment of a worker: one thread for BLAS, and what the sanitizers need if there are any."""
    out = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    core = os.environ.get(VARIABLE)
    if not core:
        return out
    out[VARIABLE] = os.path.abspath(core)
    # libasan must be the first library of the process; libstdc++ must be there when it looks for __cxa_throw.
    out["LD_PRELOAD"] = " ".join(_linked(core, library) for library in ("libasan", "libstdc++"))
    out["ASAN_OPTIONS"] = "detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=32:abort_on_error=1"
    out["UBSAN_OPTIONS"] = "print_stacktrace=1"
    out["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # malloc, which the sanitizer watches
    return out


def _linked(core: str, library: str) -> str:
    """The file of a library that the module is linked with."""
    listing = subprocess.run(["ldd", core], check=True, capture_output=True, text=True).stdout
    found = re.search(rf"^\s*{re.escape(library)}\.so\S* => (\S+)", listing, re.MULTILINE)
    if found is None:
        raise SystemExit(f"{core} is not linked with {library}: build it with GCC and -DMAXMARGIN_SANITIZE=ON")
    return found[1]


def chosen_core() -> str:
    """Which core the workers use, in words."""
    core = os.environ.get(VARIABLE)
    return f"the sanitized core {os.path.relpath(core)}" if core else "the installed core, without sanitizers"


def load() -> None:
    """Put the sanitized module in place, and prove that it is the one in use."""
    core = os.environ.get(VARIABLE)
    if not core:
        return
    if any(name.split(".")[0] == "maxmargin" for name in sys.modules):
        raise SystemExit("maxmargin was imported before the sanitized core could take its place")
    loader = importlib.machinery.ExtensionFileLoader(NAME, core)
    spec = importlib.util.spec_from_file_location(NAME, core, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    loader.exec_module(module)
    import maxmargin._core as used

    if used is not module or not os.path.samefile(str(used.__file__), core):
        raise SystemExit(f"the core in use is {used.__file__}, not {core}")
    _prove(core)


def _prove(core: str) -> None:
    """The module is instrumented, and the sanitizer's allocator is the one that everybody gets memory from."""
    with open(core, "rb") as file:
        content = file.read()
    if b"__asan_report_load" not in content or b"__ubsan_handle" not in content:
        raise SystemExit(f"{core} was built without sanitizers")
    process = ctypes.CDLL(None)
    if not hasattr(process, "__asan_address_is_poisoned"):
        raise SystemExit("libasan is not loaded; start the workers through python -m tests.fuzz")
    process.malloc.restype = ctypes.c_void_p
    process.free.argtypes = process.__asan_address_is_poisoned.argtypes = (ctypes.c_void_p,)
    block = process.malloc(13)
    guarded = process.__asan_address_is_poisoned(block + 13)
    process.free(block)
    if not guarded:
        raise SystemExit("libasan is loaded, but memory does not come from it")
