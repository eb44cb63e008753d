"""What the exit codes mean; the same for every command."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    DONE = 0
    NO = 1
    USAGE = 2
    BAD_INPUT = 3
    UNFINISHED = 4
    SYSTEM = 5
    NOT_PROVEN = 6
    BUG = 70
    INTERRUPTED = 130


MEANING = {
    ExitCode.DONE: "done",
    ExitCode.NO: "the answer is no: certify rejected the model, check found problems",
    ExitCode.USAGE: "wrong usage, or an optional package is missing",
    ExitCode.BAD_INPUT: "a data or model file cannot be used as it is",
    ExitCode.UNFINISHED: "the fit stopped before its gap; the model is saved",
    ExitCode.SYSTEM: "reading, writing or memory failed",
    ExitCode.NOT_PROVEN: "the model's claims are true, but do not prove that it is near-optimal",
    ExitCode.BUG: "a mistake in maxmargin itself; the traceback helps us to mend it",
    ExitCode.INTERRUPTED: "stopped by Ctrl-C; during the fit, train saves the partial model",
}
EXIT_CODES_HELP = "[bold]Exit codes[/bold]\n" + "\n".join(f"{code.value:>5}  {text}" for code, text in MEANING.items())
