"""Reading CSV text, for the tests."""

import pytest

from maxmargin.data import CsvOptions, DataError
from maxmargin.data.csv import parse_csv


def parse(text, **options):
    raw = text if isinstance(text, bytes) else text.encode()
    layout = {name: options.pop(name) for name in ("header", "delimiter", "na") if name in options}
    return parse_csv(raw, "t.csv", options=CsvOptions(**layout), **options)


def cells(table):
    return table.columns.to_pydict()


def problem(text, **options):
    """Place and sentence of the error."""
    with pytest.raises(DataError) as caught:
        parse(text, **options)
    return caught.value.place, caught.value.problem


PLAIN = "a,b,label\n1,2.5,x\n3,-4,y\n"
EXPECTED = {"a": [1.0, 3.0], "b": [2.5, -4.0]}
