from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_engine.errors import CorruptInstantError, MetadataError
from lakehouse_engine.format.v6.metadata_json import decode_commit_metadata, encode_commit_metadata, render_commit_metadata
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType

_TEXT = st.text(max_size=12)
_MAYBE = st.none() | _TEXT
_LONG = st.integers(-(2**63), 2**63 - 1)
_SIZES = st.none() | st.dictionaries(_TEXT, _LONG, max_size=2)
_UNKNOWN = st.dictionaries(
    st.from_regex(r"x[a-z]{1,5}", fullmatch=True), st.none() | st.booleans() | _LONG | _TEXT | st.lists(_LONG, max_size=2), max_size=2
)
_STATS = st.builds(
    HoodieWriteStat,
    file_id=_MAYBE,
    path=_MAYBE,
    prev_commit=_MAYBE,
    num_writes=_LONG,
    num_deletes=_LONG,
    num_update_writes=_LONG,
    num_inserts=_LONG,
    total_write_bytes=_LONG,
    total_write_errors=_LONG,
    temp_path=_MAYBE,
    partition_path=_MAYBE,
    total_log_records=_LONG,
    file_size_in_bytes=_LONG,
    min_event_time=st.none() | _LONG,
    max_event_time=st.none() | _LONG,
    cdc_stats=_SIZES,
    runtime_stats=_SIZES,
    log_version=st.none() | _LONG,
    log_offset=st.none() | _LONG,
    base_file=_MAYBE,
    log_files=st.none() | st.lists(_TEXT, max_size=2).map(tuple),
    extra=_UNKNOWN,
)
_METADATA = st.builds(
    HoodieCommitMetadata,
    partition_to_write_stats=st.dictionaries(_TEXT, st.lists(_STATS, max_size=2).map(tuple), max_size=2),
    operation_type=st.none() | st.sampled_from(list(WriteOperationType)),
    compacted=st.booleans(),
    extra_metadata=st.dictionaries(_TEXT, _MAYBE, max_size=2),
    partition_to_replace_file_ids=st.none() | st.dictionaries(_TEXT, st.lists(_TEXT, max_size=2).map(tuple), max_size=2),
    extra=_UNKNOWN,
)

_STAT = HoodieWriteStat(
    file_id="f-0", path="p/f-0_0-1-2_1.parquet", partition_path="p", num_writes=3, num_inserts=3, extra={"recordsStats": {"val": None}}
)
_COMMIT = HoodieCommitMetadata(
    partition_to_write_stats={"p": (_STAT,)}, operation_type=WriteOperationType.UPSERT, extra_metadata={"schema": "{}"}
)


@settings(max_examples=200)
@given(_METADATA)
def test_any_commit_decodes_to_what_was_encoded(metadata: HoodieCommitMetadata) -> None:
    encoded = encode_commit_metadata(metadata)
    assert decode_commit_metadata(encoded) == metadata
    assert encode_commit_metadata(decode_commit_metadata(encoded)) == encoded


def test_every_cut_of_a_commit_is_corrupt() -> None:
    data = encode_commit_metadata(_COMMIT)
    for length in range(len(data)):
        with pytest.raises(CorruptInstantError):
            decode_commit_metadata(data[:length])


@pytest.mark.parametrize("data", [b"", b"null", b"[]", b"1", b"{}x", b"\xff\xfe", b"[" * 100_000, b'{"a": ' * 100_000, b"\0" * 64])
def test_bytes_that_are_no_json_object_are_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptInstantError):
        decode_commit_metadata(data)


@pytest.mark.parametrize(
    "changed",
    [
        {"compacted": "false"},
        {"operationType": "MERGE"},
        {"operationType": 1},
        {"partitionToWriteStats": []},
        {"partitionToWriteStats": {"p": {}}},
        {"partitionToWriteStats": {"p": ["x"]}},
        {"partitionToWriteStats": {"p": [{"numWrites": True}]}},
        {"partitionToWriteStats": {"p": [{"numWrites": 1.5}]}},
        {"partitionToWriteStats": {"p": [{"path": 1}]}},
        {"partitionToWriteStats": {"p": [{"logFiles": "x"}]}},
        {"partitionToReplaceFileIds": {"p": [1]}},
        {"extraMetadata": {"schema": {}}},
    ],
)
def test_members_of_a_wrong_type_are_named(changed: dict[str, Any]) -> None:
    with pytest.raises(MetadataError, match=r"commit metadata has .*="):
        decode_commit_metadata(json.dumps(changed).encode())


def test_a_pseudo_stat_of_an_inflight_commit_has_no_path() -> None:
    stat = {"fileId": "", "path": None, "prevCommit": "null", "numInserts": 5}
    metadata = decode_commit_metadata(json.dumps({"partitionToWriteStats": {"p": [stat]}, "operationType": "INSERT"}).encode())
    (decoded,) = metadata.write_stats()
    assert (decoded.path, decoded.file_id, decoded.num_inserts) == (None, "", 5)


def test_absent_members_take_defaults_and_unknown_ones_are_kept() -> None:
    metadata = decode_commit_metadata(b'{"partitionToWriteStats": null, "new": {"a": [1, 2.5]}}')
    assert metadata == HoodieCommitMetadata(extra={"new": {"a": [1, 2.5]}})
    assert json.loads(encode_commit_metadata(metadata))["new"] == {"a": [1, 2.5]}


def test_a_base_file_has_no_members_of_log_appends() -> None:
    stat = json.loads(encode_commit_metadata(_COMMIT))["partitionToWriteStats"]["p"][0]
    assert "logFiles" not in stat
    assert stat["recordsStats"] == {"val": None}


def test_text_is_in_the_style_of_jackson() -> None:
    metadata = HoodieCommitMetadata(
        partition_to_replace_file_ids={"ü": ("a-0", "b-0")}, extra_metadata={"schema": 'x"'}, operation_type=WriteOperationType.CLUSTER
    )
    assert render_commit_metadata(metadata).decode() == (
        "{\n"
        '  "partitionToWriteStats" : { },\n'
        '  "compacted" : false,\n'
        '  "extraMetadata" : {\n'
        '    "schema" : "x\\""\n'
        "  },\n"
        '  "operationType" : "CLUSTER",\n'
        '  "partitionToReplaceFileIds" : {\n'
        '    "ü" : [ "a-0", "b-0" ]\n'
        "  }\n"
        "}"
    )


def test_a_lone_surrogate_in_a_name_survives() -> None:
    metadata = decode_commit_metadata(b'{"extraMetadata": {"\\ud800": "x"}}')
    assert decode_commit_metadata(encode_commit_metadata(metadata)) == metadata
