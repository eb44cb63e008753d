"""Linear learning machines whose every fit comes with a proof."""

from maxmargin.problem import Problem
