"""What w is, and how rows act on it. The rows' format, dense or sparse, is known here and nowhere above."""

from maxmargin.space.base import Space
from maxmargin.space.bias import Bias
from maxmargin.space.facts import Facts
from maxmargin.space.rows import Rows, in_memory

__all__ = ["Bias", "Facts", "Rows", "Space", "in_memory"]
