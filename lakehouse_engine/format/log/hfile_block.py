"""HFile data blocks, as in logs of the metadata table: a whole HFile, with the schema of its values in the block's header."""

from __future__ import annotations

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.hfile.cells import Cells
from lakehouse_engine.format.hfile.reader import HFileReader, InMemory, open_hfile
from lakehouse_engine.format.hfile.writer import render_hfile
from lakehouse_engine.format.log.blocks import BlockType, HeaderKey, LogBlock
from lakehouse_engine.format.log.writer import render_block


def open_hfile_block(block: LogBlock) -> HFileReader:
    """Open the HFile in a data block of a log. Raises `FormatError` if the block is of another type, lacks a schema or is damaged."""
    if block.type is not BlockType.HFILE_DATA:
        raise FormatError(f"a block of type {block.type.name} has no HFile")
    if not block.schema:
        raise FormatError("an HFile block has no schema in its header")
    return open_hfile(InMemory(block.content))


def render_hfile_block(instant_time: str, schema_text: str, cells: Cells) -> bytes:
    """Encode a data block of an instant; keys of the entries ascend, and values are Avro records of the schema."""
    header: dict[int, str] = {HeaderKey.INSTANT_TIME: instant_time, HeaderKey.SCHEMA: schema_text}
    return render_block(BlockType.HFILE_DATA, header, render_hfile(cells))
