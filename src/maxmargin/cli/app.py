"""All commands in one place, and what an error becomes."""

from __future__ import annotations

import json
import sys
import traceback
from typing import Any

import typer
from typer import BadParameter
from typer.core import TyperGroup

from maxmargin.cli.certify import certify
from maxmargin.cli.check import check
from maxmargin.cli.convert import convert
from maxmargin.cli.demo import demo
from maxmargin.cli.exit_codes import EXIT_CODES_HELP, ExitCode
from maxmargin.cli.info import info
from maxmargin.cli.predict import predict
from maxmargin.cli.train import train

ABOUT = """Linear learning machines whose every fit comes with a proof.

[bold]First steps[/bold]
  maxmargin demo                                 a whole run on a bundled table
  maxmargin train data.csv --report report.html  choose C, fit, certify, test
  maxmargin certify data.safetensors data.csv    is the model what it claims?
"""


# The root of Typer's own errors about wrong usage, wherever this version keeps it.
ClickException: type[Exception] = next(kind for kind in BadParameter.__mro__ if kind.__name__ == "ClickException")


class Guarded(TyperGroup):
    """Turns every error a user can cause into one line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        as_json = "--json" in [*getattr(ctx, "_protected_args", ()), *ctx.args]
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            notes = getattr(stop, "__notes__", ["nothing was written"])
            self._say(f"interrupted; {'; '.join(notes)}", as_json, "Interrupted")
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except BrokenPipeError:
            # Whoever read our output has seen enough.
            sys.stdout = None
            raise typer.Exit(ExitCode.DONE) from None
        except (typer.Exit, typer.Abort, ClickException):
            raise
        except Exception as error:
            code = exit_code_of(error)
            if code is None:
                traceback.print_exc()
                code = ExitCode.BUG
            self._say(sentence_of(error), as_json, type(error).__name__)
            raise typer.Exit(code) from None

    def _say(self, text: str, as_json: bool, kind: str) -> None:
        if as_json:
            typer.echo(json.dumps({"error": {"kind": kind, "message": text}}, ensure_ascii=False))
        typer.secho(f"maxmargin: {text}", err=True, fg=typer.colors.RED)


def exit_code_of(error: Exception) -> ExitCode | None:
    """The exit code for an error of the user's, or None for one of ours, which keeps its traceback."""
    from maxmargin.errors import InputError

    if isinstance(error, InputError):
        return ExitCode.BAD_INPUT
    if isinstance(error, ImportError):
        return ExitCode.USAGE if "pip install" in str(error) else None
    if isinstance(error, OSError | MemoryError):
        return ExitCode.SYSTEM
    return None


def sentence_of(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}" if str(error) else "not enough memory"
    if isinstance(error, OSError) and error.strerror:
        name = f" {error.filename!r}" if error.filename else ""
        return f"{error.strerror[:1].lower()}{error.strerror[1:]}{':' if name else ''}{name}"
    return str(error)


app = typer.Typer(
    cls=Guarded,
    help=ABOUT,
    epilog=EXIT_CODES_HELP,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (train, predict, check, certify, convert, info, demo):
    app.command()(command)


def version(wanted: bool) -> None:
    if wanted:
        import maxmargin

        typer.echo(f"maxmargin {maxmargin.__version__}")
        raise typer.Exit


@app.callback()
def options(
    show_version: bool = typer.Option(False, "--version", callback=version, is_eager=True, help="Print the version."),
) -> None:
    pass


options.__doc__ = ABOUT


def main() -> None:
    """Entry point of the console script."""
    app(prog_name="maxmargin")
