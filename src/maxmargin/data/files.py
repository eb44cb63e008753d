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
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from maxmargin.data.errors import DataError
from maxmargin.data.limits import byte_limit, too_large

COMPRESSED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# What decompressors raise on damaged input.
DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError)
BLOCK = 1 << 24  # bytes that are unpacked at a time


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


def is_packed(path: str | os.PathLike[str]) -> bool:
    """Whether the name says that the file is compressed text.

    Examples
    --------
    >>> is_packed("a9a.svm.bz2"), is_packed("a9a.svm")
    (True, False)
    """
    return Path(path).suffix.lower() in COMPRESSED


@contextmanager
def open_plain(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """The file as it is on disk, read by system calls and never mapped into memory.

    Pages of a mapped file that somebody shortens are gone, and touching them ends the process; a read returns what
    is there. A file that was written to meanwhile is refused at the end, also if that looked like an error in it.
    """
    with open(path, "rb") as file:
        before = _stamp(file)
        try:
            yield file
        except DataError:
            _refuse_change(path, file, before)
            raise
        _refuse_change(path, file, before)


def _stamp(file: IO[bytes]) -> tuple[int, int] | None:
    """Size and time of a file, which change if somebody writes to it; None for pipes and devices."""
    found = os.fstat(file.fileno())
    return (found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None


def _refuse_change(path: str | os.PathLike[str], file: IO[bytes], before: tuple[int, int] | None) -> None:
    after = _stamp(file)
    if before is None or after is None or after == before:
        return
    sizes = "" if after[0] == before[0] else f": it had {before[0]} bytes, and has {after[0]} now"
    raise DataError(
        str(path), "file", f"the file changed while it was being read{sizes}; read it again when nobody writes to it"
    )


@contextmanager
def open_bytes(path: str | os.PathLike[str], limit: int | None = None) -> Iterator[IO[bytes]]:
    """The file's content, decompressed if its name ends in .gz, .bz2 or .xz; an error if it is beyond the limit."""
    opener = COMPRESSED.get(Path(path).suffix.lower())
    with open_plain(path) as plain:
        if opener is None:
            yield plain if limit is None else cast(IO[bytes], Limited(plain, str(path), limit))
            return
        try:
            with opener(plain, "rb") as unpacked:
                yield unpacked if limit is None else cast(IO[bytes], Limited(unpacked, str(path), limit))
        except DAMAGE as error:
            raise DataError(
                str(path),
                "file",
                f"the compressed file is damaged: {error}. Fetch or pack it again; if it is not compressed, leave the "
                f"{Path(path).suffix} off its name",
            ) from error


def open_text(path: str | os.PathLike[str], max_bytes: int | None) -> AbstractContextManager[IO[bytes]]:
    """The content of a file that is to be in memory as a whole, within :func:`byte_limit`."""
    return open_bytes(path, byte_limit(path, max_bytes, packed=is_packed(path)))


def whole_content(path: str | os.PathLike[str], max_bytes: int | None) -> Any:
    """All bytes of the content, as a buffer.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "t.txt").write_text("text")
    ...     bytes(whole_content(f"{folder}/t.txt", None))
    b'text'
    """
    with open_text(path, max_bytes) as file:
        size = 0 if isinstance(file, Limited) or is_packed(path) else os.fstat(file.fileno()).st_size
        if size == 0:
            return file.read()
        content = np.empty(size, dtype=np.uint8)  # NumPy asks for large pages, which makes this twice as fast
        return content[: file.readinto(content)]  # type: ignore[attr-defined]


class Limited:
    """A file of bytes whose content may not be longer than a limit."""

    def __init__(self, file: IO[bytes], source: str, limit: int) -> None:
        self._file, self._source, self._limit = file, source, limit
        self._position = 0

    def read(self, size: int = -1) -> bytes | bytearray:
        if size >= 0:
            return self._counted(self._file.read(min(size, self._limit - self._position + 1)))
        content = bytearray()
        while block := self.read(BLOCK):
            content += block
        return content

    def readinto(self, buffer: Any) -> int:
        n_read: int = self._file.readinto(memoryview(buffer)[: self._limit - self._position + 1])  # type: ignore[attr-defined]
        self._count(n_read)
        return n_read

    def seek(self, byte: int) -> int:
        self._position = self._file.seek(byte)
        self._count(0)
        return self._position

    def fileno(self) -> int:
        return self._file.fileno()

    def _counted(self, block: bytes) -> bytes:
        self._count(len(block))
        return block

    def _count(self, n_bytes: int) -> None:
        self._position += n_bytes
        if self._position > self._limit:
            raise too_large(self._source, self._position, self._limit)


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
