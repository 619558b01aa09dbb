from __future__ import annotations

import dataclasses
import io
import json
from typing import Any, get_args, get_origin, get_type_hints

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_engine.errors import CorruptInstantError, LakehouseError, MetadataError
from lakehouse_engine.format.v6.metadata_avro import decode_record, encode_record
from lakehouse_engine.format.v6.plans_codec import decode_plan, encode_plan
from lakehouse_engine.model.plans import (
    HoodieActionInstant,
    HoodieCleanerPlan,
    HoodieCleanMetadata,
    HoodieCompactionPlan,
    HoodieIndexCommitMetadata,
    HoodieIndexPlan,
    HoodieInstantInfo,
    HoodieRequestedReplaceMetadata,
    HoodieRestoreMetadata,
    HoodieRestorePlan,
    HoodieRollbackMetadata,
    HoodieRollbackPlan,
    HoodieRollbackRequest,
)
from lakehouse_engine.model.savepoint import HoodieSavepointMetadata, HoodieSavepointPartitionMetadata

_KINDS = (
    HoodieCleanMetadata,
    HoodieCleanerPlan,
    HoodieCompactionPlan,
    HoodieIndexCommitMetadata,
    HoodieIndexPlan,
    HoodieRequestedReplaceMetadata,
    HoodieRestoreMetadata,
    HoodieRestorePlan,
    HoodieRollbackMetadata,
    HoodieRollbackPlan,
    HoodieSavepointMetadata,
)


def _values(hint: Any) -> st.SearchStrategy[Any]:
    """Every value of a field's type; whole numbers within 32 bits, which every member takes."""
    if dataclasses.is_dataclass(hint):
        hints = get_type_hints(hint)
        return st.builds(hint, **{field.name: _values(hints[field.name]) for field in dataclasses.fields(hint)})
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is tuple:
        return st.lists(_values(arguments[0]), max_size=2).map(tuple)
    if origin is dict:
        return st.dictionaries(st.text(max_size=5), _values(arguments[1]), max_size=2)
    if arguments:
        return st.one_of([_values(argument) for argument in arguments])
    plain = {str: st.text(max_size=8), bool: st.booleans(), int: st.integers(-(2**31), 2**31 - 1), float: st.floats(allow_nan=False)}
    return plain.get(hint, st.none())


_ROLLBACK = HoodieRollbackPlan(
    instant_to_rollback=HoodieInstantInfo(commit_time="20240101000000000", action="commit"),
    rollback_requests=(HoodieRollbackRequest(partition_path="p", files_to_be_deleted=("/t/p/f",), log_blocks_to_be_deleted={}),),
)


@settings(max_examples=25)
@given(st.data())
@pytest.mark.parametrize("kind", _KINDS)
def test_any_plan_decodes_to_what_was_encoded(kind: Any, data: st.DataObject) -> None:
    plan = data.draw(_values(kind))
    encoded = encode_plan(plan)
    assert decode_plan(kind, encoded) == plan
    assert encode_plan(decode_plan(kind, encoded)) == encoded


def test_a_container_is_as_hudi_writes_it() -> None:
    container = fastavro.reader(io.BytesIO(encode_plan(_ROLLBACK, sealed=False)))
    assert set(container.metadata) == {"avro.schema"}
    schema = json.loads(container.metadata["avro.schema"])
    assert (schema["namespace"], schema["name"]) == ("org.apache.hudi.avro.model", "HoodieRollbackPlan")
    assert list(container) == [
        {
            "instantToRollback": {"commitTime": "20240101000000000", "action": "commit"},
            "RollbackRequests": [
                {
                    "partitionPath": "p",
                    "fileId": None,
                    "latestBaseInstant": None,
                    "filesToBeDeleted": ["/t/p/f"],
                    "logBlocksToBeDeleted": {},
                }
            ],
            "version": 1,
        }
    ]


def test_defaults_are_what_current_hudi_writes() -> None:
    assert HoodieRequestedReplaceMetadata() == HoodieRequestedReplaceMetadata(version=None)
    assert HoodieCompactionPlan().version == HoodieCleanerPlan(policy="KEEP_LATEST_COMMITS").version == HoodieRestorePlan().version == 2


def test_a_plan_of_an_older_writer_takes_defaults() -> None:
    schema = {
        "type": "record",
        "name": "HoodieRestorePlan",
        "namespace": "org.apache.hudi.avro.model",
        "fields": [{"name": "version", "type": ["int", "null"], "default": 1}],
    }
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), [{"version": 1}])
    assert decode_plan(HoodieRestorePlan, out.getvalue()) == HoodieRestorePlan(version=1)


