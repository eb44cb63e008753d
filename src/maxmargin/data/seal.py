"""What a file began with: a digest of its first bytes, by which a later process knows that they are still the same."""

from __future__ import annotations

import hashlib
import os
from typing import Any

from maxmargin.data.errors import DataError
from maxmargin.data.files import BLOCK

# The number of bytes on disk, and their SHA-256; JSON can hold it.
Seal = dict[str, Any]


class Beginning:
    """The digest of a file's first bytes; it grows with them, and no byte is read twice.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "t.csv")
    ...     _ = path.write_text("1,2\\n3,4\\n")
    ...     seal = Beginning(path).up_to(4)
    ...     _ = path.write_text("1,2\\n7,8\\n5,6\\n")
    ...     seal == Beginning(path).up_to(4), seal == Beginning(path).up_to(8)
    (True, False)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path, self._state, self.n_bytes = path, hashlib.sha256(), 0

    def up_to(self, n_bytes: int) -> Seal:
        """The digest of at least so many bytes: of more, if more were asked for before."""
        if n_bytes > self.n_bytes:
            with open(self._path, "rb") as file:
                file.seek(self.n_bytes)
                while self.n_bytes < n_bytes:
                    block = file.read(min(BLOCK, n_bytes - self.n_bytes))
                    if not block:
                        raise DataError(
                            str(self._path),
                            "file",
                            f"the file has {self.n_bytes} bytes, but {n_bytes} of it were read before: it was cut, or "
                            "is another one; start from the beginning",
                        )
                    self._state.update(block)
                    self.n_bytes += len(block)
        return {"bytes": self.n_bytes, "sha256": self._state.hexdigest()}


def is_seal(value: Any) -> bool:
    """Whether a JSON value has the form of a seal."""
    good = isinstance(value, dict) and set(value) == {"bytes", "sha256"}
    return good and type(value["bytes"]) is int and value["bytes"] >= 0 and isinstance(value["sha256"], str)
