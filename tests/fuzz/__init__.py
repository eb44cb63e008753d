"""Seeded fuzzing of everything that takes input: ``python -m tests.fuzz --help``, or ``make fuzz`` under sanitizers.

A case is a function of target, seed and case number alone, so every failure can be replayed by its number.
"""

# Of all cases, the share of each target. The parent process reads it and must not import maxmargin.
SHARES = {"svmlight": 0.35, "csv": 0.15, "model": 0.2, "problem": 0.3}
