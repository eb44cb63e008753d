"""Data files that are larger than the memory: read batch by batch, again and again, and from any batch on."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.data.batches_arrow import ArrowPieces, NpzPieces, ParquetPieces
from maxmargin.data.batches_csv import CsvPieces
from maxmargin.data.batches_pieces import Piece, PieceReader
from maxmargin.data.batches_survey import Survey, Tally
from maxmargin.data.batches_svmlight import SvmlightPieces
from maxmargin.data.csv import CsvOptions
from maxmargin.data.errors import DataError
from maxmargin.data.formats import _known, format_of
from maxmargin.data.limits import byte_limit
from maxmargin.data.seal import Beginning, Seal, is_seal
from maxmargin.data.table import Target
from maxmargin.positions import shown

MISSING = ("error", "drop")
# What a position consists of.
POSITION: dict[str, Any] = {
    "format": str, "size": int, "bytes": int, "rows": int, "skip": int, "share": (int, float), "from": dict,
}  # fmt: skip


@dataclass(frozen=True)
class Batch:
    """Some rows of a file that follow each other.

    Attributes
    ----------
    X : C-contiguous float64 array (float32 if the file holds float32 only), or CSR (svmlight, sparse npz).
    y : labels or targets as they are in the file; None if it was opened with ``target=False`` and has no labels.
    first_row : number of rows in the batches before this one.
    position : where the batch ends, as JSON can hold it: :meth:`Batches.read` continues there.
    """

    X: Any
    y: Any
    first_row: int
    position: dict[str, Any]


class Batches:
    """A data file that is read batch by batch; :func:`open_batches` makes one.

    No more than a few batches are in memory at a time. If the file changes, going on is an error.

    Attributes
    ----------
    path, format : the file.
    n_features : number of feature columns. For a svmlight file that was opened without ``n_features`` or
        ``zero_based``, the first question reads the whole file once.
    names : of the feature columns, if they have any.
    n_bytes : size of the file as it is on disk.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "t.csv").write_text("a,b,label\\n1,2,no\\n3,4,yes\\n5,6,no\\n")
    ...     batches = open_batches(f"{folder}/t.csv", batch_rows=2)
    ...     first = next(iter(batches))
    ...     rest = [batch.y.tolist() for batch in batches.read(first.position)]
    >>> first.y.tolist(), rest, batches.slope(first.position) < 1.0
    (['no', 'yes'], [['no']], True)
    """

    def __init__(self, path: Path, format: str, reader: PieceReader, stamp: tuple[int, int], rows: int | None) -> None:
        self.path, self.format, self.names = path, format, reader.names
        self._reader, self._stamp, self._rows = reader, stamp, rows
        self._survey: Survey | None = None
        self._beginning, self._verified = Beginning(path), -1

    def __iter__(self) -> Iterator[Batch]:
        return self.read()

    @property
    def n_features(self) -> int:
        if self._reader.n_features is None:
            self.survey()
        assert self._reader.n_features is not None
        return self._reader.n_features

    @property
    def n_bytes(self) -> int:
        return self._stamp[0]

    def slope(self, position: dict[str, Any] | None) -> float:
        """The part of the file before a position, from 0 to 1; None stands for the beginning."""
        return 0.0 if position is None else float(position["share"])

    def read(self, start: dict[str, Any] | None = None) -> Iterator[Batch]:
        """The batches behind a position, or all of them.

        A position belongs to a file of one size, or to one that has grown since then and was verified.

        Continuing seeks where it can. A compressed text file is unpacked again up to the position, an Arrow stream
        is read up to there, of a Parquet file the row group around it.

        Parameters
        ----------
        start : the position of a batch of this file, also of an earlier process or with other sizes of batches.
        """
        self._refuse_change()
        if start is not None:
            self._check_position(start)
        _ = self.n_features  # a svmlight file may need a first pass
        return self._cut(self._watched(self._reader.pieces(start["from"] if start else None)), start)

    def seal(self, position: dict[str, Any] | None) -> Seal:
        """A digest of all bytes of the file that the rows before a position depend on, for :meth:`verify`.

        Each byte is read once more for it, however often this is called; what was sealed or verified before stays in.
        """
        found = self._beginning.up_to(0 if position is None else position["bytes"])
        self._refuse_change()
        return found

    def verify(self, seal: Seal) -> None:
        """An error, unless the file begins with the bytes of a seal; it may have grown since then.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "t.svm")
        ...     _ = path.write_text("1 1:0.5\\n-1 1:2\\n")
        ...     batches = open_batches(path, batch_rows=1)
        ...     first = next(iter(batches))
        ...     seal = batches.seal(first.position)
        ...     _ = path.write_text("1 1:0.5\\n-1 1:2\\n1 1:4\\n")
        ...     grown = open_batches(path, batch_rows=1)
        ...     grown.verify(seal)
        ...     [batch.y.tolist() for batch in grown.read(first.position)]
        [[-1], [1]]
        """
        if not is_seal(seal):
            raise ValueError(f"expected what seal() returned, got {shown(seal)}")
        beginning = Beginning(self.path)
        if beginning.up_to(seal["bytes"]) != seal:
            raise DataError(
                str(self.path),
                "file",
                f"the first {seal['bytes']} bytes are not those that were read before: the file changed, or is another "
                "one. Only rows at its end may be new; start from the beginning",
            )
        self._beginning, self._verified = beginning, beginning.n_bytes

    def survey(self) -> Survey:
        """One pass over the file; what it told is remembered."""
        self._refuse_change()
        if self._survey is None:
            tally = Tally()
            for piece in self._watched(self._reader.first_pass()):
                tally.add(piece.X, piece.y)
            if tally.n_rows == 0:
                raise self._no_rows()
            assert self._reader.n_features is not None
            self._survey = tally.survey(self._reader.n_features, self._reader.zero_based)
        return self._survey

    def _watched(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        """The pieces, as long as the file stays what it was; then what is wrong with it is not its fault."""
        try:
            for piece in pieces:
                self._refuse_change()
                yield piece
        except DataError:
            self._refuse_change()
            raise
        self._refuse_change()

    def _cut(self, pieces: Iterator[Piece], start: dict[str, Any] | None) -> Iterator[Batch]:
        """Batches of equal numbers of rows, or one for each piece."""
        rows = self._rows if self._rows is not None else self._reader.rows
        n_before, skip = (start["rows"], start["skip"]) if start else (0, 0)
        held: list[tuple[Any, Any]] = []
        n_held = used = 0
        piece = None
        for piece in pieces:
            used = min(skip, piece.n_rows)  # rows of batches before the start
            skip -= used
            while used < piece.n_rows:
                end = piece.n_rows if rows is None else min(piece.n_rows, used + rows - n_held)
                held.append(piece.part(used, end))
                n_held, used = n_held + end - used, end
                if rows is None or n_held == rows:
                    n_before += n_held
                    yield self._batch(held, n_before, n_held, piece, used)
                    held, n_held = [], 0
        if piece is not None and held:
            n_before += n_held
            yield self._batch(held, n_before, n_held, piece, used)
        if n_before == 0:
            raise self._no_rows()

    def _batch(self, parts: list[tuple[Any, Any]], n_after: int, n: int, piece: Piece, used: int) -> Batch:
        X, y = parts[0] if len(parts) == 1 else _joined(parts)
        position: dict[str, Any] = {"format": self.format, "size": self.n_bytes, "rows": n_after}
        position["bytes"] = piece.end["disk"]
        if used == piece.n_rows:
            position |= {"skip": 0, "share": piece.end["share"], "from": piece.end}
        else:
            before, behind = piece.begin["share"], piece.end["share"]
            share = before + (behind - before) * used / piece.n_rows
            position |= {"skip": used, "share": share, "from": piece.begin}
        return Batch(X, y, n_after - n, position)

    def _check_position(self, start: Any) -> None:
        good = isinstance(start, dict) and all(isinstance(start.get(name), kind) for name, kind in POSITION.items())
        if not good:
            raise ValueError(f"start must be the position of a batch (Batch.position) or None, got {shown(start)}")
        grown = start["size"] < self.n_bytes and start["bytes"] <= self._verified
        if start["format"] != self.format or not (start["size"] == self.n_bytes or grown):
            raise DataError(
                str(self.path),
                "file",
                f"this file has {self.n_bytes} bytes of {self.format}, but the position is one in {start['size']} "
                f"bytes of {start['format']}: the file changed, or is another one; start from the beginning. (A file "
                "that has only grown can be verified: seal, verify.)",
            )

    def _refuse_change(self) -> None:
        if _stamp(self.path) != self._stamp:
            raise DataError(
                str(self.path),
                "file",
                "the file changed while it was being read; open it again, and start from the beginning",
            )

    def _no_rows(self) -> DataError:
        dropping = getattr(self._reader, "missing", "error") == "drop"
        problem = "every row has a missing value; fill them, or leave out columns (drop=...)"
        return DataError(str(self.path), "file", problem if dropping else "there are no rows")


def _joined(parts: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    matrices, labels = [X for X, _ in parts], [y for _, y in parts]
    y = None if labels[0] is None else np.concatenate(labels)
    if sp.issparse(matrices[0]):
        return sp.csr_array(sp.vstack(matrices, format="csr")), y
    return np.concatenate(matrices), y


def _stamp(path: Path) -> tuple[int, int]:
    """Size and time: what changes if a file does."""
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def open_batches(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    target: Target = None,
    n_features: int | None = None,
    zero_based: bool | None = None,
    batch_rows: int | None = None,
    batch_bytes: int = 16 << 20,
    missing: str = "error",
    drop: Sequence[str] = (),
    csv: CsvOptions | None = None,
    max_bytes: int | None = None,
) -> Batches:
    """Open a data file of any known format to read it batch by batch.

    The rows are those of :func:`read_table`, but columns must be numbers. The first megabyte decides whether labels
    are text, whole numbers or fractions, and which columns of a CSV file are truth values; rows that do not fit are
    an error (a batch with fractions among labels that were whole so far comes as float64).

    Parameters
    ----------
    path : file name; svmlight and CSV files may end in .gz, .bz2 or .xz. Of an Arrow file, one record batch is in
        memory at a time; an npz archive is read whole.
    format : one of svmlight, csv, parquet, arrow, npz; None goes by the file's name.
    target : the labels' column, by name or index (CSV, Parquet, Arrow). None: a column called label, target,
        class or y; False: there are no labels.
    n_features : number of feature columns. None: as the file has; for svmlight, a first pass finds it out.
    zero_based : whether a svmlight file counts columns from 0. None: a first pass finds out whether a column 0 occurs.
    batch_rows : rows of each batch but the last; None goes by ``batch_bytes``.
    batch_bytes : about so many bytes of text, or of the matrix where the file holds no text, make a batch.
    missing : "error", or "drop": rows with gaps are left out.
    drop : names or indices of columns to leave out.
    csv : layout of CSV text.
    max_bytes : most bytes that the content may have once it is unpacked. None: no limit for what is read in parts; an
        npz archive, which is read whole, may fill a quarter of the memory.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "t.svm").write_text("1 1:0.5 3:2\\n-1 2:1\\n1 1:3\\n")
    ...     for batch in open_batches(f"{folder}/t.svm", batch_rows=2):
    ...         print(batch.first_row, batch.X.shape, batch.y)
    0 (2, 3) [ 1 -1]
    2 (1, 3) [1]
    """
    _check_sizes(batch_rows=batch_rows, n_features=n_features, batch_bytes=batch_bytes)
    if zero_based is not None and not isinstance(zero_based, bool | np.bool_):
        raise ValueError(f"zero_based must be True, False or None, got {shown(zero_based)}")
    if csv is not None and not isinstance(csv, CsvOptions):
        raise ValueError(f"csv must be CsvOptions, got {shown(csv)}")
    if isinstance(drop, int):
        raise ValueError(f"drop must be a list of columns, got {shown(drop)}")
    if not isinstance(missing, str) or missing not in MISSING:
        raise ValueError(
            f"missing must be one of {MISSING}, got {shown(missing)}; to fill gaps, the table must be read whole"
        )
    kind = _known(path, format or format_of(path, reading=True))
    _refuse_what_is_read_once(path)
    stamp = _stamp(Path(path))
    byte_limit(path, max_bytes, packed=False)  # says what is wrong with it
    reader = _reader(path, kind, target, drop, csv, n_features, zero_based, int(batch_bytes), missing, max_bytes)
    if kind != "svmlight" and n_features is not None and reader.n_features != n_features:
        problem = f"there are {reader.n_features} feature columns, but there should be {n_features}"
        raise DataError(str(path), "header", f"{problem}; leave columns out with drop=..., or correct n_features")
    return Batches(Path(path), kind, reader, stamp, None if batch_rows is None else int(batch_rows))


def _check_sizes(**sizes: Any) -> None:
    for name, value in sizes.items():
        if value is None and name != "batch_bytes":
            continue
        if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < 1:
            raise ValueError(f"{name} must be a whole number above 0, got {shown(value)}")


def _reader(
    path: str | os.PathLike[str],
    kind: str,
    target: Target,
    drop: Sequence[str],
    csv: CsvOptions | None,
    n_features: int | None,
    zero_based: bool | None,
    batch_bytes: int,
    missing: str,
    max_bytes: int | None,
) -> PieceReader:
    if kind in ("svmlight", "npz"):
        if (target is not None and target is not False) or drop:
            option = "drop" if drop else "target"
            raise DataError(str(path), "file", f"{option} needs named columns, which {kind} files do not have")
        if kind == "svmlight":
            return SvmlightPieces(path, n_features, zero_based, batch_bytes, max_bytes)
        return NpzPieces(path, target, batch_bytes, missing, max_bytes)
    if kind == "csv":
        return CsvPieces(path, target, drop, csv, batch_bytes, missing, max_bytes)
    columns = ParquetPieces if kind == "parquet" else ArrowPieces
    return columns(path, target, drop, batch_bytes, missing, max_bytes)


def _refuse_what_is_read_once(path: str | os.PathLike[str]) -> None:
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "this is a folder, not a file", str(path))
    if not stat.S_ISREG(mode):
        raise DataError(
            str(path), "file", "a pipe or device cannot be read again and again; write it to a file, and open that"
        )


def survey(batches: Batches | str | os.PathLike[str], **options: Any) -> Survey:
    """What one pass over a file tells: its shape, classes and largest row.

    Parameters
    ----------
    batches : from :func:`open_batches`, which then remembers the answer; or a file name.
    options : for a file name, those of :func:`open_batches`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "t.svm").write_text("1 1:3 3:4\\n-1 2:1\\n")
    ...     survey(f"{folder}/t.svm")
    Survey(n_rows=2, n_features=3, classes=array([-1,  1]), largest_squared_norm=25.0, zero_based=False)
    """
    if isinstance(batches, Batches):
        if options:
            raise ValueError(f"the file is open already; give {', '.join(options)} to open_batches")
        return batches.survey()
    return open_batches(batches, **options).survey()
