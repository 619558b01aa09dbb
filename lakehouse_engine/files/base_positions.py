"""Which base rows the logs of a slice take the place of, where the footers of their blocks tell: then no key of the base file is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_engine.errors import CorruptLogError, FormatError
from lakehouse_engine.files.log_scanner import ScannedBlock
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.format.log.blocks import BlockType
from lakehouse_engine.format.log.positions import MOST_ROWS, NOT_IN_BASE, BaseRows, Positions, parse_positions, render_positions
from lakehouse_engine.model.files import BaseFile

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RowsByPosition:
    """Rows of blocks, of which those with one position have one key: `codes` number the keys of all rows, in the order in which they come
    first, and `positions` are those of the keys.
    """

    codes: Rows
    positions: Rows

    @classmethod
    def of(cls, positions: Sequence[Positions], base_rows: int) -> RowsByPosition | None:
        """`positions` of all rows of each block, in a base file of so many rows. None where keys have to be asked: it does not have some,
        or two rows of a block have one position, as the block has a key twice, or is damaged.
        """
        flat = np.concatenate([np.empty(0, np.int32), *positions])
        if len(flat) and not (flat.min() >= 0 and flat.max() < base_rows):
            return None
        rows, first = np.arange(len(flat), dtype=np.int32), np.empty(base_rows, np.int32)
        first[flat[::-1]] = rows[::-1]  # the last that is written stays
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


def rows_under(base: BaseFile | None, rules: MergeRules, schema: pa.Schema) -> BaseRows | None:
    """What blocks say that tell positions in a base file; None where positions are not enough to merge by `rules`. `schema` has the
    table's user columns.
    """
    rule = rules.settled(schema)
    return None if rule is None or base is None else BaseRows(base.name, base.size, rule)


def positions_footer(base: BaseFile | None, rules: MergeRules, schema: pa.Schema, positions: Rows | Positions | None) -> dict[str, str]:
    """What the footer of a Parquet block says besides: for each of its rows which row of the base file it takes the place of, where that is
    known, and of use.
    """
    under = None if positions is None or len(positions) > MOST_ROWS else rows_under(base, rules, schema)
    return {} if under is None or positions is None else render_positions(under, positions.astype(np.int32))


def base_positions(blocks: Sequence[ScannedBlock], base: BaseRows) -> list[Positions] | None:
    """The position in the base file of every row of every block, `NOT_IN_BASE` for keys that it does not have.

    None unless all blocks tell, of this very file: others' do not, nor do deletions. Raises `CorruptLogError` for a footer that does not
    parse.
    """
    found = []
    for scanned in blocks:
        told = _told(scanned)
        if told is None or told[0] != base:
            return None
        found.append(told[1])
    return found


def _told(scanned: ScannedBlock) -> tuple[BaseRows, Positions] | None:
    block = scanned.block
    if block.type is not BlockType.PARQUET_DATA:
        return None
    try:
        footer = block.parquet_footer
        return parse_positions(footer.metadata, footer.num_rows)
    except (FormatError, pa.ArrowException, OSError) as error:
        raise CorruptLogError(
            f"the footer of a block at byte {block.offset} of the log file {scanned.path!r}, written by {block.instant_time}, does not"
            f" parse: {error}",
            path=scanned.path,
            instant=block.instant_time,
            offset=block.offset,
        ) from error


def of_keys(positions: Sequence[Positions], codes: Rows, keys: int) -> Rows:
    """The position of each of the distinct keys; `codes` number the keys of the rows of all blocks, in their order."""
    flat = np.concatenate([np.empty(0, np.int32), *positions])
    found = np.full(keys, NOT_IN_BASE, np.int64)
    stored = flat != NOT_IN_BASE
    found[codes[stored]] = flat[stored]
    return found
