"""Writes sorted keys and values as an HFile that readers of Hudi 0.15 and later accept.

gzip, blocks of 64 KiB, one index level (design: metadata table, "Recommended form"): with larger uncompressed blocks, Hudi's readers lose
the last entries of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import FormatError, OptionError
from lakehouse_engine.format.hfile.blocks import DATA, FILE_INFO, HEADER, LEVEL, META, ROOT_INDEX, Compression, render_block
from lakehouse_engine.format.hfile.cells import Cells, encode_cells, key_bytes, stored_key
from lakehouse_engine.format.hfile.index import Index, render_root
from lakehouse_engine.format.hfile.trailer import Trailer, render_info, standard_info

BLOCK_SIZE = 64 * 1024
_AT_ONCE = 256 * 1024
"""Entries that are encoded at once."""

Write = Callable[[bytes], object]


class HFileWriter:
    """Writes one HFile, in order, through `write`, which takes bytes. `append` entries, then `close`.

    `compression` and `level` (zlib's) apply to all blocks; `block_size` is the most bytes of entries in a block; a larger entry gets a
    block of its own.
    """

    def __init__(
        self, write: Write, *, compression: Compression = Compression.GZIP, block_size: int = BLOCK_SIZE, level: int = LEVEL
    ) -> None:
        if not 0 < block_size <= BLOCK_SIZE:
            raise OptionError(f"blocks of an HFile have 1 to {BLOCK_SIZE} bytes, not {block_size}: Hudi loses entries of larger ones")
        self._write, self._compression, self._block_size, self._level = write, compression, block_size, level
        self._offset = 0
        self._blocks: list[tuple[int, int, bytes]] = []
        self._last_key: bytes | None = None
        self._entries = self._key_bytes = self._value_bytes = self._content_size = 0

    def append(self, cells: Cells) -> None:
        """Add entries after the previous ones. Raises `FormatError` unless keys ascend without duplicates."""
        for start in range(0, len(cells), _AT_ONCE):
            self._append(cells.slice(start, min(start + _AT_ONCE, len(cells))))

    def _append(self, cells: Cells) -> None:
        self._check_order(cells)
        encoded = encode_cells(cells)
        offsets = np.frombuffer(encoded.buffers()[1], np.int64)[: len(encoded) + 1]
        content = memoryview(encoded.buffers()[2])
        for first, end in _cuts(offsets, self._block_size):
            key = cells.keys[first].as_py()
            self._data_block(content[offsets[first] : offsets[end]], key)
        keys, values = key_bytes(cells)
        self._entries += len(cells)
        self._key_bytes, self._value_bytes = self._key_bytes + keys, self._value_bytes + values
        self._last_key = cells.keys[-1].as_py()

    def _check_order(self, cells: Cells) -> None:
        if cells.keys.null_count or cells.values.null_count:
            raise FormatError("an HFile has no null keys or values")
        ascends = pc.all(pc.less(cells.keys[:-1], cells.keys[1:])).as_py() is not False
        if not ascends or (self._last_key is not None and cells.keys[0].as_py() <= self._last_key):
            raise FormatError("keys of an HFile ascend by their bytes, and each is there once")

    def _data_block(self, content: memoryview, first_key: bytes) -> None:
        previous = self._blocks[-1][0] if self._blocks else -1
        offset, size = self._put(DATA, content, previous)
        self._blocks.append((offset, size, first_key))

    def _put(self, magic: bytes, content: bytes | memoryview, previous: int = -1) -> tuple[int, int]:
        block = render_block(magic, content, self._compression, previous=previous, level=self._level)
        offset = self._offset
        self._write(block)
        self._offset += len(block)
        self._content_size += len(content) + HEADER.size
        return offset, len(block)

    def close(self, info: Mapping[bytes, bytes] | None = None, meta: Mapping[bytes, bytes] | None = None) -> None:
        """Write the rest of the file: meta blocks by name, indexes, the file info with `info`, and the trailer."""
        if not self._blocks:
            self._put(DATA, b"")
        named = [(*self._put(META, content), name) for name, content in sorted((meta or {}).items())]
        data_size, load_on_open = self._content_size, self._offset
        index, names = Index.of(self._blocks), Index.of(named)
        root = render_root(index, [stored_key(key) for _, _, key in self._blocks])
        self._put(ROOT_INDEX, root)
        self._put(ROOT_INDEX, render_root(names, [name for _, _, name in named]))
        last = None if self._last_key is None else stored_key(self._last_key)
        standard = standard_info(self._entries, self._key_bytes, self._value_bytes, last)
        info_offset, _ = self._put(FILE_INFO, render_info({**standard, **(info or {})}))
        trailer = Trailer(
            info_offset=info_offset,
            load_on_open=load_on_open,
            data_index_count=len(index),
            meta_index_count=len(names),
            entries=self._entries,
            compression=self._compression,
            index_size=len(root) + HEADER.size,
            content_size=data_size,
            last_data_block=self._blocks[-1][0] if self._blocks else 0,
        )
        self._write(trailer.render())


def _cuts(offsets: npt.NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """First entry and end of each block: as many entries as fit, at least one."""
    first, count = 0, len(offsets) - 1
    while first < count:
        end = int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1
        end = min(max(end, first + 1), count)
        yield first, end
        first = end


def render_hfile(
    cells: Cells,
    *,
    info: Mapping[bytes, bytes] | None = None,
    meta: Mapping[bytes, bytes] | None = None,
    compression: Compression = Compression.GZIP,
    block_size: int = BLOCK_SIZE,
    level: int = LEVEL,
) -> bytes:
    """A whole HFile with the entries of `cells`, whose keys ascend. Raises `FormatError` as `HFileWriter.append`."""
    parts: list[bytes] = []
    writer = HFileWriter(parts.append, compression=compression, block_size=block_size, level=level)
    writer.append(cells)
    writer.close(info, meta)
    return b"".join(parts)


def sorted_cells(keys: pa.Array, values: pa.Array) -> Cells:
    """Entries sorted by the bytes of their keys; keys may be text."""
    octets = keys.cast(pa.binary())
    order = pc.sort_indices(octets)
    return Cells(octets.take(order), values.cast(pa.binary()).take(order))
