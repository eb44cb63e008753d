"""The command ``maxmargin``. Only what ``--help`` needs is imported here; commands import what they use."""

from maxmargin.cli.app import app, main

__all__ = ["app", "main"]
