"""Writes sorted keys and values as an HFile that readers of Hudi 0.15 and later accept.

gzip, blocks of 64 KiB, one index level (design: metadata table, "Recommended form"): with larger uncompressed blocks, Hudi's readers lose
the last entries of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import FormatError, OptionError
from lakehouse_engine.format.hfile.blocks import DATA, FILE_INFO, HEADER, LEVEL, META, ROOT_INDEX, Compression, framed, render_block
from lakehouse_engine.format.hfile.cells import FRAME, Cells, decode_cells, encode_cells, key_bytes, stored_key
from lakehouse_engine.format.hfile.index import Index, render_root
from lakehouse_engine.format.hfile.reader import DataBlock, HFileReader
from lakehouse_engine.format.hfile.trailer import Trailer, render_info, standard_info

BLOCK_SIZE = 64 * 1024
_AT_ONCE = 256 * 1024
"""Entries that are encoded at once."""

Write = Callable[[bytes], object]


class HFileWriter:
    """Writes one HFile, in order, through `write`, which takes bytes. `append` entries or `copy` blocks of another file, then `close`.

    `compression` and `level` (zlib's) apply to all blocks; `block_size` is the most bytes of entries in a block; a larger entry gets a
    block of its own. `entries` counts those written; `first_key` and `last_key` are None if there are none.
    """

    def __init__(
        self, write: Write, *, compression: Compression = Compression.GZIP, block_size: int = BLOCK_SIZE, level: int = LEVEL
    ) -> None:
        if not 0 < block_size <= BLOCK_SIZE:
            raise OptionError(f"blocks of an HFile have 1 to {BLOCK_SIZE} bytes, not {block_size}: Hudi loses entries of larger ones")
        self._write, self._compression, self._block_size, self._level = write, compression, block_size, level
        self._offset = 0
        self._blocks: list[tuple[int, int, bytes]] = []
        self._next: bytes | None = b""
        """The least key that may follow; None if none may."""
        self.first_key: bytes | None = None
        self._last_key: bytes | None = None
        self._last_copied: memoryview | None = None
        self.entries = self._key_bytes = self._value_bytes = self._content_size = self._copied_size = self._copied_blocks = 0

    @property
    def last_key(self) -> bytes | None:
        return self._last_key if self._last_copied is None else _keys(self._last_copied)[-1].as_py()

    @property
    def least_size(self) -> int:
        """Bytes of entries that a block has at least, if the one before can spare them."""
        return self._block_size // 3

    def append(self, cells: Cells) -> None:
        """Add entries after the previous ones. Raises `FormatError` unless keys ascend without duplicates."""
        for start in range(0, len(cells), _AT_ONCE):
            self._append(cells.slice(start, min(start + _AT_ONCE, len(cells))))

    def _append(self, cells: Cells) -> None:
        self._check_order(cells)
        encoded = encode_cells(cells)
        offsets = np.frombuffer(encoded.buffers()[1], np.int64)[: len(encoded) + 1]
        content = memoryview(encoded.buffers()[2])
        for first, end in _cuts(offsets, self._block_size, self.least_size):
            key = cells.keys[first].as_py()
            self._data_block(content[offsets[first] : offsets[end]], key)
        keys, values = key_bytes(cells)
        self.entries += len(cells)
        self._key_bytes, self._value_bytes = self._key_bytes + keys, self._value_bytes + values
        self._last_key, self._last_copied = cells.keys[-1].as_py(), None
        self._next = self._last_key + b"\0"
        if self.first_key is None:
            self.first_key = cells.keys[0].as_py()

    def can_copy(self, reader: HFileReader) -> bool:
        """True if data blocks of that file have the form of this one's, and its trailer says how many entries it has.

        The count must fit the bytes of the blocks and the average lengths, which are rounded down.
        """
        trailer, averages = reader.trailer, reader.averages()
        if trailer.compression is not self._compression or trailer.meta_index_count or averages is None or not reader.has_memstore:
            return False
        content = trailer.content_size - HEADER.size * len(reader.starts()[1])
        return 0 <= content - trailer.entries * (FRAME + sum(averages)) < max(1, 2 * trailer.entries)

    def copy(self, blocks: Sequence[DataBlock]) -> None:
        """Add data blocks of a file that `can_copy` accepts, as they are stored; `count_copied` counts their entries. Raises `FormatError`
        unless keys ascend.
        """
        if self._next is None or blocks[0].key < self._next:
            raise _unordered()
        for block in blocks:
            size = len(block.stored.content)
            self._listed(block.key, framed(DATA, block.stored.body, size, self._previous), size)
            self._copied_size += size
        self._copied_blocks += len(blocks)
        self._next, self._last_copied = blocks[-1].end, blocks[-1].stored.content
        if self.first_key is None:
            self.first_key = _keys(blocks[0].stored.content)[0].as_py()

    def count_copied(self, reader: HFileReader, others: int) -> None:
        """Count the entries of the blocks copied from that file, all but `others` of its entries.

        Exact are the count, if the file's trailer is, and the bytes of keys and values together. Those of keys are reckoned by the file's
        average, which is rounded down. Raises `FormatError` if so many entries do not fit into the blocks.
        """
        averages, count = reader.averages(), len(reader) - others
        if not self._copied_blocks or averages is None:
            return
        if not self._copied_blocks <= count <= self._copied_size // (FRAME + averages[0]):
            raise FormatError(f"the trailer of an HFile says {len(reader)} entries, of which its blocks cannot have {count}")
        self.entries += count
        self._key_bytes += count * averages[0]
        self._value_bytes += self._copied_size - count * (FRAME + averages[0])

    def _check_order(self, cells: Cells) -> None:
        if cells.keys.null_count or cells.values.null_count:
            raise FormatError("an HFile has no null keys or values")
        ascends = pc.all(pc.less(cells.keys[:-1], cells.keys[1:])).as_py() is not False
        if not ascends or self._next is None or cells.keys[0].as_py() < self._next:
            raise _unordered()

    def _data_block(self, content: memoryview, first_key: bytes) -> None:
        block = render_block(DATA, content, self._compression, previous=self._previous, level=self._level)
        self._listed(first_key, block, len(content))

    @property
    def _previous(self) -> int:
        return self._blocks[-1][0] if self._blocks else -1

    def _listed(self, first_key: bytes, block: bytes, size: int) -> None:
        """Write a data block, and list it in the data index."""
        self._blocks.append((*self._written(block, size), first_key))

    def _put(self, magic: bytes, content: bytes) -> tuple[int, int]:
        return self._written(render_block(magic, content, self._compression, level=self._level), len(content))

    def _written(self, block: bytes, size: int) -> tuple[int, int]:
        """Offset and size of a block, whose content has `size` bytes."""
        offset = self._offset
        self._write(block)
        self._offset += len(block)
        self._content_size += size + HEADER.size
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
        last = self.last_key
        standard = standard_info(self.entries, self._key_bytes, self._value_bytes, None if last is None else stored_key(last))
        info_offset, _ = self._put(FILE_INFO, render_info({**standard, **(info or {})}))
        trailer = Trailer(
            info_offset=info_offset,
            load_on_open=load_on_open,
            data_index_count=len(index),
            meta_index_count=len(names),
            entries=self.entries,
            compression=self._compression,
            index_size=len(root) + HEADER.size,
            content_size=data_size,
            last_data_block=self._blocks[-1][0] if self._blocks else 0,
        )
        self._write(trailer.render())


def _cuts(offsets: npt.NDArray[np.int64], most: int, least: int) -> Iterator[tuple[int, int]]:
    """First entry and end of each block: as many entries as fit, at least one. If the last block would have fewer than `least` bytes, it
    takes entries of the one before, so that blocks that overflow in each compaction leave no tiny rests.
    """
    bounds, count = [0], len(offsets) - 1
    while bounds[-1] < count:
        end = int(np.searchsorted(offsets, offsets[bounds[-1]] + most, side="right")) - 1
        bounds.append(min(max(end, bounds[-1] + 1), count))
    if len(bounds) > 2 and offsets[-1] - offsets[bounds[-2]] < least:
        earlier = int(np.searchsorted(offsets, offsets[-1] - least, side="right")) - 1
        if earlier > bounds[-3] and offsets[-1] - offsets[earlier] <= most:
            bounds[-2] = earlier
    yield from pairwise(bounds)


def _keys(content: memoryview) -> pa.Array:
    """The keys in a data block that is copied."""
    return decode_cells([content]).keys


def _unordered() -> FormatError:
    return FormatError("keys of an HFile ascend by their bytes, and each is there once")


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
