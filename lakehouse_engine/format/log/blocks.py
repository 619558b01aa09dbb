"""Blocks of log files (hudi-format 5.2; Hudi `HoodieLogFormat`, `HoodieLogBlock`). All integers are big-endian.

magic (6) | length of the rest (8) | format version (4) | type (4) | header map | content length (8) | content | footer map | length of
everything before (8). A map is: count (4), then for each entry key (4), length (4), UTF-8 text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse_engine.compat import cached_property
from lakehouse_engine.format.log.record_positions import RowNumbers, decode_record_positions

MAGIC = b"#HUDI#"
FORMAT_VERSION = 1
CONTENT_VERSION = 3
"""First integer of the content of Avro data, delete and CDC blocks."""
ROLLBACK_COMMAND = "0"


class BlockType(IntEnum):
    """Kinds of blocks, by their stored numbers (Hudi `HoodieLogBlock.HoodieLogBlockType`)."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class HeaderKey(IntEnum):
    """Keys of a block's header, by their stored numbers (Hudi `HoodieLogBlock.HeaderMetadataType`)."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


DATA_BLOCKS = frozenset({BlockType.AVRO_DATA, BlockType.HFILE_DATA, BlockType.PARQUET_DATA, BlockType.CDC_DATA})


@dataclass(frozen=True)
class LogBlock:
    """One block, or (type CORRUPT) a stretch of a log file that is not a block.

    `header` and `footer` map key numbers to text, in stored order, including keys that have no name here. `offset` is the position in the
    file and `length` the size, in bytes. For a corrupt stretch, `header` is what could be read of one, `content` all its bytes and `damage`
    what is wrong.
    """

    type: BlockType
    header: Mapping[int, str]
    content: memoryview = field(repr=False)
    footer: Mapping[int, str] = field(default_factory=dict)
    offset: int = 0
    length: int = 0
    damage: str = ""

    @property
    def end(self) -> int:
        return self.offset + self.length

    @property
    def instant_time(self) -> str | None:
        """The instant that wrote this block."""
        return self.header.get(HeaderKey.INSTANT_TIME)

    @property
    def target_instant_time(self) -> str | None:
        """The instant that a rollback block undoes."""
        return self.header.get(HeaderKey.TARGET_INSTANT_TIME)

    @property
    def schema(self) -> str | None:
        """Avro schema text of the records, meta columns included."""
        return self.header.get(HeaderKey.SCHEMA)

    @property
    def compacted_times(self) -> tuple[str, ...]:
        """The instants whose blocks this block replaces, if a log compaction made it."""
        text = self.header.get(HeaderKey.COMPACTED_BLOCK_TIMES) or ""
        return tuple(part.strip() for part in text.split(",") if part.strip())

    @cached_property
    def parquet_footer(self) -> pq.FileMetaData:
        """The footer of a Parquet data block, parsed once. Raises what Arrow raises."""
        return pq.read_metadata(pa.BufferReader(self.content))

    @property
    def is_rollback(self) -> bool:
        return self.type is BlockType.COMMAND and self.header.get(HeaderKey.COMMAND_BLOCK_TYPE) == ROLLBACK_COMMAND

    @property
    def is_partial(self) -> bool:
        """True if rows have only some of the table's columns: absent columns keep their stored values (version 8 and later)."""
        return self.header.get(HeaderKey.IS_PARTIAL, "").lower() == "true"

    @property
    def base_instant(self) -> str | None:
        """The instant of the base file whose rows `record_positions` number."""
        return self.header.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS) or None

    @cached_property
    def record_positions(self) -> RowNumbers | None:
        """For each record, the row of the base file that it updates or deletes; None if the block does not say. Raises `FormatError`."""
        text = self.header.get(HeaderKey.RECORD_POSITIONS)
        return decode_record_positions(text) if text else None
