"""Many cases, spread over worker processes: ``python -m tests.fuzz --cases 1000000 --seed 0``.

A worker that crashes or hangs takes only its current case with it; the parent reads from the worker's ledger which one
that was, says how to replay it, and starts another worker behind it.
"""

from __future__ import annotations

import argparse
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tests.fuzz import SHARES
from tests.fuzz.sanitized import chosen_core, environment

# Slots of a ledger, eight bytes each: shared between parent and worker, and still there when the worker is not.
CASE, ACCEPTED, REJECTED, FAILED, SLOWEST, SLOWEST_CASE, SLOTS = range(7)
MOST_DEATHS = 20  # of workers on one share, before the rest of it is given up


@dataclass
class Share:
    """A range of cases of one target, and the worker that is at it."""

    target: str
    begin: int
    end: int
    folder: Path
    worker: subprocess.Popen[bytes] | None = None
    deaths: int = 0
    shown: int = 0  # bytes of the log that were printed
    given_up: int = 0

    def __post_init__(self) -> None:
        self.path = self.folder / f"{self.target}-{self.begin}"
        self.path.write_bytes(bytes(8 * SLOTS))
        self.log = self.path.with_suffix(".log")
        self.log.touch()
        with self.path.open("r+b") as file:
            self.ledger = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")
        self.ledger[CASE] = self.begin - 1

    @property
    def done(self) -> int:
        return self.ledger[ACCEPTED] + self.ledger[REJECTED] + self.ledger[FAILED]

    def start(self, seed: int) -> None:
        command = [sys.executable, "-m", "tests.fuzz.worker", self.target, str(seed)]
        command += [str(self.ledger[CASE] + 1), str(self.end), str(self.path)]
        with self.log.open("ab") as log:
            self.worker = subprocess.Popen(command, env=environment(), stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def print_news(self) -> None:
        text = self.log.read_bytes()[self.shown :]
        self.shown += len(text)
        sys.stdout.write(text.decode(errors="replace"))
        sys.stdout.flush()

    def bury(self, seed: int) -> bool:
        """Say what killed the worker; whether another one is worth a try."""
        assert self.worker is not None
        code, case = self.worker.returncode, self.ledger[CASE]
        cause = "no answer within 5 s" if code == -signal.SIGALRM else f"the worker ended with {code}"
        self.deaths += 1
        if case < self.begin:
            print(f"FAILURE {self.target}: {cause} before its first case")
            self.given_up = self.end - self.begin
            return False
        self.ledger[FAILED] += 1
        print(f"FAILURE {self.target}, seed {seed}, case {case}: {cause}; what it said is above. Replay:")
        print(f"    {replay(self.target, seed, case)}", flush=True)
        if self.deaths >= MOST_DEATHS:
            self.given_up = self.end - case - 1
        return case + 1 < self.end and not self.given_up


def replay(target: str, seed: int, case: int) -> str:
    core = os.environ.get("FUZZ_CORE")
    chosen = f"FUZZ_CORE={os.path.relpath(core)} " if core else ""
    return f"{chosen}python -m tests.fuzz --target {target} --seed {seed} --only {case}"


def shares(targets: list[str], cases: int, n_workers: int, folder: Path) -> list[Share]:
    total = sum(SHARES[target] for target in targets)
    out = []
    for target in targets:
        count = round(cases * SHARES[target] / total)
        cuts = [count * k // n_workers for k in range(n_workers + 1)]
        out += [Share(target, a, b, folder) for a, b in pairwise(cuts) if a < b]
    return out


def work(todo: list[Share], seed: int, n_workers: int) -> None:
    """All shares, some at a time, with a line of progress every half minute."""
    waiting, running = list(todo), list[Share]()
    begin = last = time.monotonic()
    while waiting or running:
        while waiting and len(running) < n_workers:
            running.append(waiting.pop(0))
            running[-1].start(seed)
        time.sleep(0.2)
        for share in list(running):
            share.print_news()
            if share.worker is None or share.worker.poll() is None:
                continue
            share.print_news()
            if share.worker.returncode != 0 and share.bury(seed):
                share.start(seed)
            else:
                running.remove(share)
        if time.monotonic() - last > 30:
            last = time.monotonic()
            done, failed = sum(share.done for share in todo), sum(share.ledger[FAILED] for share in todo)
            at_work = ", ".join(f"{share.target} {share.ledger[CASE]}" for share in running)
            print(f"[{last - begin:5.0f} s] {done} cases, {failed} failures; at {at_work}", flush=True)


def table(todo: list[Share]) -> str:
    lines = [f"{'target':<10}{'cases':>9}{'accepted':>10}{'rejected':>10}{'failures':>10}  slowest"]
    for target in dict.fromkeys(share.target for share in todo):
        mine = [share for share in todo if share.target == target]
        sums = [sum(share.ledger[slot] for share in mine) for slot in (ACCEPTED, REJECTED, FAILED)]
        slowest = max(mine, key=lambda share: share.ledger[SLOWEST]).ledger
        lines.append(
            f"{target:<10}{sum(sums):>9}{sums[0]:>10}{sums[1]:>10}{sums[2]:>10}  "
            f"case {slowest[SLOWEST_CASE]}, {slowest[SLOWEST] / 1e6:.3f} s"
        )
    return "\n".join(lines)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=1_000_000, help="in all (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", choices=sorted(SHARES), help="only this one")
    parser.add_argument("--only", type=int, metavar="CASE", help="replay one case of --target, and show it")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="default: one per core")
    given = parser.parse_args()
    if given.only is not None and given.target is None:
        parser.error("--only needs --target")
    return given


def main() -> int:
    given = parsed()
    if given.only is not None:
        command = [sys.executable, "-m", "tests.fuzz.worker", given.target, str(given.seed), str(given.only)]
        return subprocess.run(command, env=environment(), check=False).returncode
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no worker is left behind
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        targets = [given.target] if given.target else list(SHARES)
        todo = shares(targets, given.cases, given.workers, Path(folder))
        print(f"{given.cases} cases, seed {given.seed}, {given.workers} workers with {chosen_core()}", flush=True)
        try:
            work(todo, given.seed, given.workers)
        finally:
            for share in todo:
                if share.worker is not None and share.worker.poll() is None:
                    share.worker.kill()
        print(f"\nseed {given.seed}, {time.monotonic() - begin:.0f} s\n{table(todo)}")
        given_up = sum(share.given_up for share in todo)
        if given_up:
            print(f"{given_up} cases were not run: too many workers died")
        return int(given_up > 0 or any(share.ledger[FAILED] for share in todo))


if __name__ == "__main__":
    sys.exit(main())
