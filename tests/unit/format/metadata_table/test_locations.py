"""Locations of the record index: encoded once each, read back for every row."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.metadata_table.bloom_filters import secondary_index_payload
from lakehouse_engine.format.metadata_table.locations import LOCATIONS, decode_locations, encode_locations, locations_of
from lakehouse_engine.format.metadata_table.payload import decode_payloads, encode_payloads
from lakehouse_engine.format.metadata_table.schema import record_schema
from lakehouse_engine.model.table_version import TableVersion
from tests.unit.format.metadata_table.payloads import VERSIONS, read

UUIDS = st.uuids().map(str)
FILE_IDS = st.one_of(UUIDS, st.tuples(UUIDS, st.integers(0, 999)).map(lambda pair: f"{pair[0]}-{pair[1]}"), st.text(min_size=1, max_size=6))
ROWS = st.lists(st.tuples(st.sampled_from(["", "p=1", "p=\u00e9"]), FILE_IDS, st.integers(0, 2**43)), max_size=6)


@given(ROWS, st.integers(1, 3), st.sampled_from(VERSIONS))
def test_locations_are_read_as_written(rows: list[tuple[str, str, int]], times: int, version: TableVersion) -> None:
    repeated = rows * times
    table = pa.table([pa.array([row[place] for row in repeated], field.type) for place, field in enumerate(LOCATIONS)], schema=LOCATIONS)
    values = encode_locations(record_schema(version), table)
    assert decode_locations(record_schema(version), values).equals(table)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_id_is_two_halves_of_a_uuid_and_a_number_or_a_text(version: TableVersion) -> None:
    number = uuid.UUID("f0000000-0000-0000-8000-000000000001")
    ids = [f"{number}-7", str(number), "plain"]
    table = pa.table([pa.array(["p"] * 3), pa.array(ids), pa.array([5] * 3, pa.int64())], schema=LOCATIONS)
    records = [read(version, value)["recordIndexMetadata"] for value in encode_locations(record_schema(version), table).to_pylist()]
    halves = (-(2**60), -(2**63) + 1)
    found = [(one["fileIdHighBits"], one["fileIdLowBits"], one["fileIndex"], one["fileId"], one["fileIdEncoding"]) for one in records]
    assert found == [(*halves, 7, "", 0), (*halves, -1, "", 0), (-1, -1, -1, "plain", 1)]


def test_payloads_of_another_type_have_no_location() -> None:
    text = record_schema(TableVersion.NINE)
    values = encode_payloads(text, secondary_index_payload(1))
    with pytest.raises(FormatError, match="no location"):
        locations_of(decode_payloads(text, values))
