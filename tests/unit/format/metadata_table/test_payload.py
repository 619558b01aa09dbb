"""Payloads are decoded as another Avro library writes them, and encoded as it reads them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.metadata_table.payload import decode_payloads, encode_payloads
from lakehouse_engine.format.metadata_table.schema import payload_schema, record_schema
from lakehouse_engine.model.table_version import TableVersion
from tests.unit.format.metadata_table.payloads import VERSIONS, Payload, bound_of, payloads, read, values

SECTIONS = ("filesystemMetadata", "BloomFilterMetadata", "ColumnStatsMetadata", "recordIndexMetadata")


def plain(row: Payload) -> Payload:
    """A decoded row as the dictionary that it was made of."""
    found: Payload = {"type": row["type"]}
    for name in SECTIONS:
        if row[name] is None:
            continue
        found[name] = dict(row[name])
        if name == "ColumnStatsMetadata":
            found[name] |= {bound: bound_of(row[name][bound]) for bound in ("minValue", "maxValue")}
    return found


def within(given: Any, found: Any) -> bool:
    """Whether all that was given is there; what an older schema has not is null besides."""
    if isinstance(given, dict):
        return all(within(value, found.get(key)) for key, value in given.items())
    return bool(given == found)


@settings(max_examples=40)
@given(st.lists(payloads(), max_size=12), st.sampled_from(VERSIONS))
def test_payloads_are_decoded_as_another_library_writes_them(given: list[Payload], version: TableVersion) -> None:
    table = decode_payloads(record_schema(version), values(version, given))
    assert table.schema.equals(payload_schema())
    found = [plain(row) for row in table.to_pylist(maps_as_pydicts="strict")]
    assert all(within(one, other) for one, other in zip(given, found, strict=True))


@settings(max_examples=40)
@given(st.lists(payloads(), max_size=12), st.sampled_from(VERSIONS))
def test_payloads_are_encoded_as_another_library_reads_them(given: list[Payload], version: TableVersion) -> None:
    text = record_schema(version)
    stored = values(version, given)
    encoded = encode_payloads(text, decode_payloads(text, stored))
    assert [read(version, one) for one in encoded.to_pylist()] == [read(version, one) for one in stored.to_pylist()]


@settings(max_examples=40)
@given(st.lists(payloads(), min_size=1, max_size=6))
def test_what_version_6_has_is_the_same_in_version_9(given: list[Payload]) -> None:
    tables = [decode_payloads(record_schema(version), values(version, given)) for version in VERSIONS]
    again = encode_payloads(record_schema(TableVersion.SIX), tables[1])
    assert again.equals(encode_payloads(record_schema(TableVersion.SIX), tables[0]))


@settings(max_examples=40)
@given(st.lists(payloads(), min_size=1, max_size=4), st.data())
def test_bytes_that_are_cut_or_changed_are_an_error_or_other_payloads(given: list[Payload], data: st.DataObject) -> None:
    stored = values(TableVersion.NINE, given).to_pylist()
    row = data.draw(st.integers(0, len(stored) - 1))
    cut = data.draw(st.integers(0, len(stored[row]) - 1))
    stored[row] = stored[row][:cut]
    with pytest.raises(FormatError):
        decode_payloads(record_schema(TableVersion.NINE), pa.array(stored, pa.binary()))


def test_many_files_of_one_partition_are_decoded() -> None:
    files = {f"file-{number:06d}.parquet": {"size": number + 1, "isDeleted": number % 3 == 0} for number in range(20_000)}
    table = decode_payloads(record_schema(TableVersion.SIX), values(TableVersion.SIX, [{"type": 2, "filesystemMetadata": files}]))
    assert table.to_pylist(maps_as_pydicts="strict")[0]["filesystemMetadata"] == files
