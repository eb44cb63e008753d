"""Reading and writing data files: svmlight/LIBSVM, CSV, Parquet, Arrow, npz."""

from maxmargin.data.arrow import read_arrow, read_parquet, table_from_arrow
from maxmargin.data.batches import Batch, Batches, open_batches, survey
from maxmargin.data.batches_survey import Survey
from maxmargin.data.bundled import breast_cancer
from maxmargin.data.csv import CsvOptions, read_csv
from maxmargin.data.digest import digest
from maxmargin.data.encoding import Encoding, complete_rows
from maxmargin.data.errors import DataError
from maxmargin.data.formats import read_table, table_from_arrays, write_table
from maxmargin.data.npz import read_npz
from maxmargin.data.svmlight import read_svmlight
from maxmargin.data.table import Table

__all__ = [
    "Batch",
    "Batches",
    "CsvOptions",
    "DataError",
    "Encoding",
    "Survey",
    "Table",
    "breast_cancer",
    "complete_rows",
    "digest",
    "open_batches",
    "read_arrow",
    "read_csv",
    "read_npz",
    "read_parquet",
    "read_svmlight",
    "read_table",
    "survey",
    "table_from_arrays",
    "table_from_arrow",
    "write_table",
]
