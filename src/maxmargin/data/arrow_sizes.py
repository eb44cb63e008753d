"""How large Parquet and Arrow files are once they are unpacked, by what they say of themselves."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

# Of Arrow's message format (Message.fbs): the places of fields in their tables.
HEADER, BATCH_OF_DICTIONARY, BUFFERS, COMPRESSION = 2, 1, 2, 3
MAGIC = b"ARROW1"
AFTER_MAGIC = 8  # where the messages begin: the magic text is padded


def size_of_parquet(file: Any) -> int:
    """Bytes that the columns of an open Parquet file have in memory.

    Numbers that repeat take next to nothing in the file, even unpacked: each cell counts with the width of its type.
    """
    contents, schema = file.metadata, file.schema_arrow
    groups = [contents.row_group(k) for k in range(contents.num_row_groups)]
    stored = sum(group.total_byte_size for group in groups)
    return max(int(stored), int(contents.num_rows) * sum(_width(kind) for kind in schema.types))


def _width(kind: Any) -> int:
    """Bytes of a cell; of text, of its place alone."""
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return 4


def sizes_of_messages(file: Any) -> Iterator[int]:
    """Bytes that each message of an Arrow file or stream has once it is unpacked; none of them is.

    Examples
    --------
    >>> import io, pyarrow as pa
    >>> table, file = pa.table({"a": [0.0] * 1000}), io.BytesIO()
    >>> with pa.ipc.new_stream(file, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
    ...     writer.write_table(table)
    >>> list(sizes_of_messages(pa.BufferReader(file.getvalue())))
    [0, 8000]
    """
    import pyarrow as pa  # whoever opened the file has it

    file.seek(AFTER_MAGIC if file.read(len(MAGIC)) == MAGIC else 0)
    reader = pa.ipc.MessageReader.open_stream(file)
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        yield _size_of_message(message)


def _size_of_message(message: Any) -> int:
    """PyArrow has checked that all places in the metadata are inside of it; those in the body are checked here."""
    if message.type not in ("record batch", "dictionary"):
        return 0
    meta, body = memoryview(message.metadata), memoryview(message.body)
    batch = _follow(meta, _field(meta, _follow(meta, 0), HEADER))
    if message.type == "dictionary":
        batch = _follow(meta, _field(meta, batch, BATCH_OF_DICTIONARY))
    is_packed, place = _field(meta, batch, COMPRESSION), _field(meta, batch, BUFFERS)
    if not place:
        return 0
    vector = _follow(meta, place)
    (n_buffers,) = struct.unpack_from("<I", meta, vector)
    size = 0
    for k in range(n_buffers):
        offset, length = struct.unpack_from("<qq", meta, vector + 4 + 16 * k)
        unpacked = -1
        if is_packed and length >= 8 and 0 <= offset <= len(body) - 8:
            (unpacked,) = struct.unpack_from("<q", body, offset)
        size += max(0, length if unpacked < 0 else unpacked)
    return size


def _follow(meta: memoryview, place: int) -> int:
    """Where the offset at a place leads."""
    return int(place + struct.unpack_from("<I", meta, place)[0])


def _field(meta: memoryview, table: int, index: int) -> int:
    """The place of a table's field; 0 if the table does not have it."""
    begin = table - struct.unpack_from("<i", meta, table)[0]
    (size,) = struct.unpack_from("<H", meta, begin)
    if 4 + 2 * index >= size:
        return 0
    offset = int(struct.unpack_from("<H", meta, begin + 4 + 2 * index)[0])
    return table + offset if offset else 0
