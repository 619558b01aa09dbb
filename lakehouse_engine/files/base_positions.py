"""Finds the rows of a base file that records of log blocks replace or delete by the positions in the blocks, without reading keys.

Blocks of version 6 store positions in their Parquet footers (docs/adr/0040), blocks of versions 8 and 9 in their headers, as Hudi's do
(hudi-format II.3; Hudi `HoodieLogBlock`, `PositionBasedFileGroupRecordBuffer`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_engine.errors import CorruptLogError, FormatError
from lakehouse_engine.files.log_scanner import ScannedBlock
from lakehouse_engine.files.merge_rules import LATEST, MergeRules
from lakehouse_engine.format.log.blocks import BlockType, HeaderKey, LogBlock
from lakehouse_engine.format.log.positions import (
    MOST_ROWS,
    NOT_IN_BASE,
    BaseRows,
    Positions,
    parse_positions,
    parse_rule,
    render_positions,
    render_rule,
)
from lakehouse_engine.format.log.record_positions import encode_record_positions
from lakehouse_engine.model.files import BaseFile

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SaidPositions:
    """Positions of one block as it stores them: entries for its `header` and Parquet `footer`. Its records go in this `order` (None:
    unchanged).
    """

    header: Mapping[int, str] = field(default_factory=dict)
    footer: Mapping[str, str] = field(default_factory=dict)
    order: Rows | None = None

    def ordered(self, records: pa.Table | pa.Array) -> pa.Table | pa.Array:
        return records if self.order is None else records.take(pa.array(self.order))


NO_POSITIONS = SaidPositions()


@dataclass(frozen=True, slots=True)
class PositionForm:
    """How blocks store positions of one base file: by `rule` (None: none is settled), and `in_headers` or in footers."""

    base: BaseFile | None
    rule: str | None
    in_headers: bool

    def of_rows(self, positions: Rows | Positions | None) -> SaidPositions:
        """For a data block whose row i replaces the base row `positions[i]`; `positions` is None if they are unknown."""
        if positions is None or self.base is None:
            return NO_POSITIONS
        if self.in_headers:
            said = self.of_deletions(positions)
            needs_rule = said.header and self.rule not in (None, LATEST)
            return replace(said, footer=render_rule(self.rule)) if needs_rule and self.rule is not None else said
        if self.rule is None or len(positions) > MOST_ROWS:
            return NO_POSITIONS
        under = BaseRows(self.base.name, self.base.size, self.rule)
        return SaidPositions(footer=render_positions(under, positions.astype(np.int32)))

    def of_deletions(self, positions: Rows | Positions | None) -> SaidPositions:
        """The same for a delete block. Headers hold all positions of a block, each once, or none; footers hold none of deletions."""
        if positions is None or self.base is None or not self.in_headers or not len(positions) or positions.min() < 0:
            return NO_POSITIONS
        order = np.argsort(positions, kind="stable")
        ascending = positions[order].astype(np.int64)
        steps = np.diff(ascending)
        if not steps.all():
            return NO_POSITIONS
        header: dict[int, str] = {
            HeaderKey.RECORD_POSITIONS: encode_record_positions(ascending),
            HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: self.base.instant_time,
        }
        return SaidPositions(header, order=None if (np.diff(order) > 0).all() else order)


@dataclass(frozen=True, slots=True)
class RowsByPosition:
    """Records of blocks told apart by position, each position standing for one key.

    `codes` number the keys of all records by first appearance; `positions` are those of the keys.
    """

    codes: Rows
    positions: Rows

    @classmethod
    def of(cls, positions: Sequence[Positions], base_rows: int) -> RowsByPosition | None:
        """`positions` are those of all records of each block; the base file has `base_rows` rows.

        None if keys must be read: a record has no position in the base file, or two records of one block share a position, because the
        block repeats a key or is damaged.
        """
        flat = np.concatenate([np.empty(0, np.int32), *positions])
        if len(flat) and not (flat.min() >= 0 and flat.max() < base_rows):
            return None
        rows, first = np.arange(len(flat), dtype=np.int32), np.empty(base_rows, np.int32)
        first[flat[::-1]] = rows[::-1]  # On duplicate indices the last write wins: the first record.
        begins = first[flat]
        comes_first = begins == rows
        codes = (np.cumsum(comes_first) - 1)[begins]
        found = flat[comes_first].astype(np.int64)
        ends = np.cumsum([len(part) for part in positions])
        return cls(codes, found) if all(_is_distinct(part, len(found)) for part in np.split(codes, ends[:-1])) else None


def _is_distinct(codes: Rows, count: int) -> bool:
    met = np.zeros(count, np.bool_)
    met[codes] = True
    return bool(np.count_nonzero(met) == len(codes))


@dataclass(frozen=True, slots=True)
class SlicePositions:
    """Base row of every record of every block; `NOT_IN_BASE` for keys that the base file does not have.

    `settled`: each row of the logs that has a base row replaces it, no matter what was logged later, so the base row need not be read.
    `alone`: tells records apart without their keys.
    """

    blocks: tuple[Positions, ...]
    settled: bool
    alone: RowsByPosition | None = None

    def without_keys(self, base_rows: int) -> SlicePositions:
        """The same positions, telling records apart by position if possible; the base file has `base_rows` rows."""
        return replace(self, alone=RowsByPosition.of(self.blocks, base_rows))

    def of_keys(self, codes: Rows, keys: int) -> Rows:
        """Position of each distinct key; `codes` number the keys of the records of all blocks, in block order."""
        flat = np.concatenate([np.empty(0, np.int32), *self.blocks])
        found = np.full(keys, NOT_IN_BASE, np.int64)
        stored = flat != NOT_IN_BASE
        found[codes[stored]] = flat[stored]
        return found


def slice_positions(blocks: Sequence[ScannedBlock], base: BaseFile | None, rules: MergeRules, schema: pa.Schema) -> SlicePositions | None:
    """Positions in exactly this base file, from the blocks; `schema` has the table's user columns.

    None unless all blocks have them: then all records are found by key, as in Hudi. Raises `CorruptLogError` if a block's positions do not
    parse.
    """
    rule, found, settled = rules.settled(schema), [], True
    for scanned in blocks:
        said = None if base is None else _said(scanned, base)
        if said is None:
            return None
        positions, by_rule = said
        found.append(positions)
        settled &= scanned.block.type is BlockType.DELETE or (rule is not None and rule in (LATEST, by_rule))
    return SlicePositions(tuple(found), settled)


def _said(scanned: ScannedBlock, base: BaseFile) -> tuple[Positions, str | None] | None:
    """Positions of a block in the base file, and the rule by which its rows replace base rows."""
    block = scanned.block
    try:
        return _in_header(block, base) or _in_footer(block, base)
    except (FormatError, pa.ArrowException, OSError) as error:
        raise CorruptLogError(
            f"what a block at byte {block.offset} of the log file {scanned.path!r}, written by {block.instant_time}, says of positions does"
            f" not parse: {error}",
            path=scanned.path,
            instant=block.instant_time,
            offset=block.offset,
        ) from error


def _in_header(block: LogBlock, base: BaseFile) -> tuple[Positions, str | None] | None:
    if block.base_instant != base.instant_time or block.record_positions is None or not len(block.record_positions):
        return None
    rows = block.record_positions
    if rows[-1] > np.iinfo(np.int32).max:
        raise FormatError(f"no base file has a row {rows[-1]}")
    rule = parse_rule(block.parquet_footer.metadata) if block.type is BlockType.PARQUET_DATA else None
    return rows.astype(np.int32), rule


def _in_footer(block: LogBlock, base: BaseFile) -> tuple[Positions, str | None] | None:
    if block.type is not BlockType.PARQUET_DATA:
        return None
    footer = block.parquet_footer
    said = parse_positions(footer.metadata, footer.num_rows)
    if said is None or (said[0].name, said[0].size) != (base.name, base.size):
        return None
    return said[1], said[0].rule
