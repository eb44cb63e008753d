"""What is packed may be larger than any memory: it is refused before memory is full, and says how large it got."""

import bz2
import gzip
import io
import lzma
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from maxmargin.data import (
    DataError,
    limits,
    open_batches,
    read_arrow,
    read_csv,
    read_npz,
    read_parquet,
    read_svmlight,
    read_table,
    survey,
)
from maxmargin.data import files as opened_files
from maxmargin.data.check import check_file

PACKERS = {".gz": gzip, ".bz2": bz2, ".xz": lzma}
LIMIT = 200_000
ROWS = 20_000
TEXTS = {"csv": b"a,b,label\n" + b"0,0,1\n1,0,0\n" * ROWS, "svm": b"1 1:0\n0 2:1\n" * ROWS}


def written(folder, kind):
    """A small file that unpacks to much more than the limit."""
    path = folder / f"t.{kind}"
    table = pa.table({"a": np.zeros(10 * ROWS), "label": np.arange(10 * ROWS) % 2})
    if kind == "npz":
        np.savez_compressed(path, X=np.zeros((ROWS, 10)), y=np.arange(ROWS) % 2)
    elif kind == "parquet":
        pyarrow.parquet.write_table(table, path)
    elif kind == "arrow":
        pyarrow.feather.write_feather(table, str(path), compression="zstd", chunksize=1000)
    else:
        text, suffix = kind.split(".")
        path.write_bytes(PACKERS[f".{suffix}"].compress(TEXTS[text]))
    return path


KINDS = [*(f"{text}.{packed}" for text in TEXTS for packed in ("gz", "bz2", "xz")), "npz", "parquet", "arrow"]


@pytest.mark.parametrize("kind", KINDS)
def test_more_than_the_limit_is_refused(kind, tmp_path):
    path = written(tmp_path, kind)
    assert path.stat().st_size < LIMIT
    reader = {"csv": read_csv, "svm": read_svmlight, "npz": read_npz, "parquet": read_parquet, "arrow": read_arrow}
    for read in (read_table, reader[kind.split(".")[0]], lambda path, **o: [*open_batches(path, **o)]):
        with pytest.raises(
            DataError, match=r"this is .* or more, from .* on disk, and the limit is 195 kB.*--max-bytes.*"
        ):
            read(path, max_bytes=LIMIT)
        read(path, max_bytes=100 * LIMIT)
    assert "the limit is 195 kB" in check_file(path, max_bytes=LIMIT).problems[0].what
    assert "limit" not in str(check_file(path).problems)


@pytest.mark.parametrize("kind", KINDS)
def test_the_default_is_a_quarter_of_the_memory(kind, tmp_path, monkeypatch):
    path = written(tmp_path, kind)
    monkeypatch.setattr(limits, "memory_of_this_machine", lambda: 4 * LIMIT)
    with pytest.raises(DataError, match="the limit is 195 kB"):
        read_table(path)
    if kind != "npz":  # parts of a file do not fill the memory
        assert survey(path).n_rows > ROWS
    monkeypatch.setattr(limits, "memory_of_this_machine", lambda: 400 * LIMIT)
    read_table(path)


@pytest.mark.parametrize("kind", ["csv.gz", "svm.xz"])
def test_unpacking_stops_at_the_limit(kind, tmp_path, monkeypatch):
    path = written(tmp_path, kind)
    n_bytes = []
    count = opened_files.Limited._count

    def noted(self, n):
        n_bytes.append(n)
        count(self, n)

    monkeypatch.setattr(opened_files.Limited, "_count", noted)
    with pytest.raises(DataError, match="limit"):
        read_table(path, max_bytes=1000)
    assert sum(n_bytes) == 1001


def test_plain_text_has_no_limit_unless_one_is_given(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "memory_of_this_machine", lambda: 4 * LIMIT)
    for kind, text in TEXTS.items():
        path = tmp_path / f"t.{kind}"
        path.write_bytes(text)
        assert read_table(path).n_rows == 2 * ROWS
        assert read_table(path, max_bytes=len(text)).n_rows == 2 * ROWS
        with pytest.raises(DataError, match="limit"):
            read_table(path, max_bytes=len(text) - 1)


def test_what_is_not_smaller_on_disk_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "memory_of_this_machine", lambda: 1000)
    X = np.random.default_rng(0).standard_normal((500, 4))
    np.savez(tmp_path / "t.npz", X=X)
    assert read_table(tmp_path / "t.npz").n_rows == 500
    pyarrow.feather.write_feather(pa.table({"a": X[:, 0]}), str(tmp_path / "t.arrow"), compression="uncompressed")
    assert read_table(tmp_path / "t.arrow").n_rows == 500


def test_an_archive_whose_entries_overlap_counts_each(tmp_path):
    """Entries of an archive may be the same bytes again and again."""
    content = io.BytesIO()
    np.save(content, np.zeros(10_000))
    with zipfile.ZipFile(tmp_path / "t.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("X", "y", "z"):
            archive.writestr(f"{name}.npy", content.getvalue())
    with pytest.raises(DataError, match="unpacked, this is 235 kB or more"):
        read_npz(tmp_path / "t.npz", max_bytes=LIMIT)


def test_one_record_batch_is_measured_before_it_is_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "t.arrow"
    pyarrow.feather.write_feather(pa.table({"a": np.zeros(1 << 20)}), str(path), compression="zstd", chunksize=1 << 20)
    before = pa.total_allocated_bytes()
    peak = pa.default_memory_pool().max_memory()
    with pytest.raises(DataError, match="unpacked, this is 8 MB or more"):
        read_table(path, max_bytes=LIMIT)
    assert pa.default_memory_pool().max_memory() <= max(peak, before + (4 << 20))


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "8GB", True])
def test_odd_limits(wrong, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(TEXTS["csv"])
    for read in (read_table, open_batches, read_csv):
        with pytest.raises(ValueError, match="max_bytes must be a whole number above 0 or None"):
            read(path, max_bytes=wrong)


def test_the_memory_of_a_container(tmp_path, monkeypatch):
    whole = limits.memory_of_this_machine()
    group = tmp_path / "memory.max"
    monkeypatch.setattr(limits, "CGROUP_LIMITS", (str(group),))
    for content, expected in (("1000000\n", 1_000_000), ("max\n", None), ("9" * 30, None)):
        group.write_text(content)
        found = limits.memory_of_this_machine()
        assert found == expected if expected else found >= whole
    monkeypatch.setattr(limits.os, "sysconf", lambda name: -1)
    assert limits.memory_of_this_machine() == limits.UNKNOWN_MEMORY