def test_members_of_a_newer_writer_are_passed_over() -> None:
    schema = {
        "type": "record",
        "name": "HoodieIndexPlan",
        "namespace": "org.apache.hudi.avro.model",
        "fields": [
            {"name": "new", "type": {"type": "array", "items": "string"}},
            {"name": "version", "type": ["int", "null"], "default": 1},
        ],
    }
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), [{"new": ["x"], "version": 3}])
    assert decode_plan(HoodieIndexPlan, out.getvalue()) == HoodieIndexPlan(version=3)


def test_every_cut_of_a_plan_is_corrupt() -> None:
    data = encode_plan(_ROLLBACK)
    for length in range(len(data)):
        with pytest.raises(CorruptInstantError):
            decode_plan(HoodieRollbackPlan, data[:length])


@settings(max_examples=300)
@given(st.data())
def test_a_damaged_plan_decodes_or_raises_an_error_of_ours(data: st.DataObject) -> None:
    damaged = bytearray(encode_plan(_ROLLBACK))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert isinstance(decode_plan(HoodieRollbackPlan, bytes(damaged)), HoodieRollbackPlan)
    except LakehouseError:
        return


def test_another_record_is_not_taken_for_the_one_asked_for() -> None:
    with pytest.raises(MetadataError, match="HoodieRollbackPlan"):
        decode_plan(HoodieCleanerPlan, encode_plan(_ROLLBACK))


def test_several_records_are_refused() -> None:
    out = io.BytesIO()
    schema = {"type": "record", "name": "HoodieIndexPlan", "namespace": "org.apache.hudi.avro.model", "fields": []}
    fastavro.writer(out, fastavro.parse_schema(schema), [{}, {}])
    with pytest.raises(MetadataError, match="more than one record"):
        decode_plan(HoodieIndexPlan, out.getvalue())


def test_a_container_that_says_it_has_no_end_of_records_is_refused_at_once() -> None:
    out = io.BytesIO()
    schema = {"type": "record", "name": "HoodieIndexPlan", "namespace": "org.apache.hudi.avro.model", "fields": []}
    fastavro.writer(out, fastavro.parse_schema(schema), [{}], sync_marker=b"s" * 16)
    block = b"\x02\x00" + b"s" * 16
    assert out.getvalue().endswith(block)
    endless = out.getvalue().removesuffix(block) + b"\xfe\xff\xff\xff\xff\xff\xff\x7f\x00" + b"s" * 16
    with pytest.raises(MetadataError, match="more than one record"):
        decode_plan(HoodieIndexPlan, endless)


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_containers_of_other_tools_are_read(codec: str) -> None:
    out = io.BytesIO()
    plan = HoodieRestorePlan(savepoint_to_restore_timestamp="20240101000000000")
    record = decode_record("HoodieRestorePlan", encode_plan(plan))
    schema = json.loads(fastavro.reader(io.BytesIO(encode_plan(plan))).metadata["avro.schema"])
    fastavro.writer(out, fastavro.parse_schema(schema), [record], codec=codec)
    assert decode_plan(HoodieRestorePlan, out.getvalue()) == plan
    with pytest.raises(CorruptInstantError):
        decode_plan(HoodieRestorePlan, out.getvalue()[:-1] + b"?")


@pytest.mark.parametrize("data", [b"", b"{}", b"Obj\x01", b"\0" * 100])
def test_bytes_that_are_no_container_are_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptInstantError):
        decode_record("HoodieCleanerPlan", data)


@pytest.mark.parametrize("record", [{}, {"policy": 1}, {"policy": "x", "unknown": 1}, {"policy": "x", "version": 2**40}])
def test_a_record_that_does_not_fit_is_not_written(record: dict[str, Any]) -> None:
    with pytest.raises(MetadataError, match="HoodieCleanerPlan"):
        encode_record("HoodieCleanerPlan", record)


def test_a_savepoint_says_what_it_pins() -> None:
    entry = HoodieSavepointPartitionMetadata(partition_path="p", savepoint_data_file=("a", "b"))
    savepoint = HoodieSavepointMetadata(savepointed_by="u", savepointed_at=1, comments="", partition_metadata={"p": entry})
    assert savepoint.pinned_files() == {"p": frozenset({"a", "b"})}
    assert decode_plan(HoodieSavepointMetadata, encode_plan(savepoint)) == savepoint


def test_the_earliest_instant_of_a_clean_keeps_its_upper_case_state() -> None:
    plan = HoodieCleanerPlan(policy="P", earliest_instant_to_retain=HoodieActionInstant(timestamp="1", action="commit", state="COMPLETED"))
    assert decode_plan(HoodieCleanerPlan, encode_plan(plan)) == plan
