"""HFile blocks in logs, beside delete blocks."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.hfile.cells import Cells
from lakehouse_engine.format.log.blocks import BlockType, HeaderKey
from lakehouse_engine.format.log.delete_block import decode_delete_block, encode_delete_content
from lakehouse_engine.format.log.hfile_block import open_hfile_block, render_hfile_block
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.format.log.writer import render_block

CELLS = Cells(pa.array([b"a", b"b"], pa.binary()), pa.array([b"1", b"2"], pa.binary()))
KEYS = pa.array(["c", "d"])


def test_entries_and_deletions_of_one_log_file_are_read_in_order() -> None:
    header = {HeaderKey.INSTANT_TIME: "20240101000000000", HeaderKey.SCHEMA: "{}"}
    deletion = render_block(BlockType.DELETE, header, encode_delete_content(KEYS, pa.repeat("record_index", 2)))
    data, deleted = read_blocks(render_hfile_block("20240101000000000", "{}", CELLS) + deletion)
    assert (data.type, data.instant_time, data.schema) == (BlockType.HFILE_DATA, "20240101000000000", "{}")
    found = open_hfile_block(data).read_all()
    assert (found.keys.to_pylist(), found.values.to_pylist()) == ([b"a", b"b"], [b"1", b"2"])
    assert decode_delete_block(deleted).keys.to_pylist() == ["c", "d"]


def test_other_blocks_and_damaged_ones_are_no_hfile() -> None:
    content = render_hfile_block("20240101000000000", "{}", CELLS)
    (block,) = read_blocks(content)
    other = render_block(BlockType.AVRO_DATA, {HeaderKey.SCHEMA: "{}"}, block.content)
    nameless = render_block(BlockType.HFILE_DATA, {}, block.content)
    short = render_block(BlockType.HFILE_DATA, {HeaderKey.SCHEMA: "{}"}, block.content[:-1])
    for data, message in ((other, "AVRO_DATA"), (nameless, "schema"), (short, "trailer")):
        (found,) = read_blocks(data)
        with pytest.raises(FormatError, match=message):
            open_hfile_block(found)
