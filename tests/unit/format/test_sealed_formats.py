"""One flipped bit anywhere in metadata of ours shows, or takes nothing from what it says; what others wrote is not judged by a seal."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import fastavro
import pytest

from lakehouse_engine.errors import CorruptInstantError, CorruptLogError, FormatError, LakehouseError, PropertiesError
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.format.partition_metafile import parse_partition_metafile, render_partition_metafile
from lakehouse_engine.format.properties import check_properties_seal, parse_properties, render_properties, seal_properties
from lakehouse_engine.format.seal import BLANK_SEAL, SEAL_KEY
from lakehouse_engine.format.v6.archived import read_archive, render_archive
from lakehouse_engine.format.v6.metadata_json import decode_commit_metadata, encode_commit_metadata, render_commit_metadata
from lakehouse_engine.format.v6.plans_codec import decode_plan, encode_plan
from lakehouse_engine.model.archived import ArchivedEntry
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.savepoint import HoodieSavepointMetadata, HoodieSavepointPartitionMetadata
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType

STAT = HoodieWriteStat(file_id="f-0", path="p/f-0_0-1-0_1.parquet", num_writes=3, file_size_in_bytes=77)
COMMIT = HoodieCommitMetadata(
    partition_to_write_stats={"p": (STAT,)},
    operation_type=WriteOperationType.UPSERT,
    extra_metadata={"schema": '{"type": "record"}', "note": f"{SEAL_KEY} {BLANK_SEAL} crc32:00000000"},
)
SAVEPOINT = HoodieSavepointMetadata(
    savepointed_by="me",
    savepointed_at=1,
    comments=BLANK_SEAL,
    partition_metadata={"p": HoodieSavepointPartitionMetadata(partition_path="p", savepoint_data_file=("a", "b"))},
)
PROPERTIES = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.version": "6",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.note": BLANK_SEAL,
}


def entry(time: str) -> ArchivedEntry:
    record = {"commitTime": time, "actionType": "savepoint", "actionState": "COMPLETED", "version": None, "stateTransitionTime": time}
    return ArchivedEntry(Instant(time, Action.SAVEPOINT, State.COMPLETED), time, record)


def read_properties(data: bytes) -> dict[str, str]:
    check_properties_seal(data)
    return {key: value for key, value in TableConfig(parse_properties(data)).properties.items() if key in PROPERTIES}


FORMATS: dict[str, tuple[bytes, Callable[[bytes], Any]]] = {
    "commit": (encode_commit_metadata(COMMIT), lambda data: decode_commit_metadata(data).partition_to_write_stats),
    "plan": (encode_plan(SAVEPOINT), lambda data: decode_plan(HoodieSavepointMetadata, data)),
    "archive": (render_archive([[entry("1")], [entry("2")]], 1), lambda data: [one.record["commitTime"] for one in read_archive(data)]),
    "properties": (seal_properties(render_properties(PROPERTIES, comments=("c",))), read_properties),
    "metafile": (render_partition_metafile("20240101000000000", 1), parse_partition_metafile),
}


def flips(data: bytes) -> Iterator[bytes]:
    """Every bit of the first and last kilobyte, and each seventh byte between: schemas are long."""
    for place in range(len(data)):
        if place < 1024 or place > len(data) - 1024 or place % 7 == 0:
            for bit in range(8):
                yield data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :]


@pytest.mark.parametrize("name", FORMATS)
def test_a_flipped_bit_is_an_error_or_takes_nothing(name: str) -> None:
    data, read = FORMATS[name]
    whole = read(data)
    for damaged in flips(data):
        try:
            found = read(damaged)
        except LakehouseError:
            continue
        assert found == whole


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_is_cut_short_is_an_error(name: str) -> None:
    data, read = FORMATS[name]
    for length in (0, 1, len(data) // 4, len(data) // 2, len(data) - 2, len(data) - 1):
        with pytest.raises(FormatError):
            read(data[:length])


def test_what_is_written_without_a_seal_reads_as_before() -> None:
    assert decode_commit_metadata(render_commit_metadata(COMMIT)) == decode_commit_metadata(encode_commit_metadata(COMMIT)) == COMMIT
    assert decode_plan(HoodieSavepointMetadata, encode_plan(SAVEPOINT, sealed=False)) == SAVEPOINT
    assert read_archive(render_archive([[entry("1")]], 9, sealed=False)) == read_archive(render_archive([[entry("1")]], 9))
    assert read_properties(render_properties(PROPERTIES)) == PROPERTIES


def test_a_seal_that_another_writer_copied_is_not_taken_for_that_of_the_copy() -> None:
    sealed = json.loads(encode_commit_metadata(COMMIT))
    foreign = {**sealed, "extraMetadata": {SEAL_KEY: sealed[SEAL_KEY]}}
    del foreign[SEAL_KEY]
    assert decode_commit_metadata(json.dumps(foreign, indent=2).encode()).extra_metadata == {SEAL_KEY: sealed[SEAL_KEY]}
    # Written anew by a program that keeps members that it does not know.
    assert decode_commit_metadata(json.dumps(sealed).encode()) == COMMIT
    assert SEAL_KEY not in decode_commit_metadata(encode_commit_metadata(COMMIT)).extra


def test_a_container_with_a_seal_is_an_avro_file_with_one_entry_more() -> None:
    container = fastavro.reader(io.BytesIO(encode_plan(SAVEPOINT)))
    assert set(container.metadata) == {"avro.schema", SEAL_KEY}
    assert next(container) == next(fastavro.reader(io.BytesIO(encode_plan(SAVEPOINT, sealed=False))))


def test_an_archive_file_that_lost_a_whole_block_is_damaged() -> None:
    data = FORMATS["archive"][0]
    first, second = read_blocks(data)
    for left in (data[: first.end], data[second.offset :]):
        with pytest.raises(CorruptLogError, match="lacks 1 of its blocks"):
            read_archive(left)
    # Another writer may append to it.
    theirs = render_archive([[entry("3")]], 1, sealed=False)
    assert [one.instant.requested_time for one in read_archive(data + theirs)] == ["1", "2", "3"]


def test_a_broken_seal_says_what_to_do() -> None:
    data = encode_commit_metadata(COMMIT)
    with pytest.raises(CorruptInstantError, match=r"was damaged.*backup"):
        decode_commit_metadata(data.replace(b"f-0", b"f-1"))
    with pytest.raises(PropertiesError, match=r"remove the line #lakehouse\.seal="):
        read_properties(FORMATS["properties"][0].replace(b"=id", b"=ie"))
