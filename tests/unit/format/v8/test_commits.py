from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.errors import CorruptInstantError, MetadataError
from lakehouse_engine.format.v6.metadata_avro import is_sealed
from lakehouse_engine.format.v6.metadata_json import encode_commit_metadata as encode_json
from lakehouse_engine.format.v6.plans_codec import decode_plan, encode_plan
from lakehouse_engine.format.v8.commits import decode_commit_metadata, encode_commit_metadata
from lakehouse_engine.format.v8.layout import LayoutV2
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.plans import (
    HoodieCleanerPlan,
    HoodieCleanMetadata,
    HoodieCompactionPlan,
    HoodieRequestedReplaceMetadata,
    HoodieRestoreMetadata,
    HoodieRestorePlan,
    HoodieRollbackMetadata,
    HoodieRollbackPlan,
)
from lakehouse_engine.model.savepoint import HoodieSavepointMetadata
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType
from tests.unit.format.v8.tables import TABLES, needs_fixtures, state_files

_PLANS: dict[tuple[Action, State], type] = {
    (Action.CLEAN, State.REQUESTED): HoodieCleanerPlan,
    (Action.CLEAN, State.COMPLETED): HoodieCleanMetadata,
    (Action.COMPACTION, State.REQUESTED): HoodieCompactionPlan,
    (Action.LOG_COMPACTION, State.REQUESTED): HoodieCompactionPlan,
    (Action.CLUSTERING, State.REQUESTED): HoodieRequestedReplaceMetadata,
    (Action.REPLACE_COMMIT, State.REQUESTED): HoodieRequestedReplaceMetadata,
    (Action.ROLLBACK, State.REQUESTED): HoodieRollbackPlan,
    (Action.ROLLBACK, State.COMPLETED): HoodieRollbackMetadata,
    (Action.RESTORE, State.REQUESTED): HoodieRestorePlan,
    (Action.RESTORE, State.COMPLETED): HoodieRestoreMetadata,
    (Action.SAVEPOINT, State.COMPLETED): HoodieSavepointMetadata,
}
"""What the state files that are no commits hold."""


def contents(name: str) -> Iterator[tuple[Instant, bytes]]:
    for file_name, content in state_files(name):
        instant = LayoutV2().parse_file_name(file_name)
        assert instant is not None
        if content:
            yield instant, content


def only_record(data: bytes) -> Any:
    (record,) = fastavro.reader(io.BytesIO(data))
    return record


@needs_fixtures
@pytest.mark.parametrize("name", TABLES)
def test_commits_of_hudi_are_encoded_as_they_were(name: str) -> None:
    commits = [(instant, data) for instant, data in contents(name) if (instant.action, instant.state) not in _PLANS]
    assert commits
    for instant, data in commits:
        metadata = decode_commit_metadata(data)
        written, again = encode_commit_metadata(metadata, sealed=False), encode_commit_metadata(metadata)
        assert only_record(written) == only_record(again) == only_record(data), instant
        assert fastavro.reader(io.BytesIO(written)).metadata == fastavro.reader(io.BytesIO(data)).metadata
        assert decode_commit_metadata(again) == metadata


@needs_fixtures
@pytest.mark.parametrize("name", TABLES)
def test_commits_name_their_files(name: str) -> None:
    completed = [decode_commit_metadata(data) for instant, data in contents(name) if instant.is_completed and instant.action.is_write]
    paths = [stat.path for metadata in completed for stat in metadata.write_stats()]
    assert paths
    assert all(paths)
    assert all(metadata.operation_type is not None for metadata in completed)


@needs_fixtures
@pytest.mark.parametrize("name", TABLES)
def test_plans_and_outcomes_of_hudi_are_encoded_as_they_were(name: str) -> None:
    for instant, data in contents(name):
        kind = _PLANS.get((instant.action, instant.state))
        if kind is not None:
            plan = decode_plan(kind, data)
            assert only_record(encode_plan(plan, sealed=False)) == only_record(data), instant


@needs_fixtures
def test_the_tables_of_hudi_have_every_kind_of_plan() -> None:
    found = {(instant.action, instant.state) for name in TABLES for instant, _ in contents(name)}
    assert set(_PLANS) <= found


