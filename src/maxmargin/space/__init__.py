"""What w is, and how rows act on it. The rows' format, dense or sparse, is known here and nowhere above."""

from maxmargin.space.bias import Bias
from maxmargin.space.rows import Facts, Rows

__all__ = ["Bias", "Facts", "Rows"]
