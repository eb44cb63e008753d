"""How much a file may unpack to: a small archive can hold more than any memory."""

from __future__ import annotations

import os
import stat
from numbers import Integral
from pathlib import Path

from maxmargin.data.errors import DataError
from maxmargin.positions import shown

# Text, the table that is read from it and the matrix that is made of that may be in memory together, and short cells
# grow when they become numbers of 8 bytes.
PART_OF_MEMORY = 0.25
# Used where neither the system nor its control groups say how much memory there is.
UNKNOWN_MEMORY = 8 << 30
CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
UNITS = ((1 << 40, "TB"), (1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB"))


def memory_of_this_machine() -> int:
    """Bytes of memory that there are, or that the control group (a container, for example) may use.

    Examples
    --------
    >>> memory_of_this_machine() > 0
    True
    """
    try:
        n_pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        n_pages = page = 0
    found = [n_pages * page if min(n_pages, page) > 0 else UNKNOWN_MEMORY]
    for name in CGROUP_LIMITS:
        try:
            found.append(int(Path(name).read_text()))
        except (OSError, ValueError):  # there is no such file, or it says "max"
            continue
    return min(limit for limit in found if limit > 0)


def byte_limit(path: str | os.PathLike[str], max_bytes: int | None, *, packed: bool) -> int | None:
    """Most bytes of content that may be read from a file; None: no limit.

    A plain file is as large as it looks. What is packed or comes through a pipe may have any size: without
    ``max_bytes``, a quarter of the memory is the limit, or the size on disk if that is more.

    Examples
    --------
    >>> byte_limit("big.csv.gz", 1000, packed=True)
    1000
    """
    if max_bytes is not None:
        if not isinstance(max_bytes, Integral) or isinstance(max_bytes, bool) or int(max_bytes) < 1:
            raise ValueError(f"max_bytes must be a whole number above 0 or None, got {shown(max_bytes)}")
        return int(max_bytes)
    try:
        found = os.stat(path)
    except OSError:  # whoever opens the file says what is wrong
        return None
    if stat.S_ISREG(found.st_mode) and not packed:
        return None
    return max(int(PART_OF_MEMORY * memory_of_this_machine()), found.st_size)


def too_large(source: str, size: int, limit: int, place: str = "file") -> DataError:
    """The error for content beyond the limit; ``size``: what is known of it so far."""
    try:
        on_disk = f", from {in_words(os.path.getsize(source))} on disk"
    except OSError:
        on_disk = ""
    return DataError(
        source,
        place,
        f"unpacked, this is {in_words(size)} or more{on_disk}, and the limit is {in_words(limit)}. If it is meant to "
        "be that large, allow more with max_bytes=... (--max-bytes), or read it in parts (open_batches, fit_stream)",
    )


def in_words(size: int) -> str:
    """A number of bytes with a unit.

    Examples
    --------
    >>> in_words(999), in_words(3 << 20), in_words(12_884_901_888)
    ('999 bytes', '3 MB', '12 GB')
    """
    for unit, name in UNITS:
        if size >= unit:
            return f"{size / unit:.3g} {name}" if size < 1000 * unit else f"{size / unit:.0f} {name}"
    return f"{size} bytes"
