"""Which base rows the logs of a slice take the place of, where the footers of their blocks tell: then no key of the base file is read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse_engine.errors import CorruptLogError, FormatError
from lakehouse_engine.files.log_scanner import ScannedBlock
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.format.log.blocks import BlockType
from lakehouse_engine.format.log.positions import MOST_ROWS, NOT_IN_BASE, BaseRows, Positions, parse_positions, render_positions
from lakehouse_engine.model.files import BaseFile

Rows = npt.NDArray[np.int64]


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
        footer = pq.read_metadata(pa.BufferReader(block.content))
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
