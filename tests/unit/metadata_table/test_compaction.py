"""Merging a file group of a metadata table in pieces: every entry once, in order, in one schema, without what was deleted."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.hfile.cells import Cells
from lakehouse_engine.format.hfile.reader import HFileReader, InMemory, open_hfile
from lakehouse_engine.format.hfile.writer import HFileWriter, render_hfile, sorted_cells
from lakehouse_engine.format.metadata_table.bloom_filters import bloom_filter_payloads
from lakehouse_engine.format.metadata_table.files import FILE_ENTRIES, file_entries, files_payloads
from lakehouse_engine.format.metadata_table.locations import decode_locations
from lakehouse_engine.format.metadata_table.merging import Merging
from lakehouse_engine.format.metadata_table.payload import BLOOM, decode_payloads, encode_payloads
from lakehouse_engine.format.metadata_table.schema import SCHEMA_INFO, record_schema
from lakehouse_engine.metadata_table import compaction
from lakehouse_engine.metadata_table.compaction import compact_into, record_text
from lakehouse_engine.metadata_table.groups import LayerSource
from lakehouse_engine.model.table_version import TableVersion
from tests.support.followed_tables import index_cells, many_keys

OLDER, NEWER = record_schema(TableVersion.SIX), record_schema(TableVersion.NINE)


def same(error: FormatError) -> FormatError:
    return error


def stored(cells: Cells, schema: str = OLDER, block_size: int = 1024) -> LayerSource:
    reader = open_hfile(InMemory(render_hfile(cells, block_size=block_size)))
    return LayerSource(reader, schema, pa.array([], pa.binary()), same)


def index(puts: dict[str, str], schema: str = OLDER) -> LayerSource:
    return stored(index_cells(puts, schema), schema)


def deletion(*keys: str) -> LayerSource:
    return LayerSource(None, "", pa.array([key.encode() for key in keys], pa.binary()), same)


def compacted(sources: list[LayerSource], merging: Merging, schema: str, block_size: int = 1024) -> HFileReader:
    """The file that they become."""
    out = bytearray()
    writer = HFileWriter(out.extend, block_size=block_size)
    compact_into(writer, sources, merging, schema)
    writer.close({SCHEMA_INFO: schema.encode()})
    reader = open_hfile(InMemory(bytes(out)))
    keys = reader.read_all().keys
    assert len(reader) == writer.entries == len(keys)
    assert (writer.first_key, writer.last_key) == ((keys[0].as_py(), keys[-1].as_py()) if len(keys) else (None, None))
    return reader


def located(cells: Cells, schema: str = OLDER) -> dict[str, str]:
    keys = cells.keys.cast(pa.string()).to_pylist()
    return dict(zip(keys, decode_locations(schema, cells.values)["file_id"].to_pylist(), strict=True))


@given(
    st.lists(st.tuples(st.booleans(), st.sets(st.integers(0, 400), min_size=1, max_size=200)), min_size=1, max_size=6),
    st.integers(200, 5000),
)
def test_pieces_are_what_the_layers_say_in_order(layers: list[tuple[bool, set[int]]], piece: int) -> None:
    expected: dict[str, str] = {}
    sources = [deletion()]
    for number, (deletes, keys) in enumerate(layers):
        names = [f"key{key:05d}" for key in sorted(keys)]
        if deletes:
            sources.append(deletion(*names))
            expected = {key: value for key, value in expected.items() if key not in names}
        else:
            sources.append(index(dict.fromkeys(names, f"file-{number}")))
            expected |= dict.fromkeys(names, f"file-{number}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "_PIECE", piece)
        whole = compacted(sources, Merging.NEWEST, OLDER).read_all()
    assert located(whole) == expected
    assert whole.keys.to_pylist() == sorted(whole.keys.to_pylist())


def test_a_large_group_is_merged_in_many_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "_PIECE", 16 * 1024)
    keys = many_keys(20_000)
    base, log = index(dict.fromkeys(keys, "old")), index(dict.fromkeys(keys[:5000], "new"))
    pieces: list[int] = []
    append = HFileWriter.append
    monkeypatch.setattr(HFileWriter, "append", lambda writer, cells: (pieces.append(len(cells)), append(writer, cells)))
    found = compacted([base, log, deletion(*keys[4000:6000])], Merging.NEWEST, OLDER).read_all()
    assert len(pieces) > 5
    assert max(pieces) < 10_000
    assert located(found) == {**dict.fromkeys(keys[:4000], "new"), **dict.fromkeys(keys[6000:], "old")}


def test_values_of_two_schemas_become_those_of_the_one_with_more_members() -> None:
    sources = [index({"a": "x", "b": "x"}, NEWER), index({"b": "y", "c": "y"}, OLDER)]
    schema = record_text(sources, "")
    assert schema == NEWER
    assert located(compacted(sources, Merging.NEWEST, schema).read_all(), schema) == {"a": "x", "b": "y", "c": "y"}


def test_a_group_without_records_has_the_schema_that_it_is_given() -> None:
    assert record_text([deletion(), deletion("a")], OLDER) == OLDER
    assert len(compacted([deletion(), deletion("a")], Merging.NEWEST, OLDER)) == 0
    assert len(compacted([index({"a": "x"}), deletion("a")], Merging.NEWEST, OLDER)) == 0


def test_tombstones_are_left_out() -> None:
    payloads = bloom_filter_payloads(pa.array(["SIMPLE", ""]), pa.array(["1", "2"]), pa.array(["abc", ""]))
    struct = payloads[BLOOM].combine_chunks()
    fields = [struct.field(field.name) if field.name != "isDeleted" else pa.array([False, True]) for field in struct.type]
    payloads = payloads.set_column(1, BLOOM, pa.StructArray.from_arrays(fields, fields=list(struct.type)))
    cells = sorted_cells(pa.array(["kept", "gone"]), encode_payloads(OLDER, payloads))
    found = compacted([deletion(), stored(cells)], Merging.NEWEST, OLDER).read_all()
    assert found.keys.to_pylist() == [b"kept"]


def test_maps_of_files_are_united_and_keep_removals_of_unknown_names() -> None:
    def layer(*rows: tuple[str, int, bool]) -> LayerSource:
        columns = [pa.array([0] * len(rows)), *(pa.array(list(column)) for column in zip(*rows, strict=True))]
        payloads = files_payloads(pa.array(["p"]), pa.Table.from_arrays(columns, schema=FILE_ENTRIES))
        return stored(sorted_cells(pa.array(["p"]), encode_payloads(OLDER, payloads)))

    sources = [layer(("a", 1, False), ("b", 2, False)), layer(("a", 0, True), ("b", 5, False), ("never", 0, True))]
    cells = compacted(sources, Merging.FILES, OLDER).read_all()
    found = file_entries(decode_payloads(OLDER, cells.values)).to_pylist()
    assert {(row["name"], row["size"], row["is_deleted"]) for row in found} == {("b", 5, False), ("never", 0, True)}
