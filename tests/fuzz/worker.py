"""A worker of the fuzzer, started by it: ``python -m tests.fuzz.worker TARGET SEED BEGIN [END LEDGER]``."""

from __future__ import annotations

import faulthandler
import mmap
import os
import signal
import sys
import time
import traceback
import warnings
from collections import Counter

from tests.fuzz import sanitized
from tests.fuzz.__main__ import ACCEPTED, CASE, FAILED, REJECTED, SLOTS, SLOWEST, SLOWEST_CASE, replay

SECONDS = 5.0  # a case that takes longer hangs
SECONDS_TO_START = 120.0  # imports and the first of everything
UNRAISED: list[BaseException] = []  # exceptions that someone below could only print
MOST_SHOWN = 3  # failures of one kind that are printed in full


def judge(target: str, seed: int, case: int) -> tuple[str, str]:
    """What became of a case, and if it failed, the kind of failure and everything about it."""
    from tests.fuzz.targets import TARGETS

    made = None
    try:
        made = TARGETS[target].make(seed, case)
        accepted = TARGETS[target].run(made)
        if UNRAISED:
            raise UNRAISED.pop()
        return ("accepted" if accepted else "rejected"), ""
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of a library in Rust is no Exception
        frame = traceback.extract_tb(error.__traceback__)[-1]
        kind = f"{type(error).__name__} in {os.path.basename(frame.filename)}:{frame.lineno}"
        text = "".join(traceback.format_exception(error))
        return kind, f"input: {shortened(repr(made))}\n{text}replay: {replay(target, seed, case)}\n"


def shortened(text: str, most: int = 2000) -> str:
    return text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 2 :]}"


def warm_up(target: str) -> None:
    """Imports and whatever is made once, with a case that is not counted."""
    signal.setitimer(signal.ITIMER_REAL, SECONDS_TO_START)
    judge(target, -1, 0)
    signal.setitimer(signal.ITIMER_REAL, 0.0)


def work(target: str, seed: int, begin: int, end: int, ledger: memoryview) -> None:
    kinds: Counter[str] = Counter()
    for case in range(begin, end):
        ledger[CASE] = case
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        start = time.perf_counter()
        outcome, report = judge(target, seed, case)
        micros = int(1e6 * (time.perf_counter() - start))
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        if micros > ledger[SLOWEST]:
            ledger[SLOWEST], ledger[SLOWEST_CASE] = micros, case
        ledger[{"accepted": ACCEPTED, "rejected": REJECTED}.get(outcome, FAILED)] += 1
        if report:
            kinds[outcome] += 1
            if kinds[outcome] <= MOST_SHOWN:
                print(f"FAILURE {target}, seed {seed}, case {case}: {outcome}\n{report}", flush=True)
    for kind, count in kinds.most_common():
        print(f"{target} {begin}-{end}: {count} failures: {kind}", flush=True)


def main() -> int:
    sanitized.load()
    # SIGALRM keeps its default action, death; before that, the place where the case hangs is written.
    faulthandler.register(signal.SIGALRM, all_threads=False, chain=True)
    warnings.simplefilter("error")
    sys.unraisablehook = lambda hint: UNRAISED.append(hint.exc_value or RuntimeError(str(hint.err_msg)))
    target, seed, begin = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    warm_up(target)
    if len(sys.argv) == 4:
        from tests.fuzz.targets import TARGETS

        print(f"{sanitized.chosen_core()}\n{TARGETS[target].make(seed, begin)!r}", flush=True)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        outcome, report = judge(target, seed, begin)
        print(f"{outcome}\n{report}", end="")
        return int(bool(report))
    with open(sys.argv[5], "r+b") as file:
        ledger = memoryview(mmap.mmap(file.fileno(), 8 * SLOTS)).cast("q")
    work(target, seed, begin, int(sys.argv[4]), ledger)
    return 0


if __name__ == "__main__":
    sys.exit(main())
