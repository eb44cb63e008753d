"""Theorems with their constants: bounds that a machine's report stands beside."""

from maxmargin.theory.mistake_bounds import Bound, extended_space, freund_schapire, novikoff, winnow

__all__ = ["Bound", "extended_space", "freund_schapire", "novikoff", "winnow"]
