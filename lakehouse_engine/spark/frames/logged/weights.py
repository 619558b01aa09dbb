"""Estimates the cost of merging a slice from footers, and from no more rows than show that they are too many."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import reduce
from operator import add

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.files.base_file import damage
from lakehouse_engine.files.column_bounds import is_rebased
from lakehouse_engine.files.footers import FOOTERS
from lakehouse_engine.files.log_scanner import scan_logs
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.format.log.blocks import BlockType
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.read.scan import ScanPlan


@dataclass(frozen=True, slots=True)
class Weight:
    """The cost of merging: slices, bytes of their files, values stored as Parquet (a processor merges ten to twenty million a second), and
    the bytes of these values in memory.
    """

    slices: int
    stored: int
    values: int
    decoded: int

    def __add__(self, other: Weight) -> Weight:
        return Weight(*(mine + its for mine, its in zip(astuple(self), astuple(other), strict=True)))

    def within(self, most: Weight) -> bool:
        return all(mine <= its for mine, its in zip(astuple(self), astuple(most), strict=True))


Key = tuple[Hashable, Hashable]
"""What determines the rows of a slice: its files and how they are merged, and what identifies its base file."""

_WEIGHTS: BoundedCache[Weight] = BoundedCache(10_000)
"""Weights of slices and of base files, each with the limit up to which it was weighed."""


def slice_weight(plan: ScanPlan, piece: LoggedSlice, key: Key, most: Weight) -> Weight:
    """Weight of a slice of the plan; not exact above `most`. A slice that must not be merged weighs more than that. Its base file is
    weighed once, however many logs come.

    Raises as `scan_logs` and `read_base_file`.
    """
    reader = plan.reader
    assert reader is not None
    return _WEIGHTS.find((key, most), lambda: _slice_weight(plan, reader, piece, key[1], most))


def _slice_weight(plan: ScanPlan, reader: SliceReader, piece: LoggedSlice, known: Hashable, most: Weight) -> Weight:
    found, base = Weight(1, piece.slice.size, 0, 0), piece.slice.base_file
    if base is not None:
        found += _WEIGHTS.find((known, most), lambda: _base_weight(plan, base, most))
    return reduce(add, _log_weights(reader, piece, most), found) if found.within(most) else found


def _base_weight(plan: ScanPlan, base: BaseFile, most: Weight) -> Weight:
    footer = FOOTERS.read(plan.storage, base, verify=plan.verify)
    if is_rebased(footer, first_right=b"3.1"):
        return Weight(0, 0, most.values + 1, 0)
    with plan.storage.open_input(base.path) as source, damage(base.path):
        return parquet_weight(footer, source, most)


def _log_weights(reader: SliceReader, piece: LoggedSlice, most: Weight) -> Iterator[Weight]:
    for one in scan_logs(reader.storage, piece, reader.scope, verify=False).with_rows():
        if one.block.type is BlockType.PARQUET_DATA:
            content = pa.BufferReader(one.block.content)
            with suppress(pa.ArrowException, OSError):  # the code that decodes the block reports what is wrong
                yield parquet_weight(one.block.parquet_footer, content, most)


def parquet_weight(footer: pq.FileMetaData, source: pa.NativeFile, most: Weight) -> Weight:
    """Values of a Parquet file and their bytes. Stops reading when they exceed `most`."""
    values, decoded = 0, 0
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        chunks = [group.column(place) for place in range(group.num_columns)]
        values += sum(chunk.num_values for chunk in chunks)
        decoded += sum(chunk.total_uncompressed_size for chunk in chunks)
        # Texts of a dictionary may be long, and each is stored once. Bounds do not tell how long the texts between them are.
        texts = [chunk for chunk in chunks if chunk.physical_type == "BYTE_ARRAY" and chunk.has_dictionary_page]
        unsure = [chunk for chunk in texts if chunk.num_values * chunk.total_uncompressed_size > most.decoded]
        if unsure and values <= most.values:
            decoded += _text_bytes(source, footer, number, unsure, most)
    return Weight(0, 0, values, decoded)


def _text_bytes(source: pa.NativeFile, footer: pq.FileMetaData, group: int, chunks: Sequence[pq.ColumnChunkMetaData], most: Weight) -> int:
    """Bytes of the chunks' values, or a number above `most`. Values are decoded few at a time, and no more than that takes."""
    at_once = max(1, most.decoded // sum(chunk.total_uncompressed_size for chunk in chunks))
    found, file = 0, pq.ParquetFile(source, metadata=footer)
    for batch in file.iter_batches(at_once, row_groups=[group], columns=[chunk.path_in_schema for chunk in chunks]):
        found += batch.nbytes
        if found > most.decoded:
            break
    return found
