"""Opening files, compressed or not, and writing them so that nobody ever sees half of one."""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import os
import secrets
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from maxmargin.data.errors import DataError

COMPRESSED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# What decompressors raise on damaged input.
DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError)


def suffix_of(path: str | os.PathLike[str]) -> str:
    """The file's suffix in lower case, without that of a compression.

    Examples
    --------
    >>> suffix_of("a9a.SVM.bz2")
    '.svm'
    """
    name = Path(path)
    if name.suffix.lower() in COMPRESSED:
        name = name.with_suffix("")
    return name.suffix.lower()


@contextmanager
def open_bytes(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """The file's content, decompressed if its name ends in .gz, .bz2 or .xz."""
    opener = COMPRESSED.get(Path(path).suffix.lower())
    if opener is None:
        with open(path, "rb", buffering=0) as plain:
            yield cast(IO[bytes], plain)
        return
    with open(path, "rb"):  # a file that is missing or may not be read is no damaged archive
        pass
    try:
        with opener(path, "rb") as unpacked:
            yield cast(IO[bytes], unpacked)
    except DAMAGE as error:
        raise DataError(
            str(path),
            "file",
            f"the compressed file is damaged: {error}. Fetch or pack it again; if it is not compressed, leave the "
            f"{Path(path).suffix} off its name",
        ) from error


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Write a file that appears whole or not at all; an older file of that name stays until then.

    Where the file system can, the new content has no name until it is complete, so that a killed process leaves
    nothing half-written behind; where an older file is replaced, the complete content has a hidden name for one
    instant. Devices and pipes are written to directly.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(f"{folder}/note.txt") as file:
    ...         _ = file.write(b"whole")
    ...     pathlib.Path(folder, "note.txt").read_bytes()
    b'whole'
    """
    # The path itself is asked: what /dev/stdout leads to, a pipe for example, may have no path of its own.
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        with open(path, "wb") as device:
            yield device
        return
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
    folder, mode = os.path.dirname(target), _mode(target)
    # Short, because a name may have 255 bytes; random, so that neither threads nor leftovers get in the way.
    hidden = os.path.join(folder, f".{secrets.token_hex(8)}.part")
    try:
        descriptor, named = _new_file(folder, hidden, 0o666 if mode is None else 0o600)
    except OSError as error:  # the caller knows the target's name only
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            if named or mode is not None or not _name(file.fileno(), folder, target):
                named = named or _name(file.fileno(), folder, hidden)
                os.replace(hidden, target)
                named = False
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)  # a full disk has no name of its own
        raise
    finally:
        if named:
            with suppress(OSError):
                os.unlink(hidden)
    _sync_folder(folder)


def _new_file(folder: str, hidden: str, mode: int) -> tuple[int, bool]:
    """An open file without a name, or, where that is impossible, with the hidden name."""
    if hasattr(os, "O_TMPFILE") and os.path.exists("/proc/self/fd"):
        with suppress(OSError):
            return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, mode), False
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_CLOEXEC", 0)
    return os.open(hidden, flags, mode), True


def _name(descriptor: int, folder: str, name: str) -> bool:
    """Give a nameless file its name; False if there is a file of that name.

    Naming a folder makes Python call linkat, which follows the link in /proc.
    """
    where = os.open(folder, os.O_RDONLY)
    try:
        os.link(f"/proc/self/fd/{descriptor}", name, src_dir_fd=where, follow_symlinks=True)
    except FileExistsError:
        return False
    finally:
        os.close(where)
    return True


def _mode(target: str) -> int | None:
    """The permissions of the file that is there; None if there is none, and the umask decides."""
    try:
        return stat.S_IMODE(os.stat(target).st_mode)
    except FileNotFoundError:
        return None


def _sync_folder(folder: str) -> None:
    """The new name itself must survive a power cut, too."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
