"""Benchmarks of maxmargin against its peers; run with ``python -m benchmarks.run``."""
