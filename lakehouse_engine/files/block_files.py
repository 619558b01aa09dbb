"""Parquet blocks of logs as files: where a row counts as it was logged, it need not be decoded to be read by somebody else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_engine.files.log_scanner import LoggedSlice, LogPromise, ScannedBlock, ScannedLogs
from lakehouse_engine.format.log.blocks import BlockType
from lakehouse_engine.model.keys import META_COLUMNS

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BlockFile:
    """A block that is a Parquet file of `rows` rows, of which those at the positions `gone` (ascending) do not count."""

    content: bytes = field(repr=False)
    rows: int
    gone: Rows

    @property
    def nbytes(self) -> int:
        return len(self.content) + int(self.gone.nbytes)


def rows_of_blocks(scanned: ScannedLogs, piece: LoggedSlice, schema: pa.Schema, least: int) -> list[int] | None:
    """The number of rows of each data block, where all of them are files that any reader of Parquet reads as this engine does: with all
    meta columns and those of `schema` under their very names and types, and with checksums that were looked at when the logs were.

    None where some are not, or where they have less than `least` bytes on average, as files of a few rows cost more than their rows.
    """
    data = scanned.with_rows()
    if not data or any(one.block.type is not BlockType.PARQUET_DATA or one.block.is_partial for one in data):
        return None
    promises = piece.promises_by_path()
    if sum(len(one.block.content) for one in data) < least * len(data) or not all(_is_kept(one, promises) for one in data):
        return None
    wanted = pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *schema])
    counts = [count for count in (_count(one, wanted) for one in data) if count is not None]
    return counts if len(counts) == len(data) else None


def _is_kept(one: ScannedBlock, promises: Mapping[str, Sequence[LogPromise]]) -> bool:
    """Whether a commit has a checksum of all its bytes."""
    return any(
        promise.checksum is not None and promise.start is not None and promise.start <= one.block.offset and one.block.end <= promise.end
        for promise in promises.get(one.path, ())
    )


def _count(one: ScannedBlock, wanted: pa.Schema) -> int | None:
    try:
        footer = one.block.parquet_footer
        stored = footer.schema.to_arrow_schema()
    except (pa.ArrowException, OSError):
        return None  # whoever decodes it says what is wrong
    types = {field.name: field.type for field in stored}
    if len({name.lower() for name in types}) < len(stored):
        return None  # other readers look for names without regard to case
    # Children of lists and maps may be called otherwise, which no reader minds in what this engine wrote.
    return footer.num_rows if all(types.get(field.name) == field.type for field in wanted) else None


def block_files(scanned: ScannedLogs, counts: Sequence[int], kept: Rows) -> tuple[BlockFile, ...] | None:
    """Files of the blocks that have `counts` rows; `kept` numbers the rows that count, over all blocks in their order. A block of which no
    row counts is left out. None where a row counts twice.
    """
    is_kept = np.zeros(sum(counts), np.bool_)
    is_kept[kept] = True
    if np.count_nonzero(is_kept) < len(kept):
        return None
    parts = np.split(is_kept, np.cumsum(counts)[:-1])
    # Copies: they are kept for longer than a log is sure to be there, and what is mapped of a file that goes may go with it.
    return tuple(
        BlockFile(bytes(one.block.content), len(part), np.flatnonzero(~part))
        for one, part in zip(scanned.with_rows(), parts, strict=True)
        if part.any()
    )