_TEXT = st.text(max_size=8)
_NUMBER = st.integers(0, 2**40)
_STAT = st.builds(
    HoodieWriteStat,
    file_id=st.none() | _TEXT,
    path=st.none() | _TEXT,
    num_writes=_NUMBER,
    num_deletes=_NUMBER,
    file_size_in_bytes=_NUMBER,
    min_event_time=st.none() | _NUMBER,
    cdc_stats=st.none() | st.dictionaries(_TEXT, _NUMBER, max_size=2),
    runtime_stats=st.none() | st.dictionaries(st.sampled_from(["totalScanTime", "totalCreateTime", "totalUpsertTime"]), _NUMBER),
    log_version=st.none() | st.integers(0, 2**31 - 1),
    log_offset=st.none() | _NUMBER,
    base_file=st.none() | _TEXT,
    log_files=st.none() | st.lists(_TEXT, max_size=2).map(tuple),
    extra=st.builds(
        lambda base: {"totalLogReadTimeMs": 0, "numUpdates": 0, **({"prevBaseFile": base} if base is not None else {})}, st.none() | _TEXT
    ),
)
_METADATA = st.builds(
    HoodieCommitMetadata,
    partition_to_write_stats=st.dictionaries(_TEXT, st.lists(_STAT, max_size=2).map(tuple), max_size=2),
    operation_type=st.none() | st.sampled_from(list(WriteOperationType)),
    compacted=st.booleans(),
    extra_metadata=st.dictionaries(_TEXT, _TEXT, max_size=2),
    partition_to_replace_file_ids=st.none() | st.dictionaries(_TEXT, st.lists(_TEXT, max_size=2).map(tuple), max_size=2),
)


@given(_METADATA)
def test_any_commit_decodes_to_what_was_encoded(metadata: HoodieCommitMetadata) -> None:
    assert decode_commit_metadata(encode_commit_metadata(metadata)) == metadata


def test_members_without_a_place_in_the_schema_are_left_out() -> None:
    stat = HoodieWriteStat(file_id="f", path="p", extra={"totalValidLogBlocks": 3, "prevBaseFile": "b"}, checksum="00000000")
    metadata = HoodieCommitMetadata(
        partition_to_write_stats={"": (stat,)}, extra_metadata={"kept": "yes", "empty": None}, extra={"committed": True}
    )
    read = decode_commit_metadata(encode_commit_metadata(metadata))
    assert read.extra_metadata == {"kept": "yes"}
    assert read.extra == {}
    assert next(read.write_stats()).extra == {"prevBaseFile": "b", "totalLogReadTimeMs": 0, "numUpdates": 0}


def test_a_flipped_byte_is_found_or_changes_nothing() -> None:
    metadata = HoodieCommitMetadata(extra_metadata={"schema": "text"})
    data = encode_commit_metadata(metadata)
    assert is_sealed(data)
    flipped = [data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :] for place in range(len(data))]
    read = [one for one in map(read_if_whole, flipped) if one is not None]
    # Where the name of the seal is damaged, the content is not checked any more, and is as it was.
    assert len(read) <= 20
    assert all(one == metadata for one in read)


def read_if_whole(data: bytes) -> HoodieCommitMetadata | None:
    try:
        return decode_commit_metadata(data)
    except (CorruptInstantError, MetadataError):
        return None


@pytest.mark.parametrize("data", [b"", b"Obj\x01", encode_json(HoodieCommitMetadata())])
def test_what_is_no_whole_container_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptInstantError):
        decode_commit_metadata(data)


def test_another_record_is_refused() -> None:
    with pytest.raises(MetadataError, match="HoodieRestorePlan"):
        decode_commit_metadata(encode_plan(HoodieRestorePlan()))


def test_an_unknown_operation_is_named() -> None:
    data = encode_commit_metadata(HoodieCommitMetadata(operation_type=WriteOperationType.UPSERT), sealed=False)
    with pytest.raises(MetadataError, match="UPSERY"):
        decode_commit_metadata(data.replace(b"UPSERT", b"UPSERY"))
