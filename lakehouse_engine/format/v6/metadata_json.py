"""Commit, delta commit and replace commit metadata as JSON (hudi-format 2.3; Hudi `HoodieCommitMetadata.toJsonString`).

This engine's text begins with a seal, as a member that Hudi does not know and ignores. The seal is not in the extra metadata, because Hudi
copies that: always into the archived timeline, and from one commit to the next as `hoodie.write.meta.key.prefixes` says. A copy would be
taken for the seal of the new text.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from lakehouse_engine.errors import CorruptInstantError, MetadataError
from lakehouse_engine.format.json_text import render_json
from lakehouse_engine.format.seal import BROKEN_SEAL, SEAL_KEY, is_intact_behind, seal_behind
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType

_HEAD = f'{{\n  "{SEAL_KEY}" : "'.encode()


def decode_commit_metadata(data: bytes) -> HoodieCommitMetadata:
    """Decode commit metadata. Raises `CorruptInstantError` if the bytes are empty, no whole JSON object or not as they were sealed,
    `MetadataError` for members of a wrong type.
    """
    if is_intact_behind(_HEAD, data) is False:
        raise CorruptInstantError(f"{len(data)} bytes of commit metadata {BROKEN_SEAL}")
    members = _load_object(data)
    members.pop(SEAL_KEY, None)
    replaced = members.pop("partitionToReplaceFileIds", None)
    return HoodieCommitMetadata(
        partition_to_write_stats={
            partition: tuple(_decode_stat(stat) for stat in _typed("partitionToWriteStats", stats, list))
            for partition, stats in _map(members.pop("partitionToWriteStats", None), "partitionToWriteStats").items()
        },
        operation_type=operation_of(members.pop("operationType", None)),
        compacted=_typed("compacted", members.pop("compacted", False), bool),
        extra_metadata={key: _text(key, value) for key, value in _map(members.pop("extraMetadata", None), "extraMetadata").items()},
        partition_to_replace_file_ids=None if replaced is None else _replaced(replaced),
        extra=members,
    )


def is_sealed_commit(data: bytes) -> bool:
    """True if this engine wrote the metadata, intact or not."""
    return data.startswith(_HEAD)


def encode_commit_metadata(metadata: HoodieCommitMetadata) -> bytes:
    """As `render_commit_metadata`, with a seal before the other members."""
    return seal_behind(_HEAD, b'",' + render_commit_metadata(metadata).removeprefix(b"{"))


def render_commit_metadata(metadata: HoodieCommitMetadata) -> bytes:
    """Commit metadata with members in the order of Hudi 0.15; unknown members come last."""
    stats = metadata.partition_to_write_stats
    members: dict[str, Any] = {
        "partitionToWriteStats": {partition: [_encode_stat(stat) for stat in stats[partition]] for partition in stats},
        "compacted": metadata.compacted,
        "extraMetadata": metadata.extra_metadata,
        "operationType": None if metadata.operation_type is None else str(metadata.operation_type),
    }
    if metadata.partition_to_replace_file_ids is not None:
        members["partitionToReplaceFileIds"] = metadata.partition_to_replace_file_ids
    return render_json(members | metadata.extra)


def _load_object(data: bytes) -> dict[str, Any]:
    if not data:
        raise CorruptInstantError("the metadata of a completed instant is empty: its writer died, or the file was damaged")
    try:
        loaded = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CorruptInstantError(f"{len(data)} bytes of commit metadata are no whole JSON text: {error}") from error
    if not isinstance(loaded, dict):
        raise CorruptInstantError(f"commit metadata is a JSON object, not {type(loaded).__name__}")
    return loaded


def _typed(name: str, value: Any, kind: type) -> Any:
    # `type is`, because `isinstance` accepts True as an int.
    if type(value) is not kind:
        raise MetadataError(f"commit metadata has {name}={value!r}: expected {kind.__name__}")
    return value


def _text(name: str, value: Any) -> str | None:
    return None if value is None else _typed(name, value, str)


def _whole(name: str, value: Any) -> int:
    return 0 if value is None else _typed(name, value, int)


def _whole_or_none(name: str, value: Any) -> int | None:
    return None if value is None else _typed(name, value, int)


def _map(value: Any, name: str) -> dict[str, Any]:
    return {} if value is None else _typed(name, value, dict)


def _sizes(name: str, value: Any) -> dict[str, int] | None:
    return None if value is None else {key: _typed(name, size, int) for key, size in _map(value, name).items()}


def _names(name: str, value: Any) -> tuple[str, ...] | None:
    return None if value is None else tuple(_typed(name, item, str) for item in _typed(name, value, list))


def _replaced(value: Any) -> dict[str, tuple[str, ...]]:
    name = "partitionToReplaceFileIds"
    return {partition: _names(name, file_ids) or () for partition, file_ids in _map(value, name).items()}


def operation_of(value: Any) -> WriteOperationType | None:
    """The operation that commit metadata names, in either encoding. Raises `MetadataError` for one that Hudi does not have."""
    if value is None:
        return None
    try:
        return WriteOperationType(value)
    except ValueError as error:
        raise MetadataError(f"commit metadata has operationType={value!r}, which is no write operation of Hudi") from error


class _Member(NamedTuple):
    """A member of a write stat: its JSON name, the attribute, and the function that converts the JSON value."""

    name: str
    attribute: str
    read: Callable[[str, Any], Any]


_STAT = (
    _Member("fileId", "file_id", _text),
    _Member("path", "path", _text),
    _Member("cdcStats", "cdc_stats", _sizes),
    _Member("prevCommit", "prev_commit", _text),
    _Member("numWrites", "num_writes", _whole),
    _Member("numDeletes", "num_deletes", _whole),
    _Member("numUpdateWrites", "num_update_writes", _whole),
    _Member("numInserts", "num_inserts", _whole),
    _Member("totalWriteBytes", "total_write_bytes", _whole),
    _Member("totalWriteErrors", "total_write_errors", _whole),
    _Member("tempPath", "temp_path", _text),
    _Member("partitionPath", "partition_path", _text),
    _Member("totalLogRecords", "total_log_records", _whole),
    _Member("totalLogFilesCompacted", "total_log_files_compacted", _whole),
    _Member("totalLogSizeCompacted", "total_log_size_compacted", _whole),
    _Member("totalUpdatedRecordsCompacted", "total_updated_records_compacted", _whole),
    _Member("totalLogBlocks", "total_log_blocks", _whole),
    _Member("totalCorruptLogBlock", "total_corrupt_log_block", _whole),
    _Member("totalRollbackBlocks", "total_rollback_blocks", _whole),
    _Member("fileSizeInBytes", "file_size_in_bytes", _whole),
    _Member("minEventTime", "min_event_time", _whole_or_none),
    _Member("maxEventTime", "max_event_time", _whole_or_none),
    _Member("runtimeStats", "runtime_stats", _sizes),
)
_DELTA_STAT = (
    _Member("logVersion", "log_version", _whole_or_none),
    _Member("logOffset", "log_offset", _whole_or_none),
    _Member("baseFile", "base_file", _text),
    _Member("logFiles", "log_files", _names),
)
_ALWAYS_WRITTEN = frozenset(member.name for member in _STAT)


def _decode_stat(value: Any) -> HoodieWriteStat:
    members = dict(_typed("write stat", value, dict))
    known = {
        member.attribute: member.read(member.name, members.pop(member.name)) for member in (*_STAT, *_DELTA_STAT) if member.name in members
    }
    return HoodieWriteStat(**{"file_id": None, "path": None, **known}, extra=members)


def _encode_stat(stat: HoodieWriteStat) -> dict[str, Any]:
    """Encode a write stat. Members of a log append are left out for a base file, as Hudi's `HoodieWriteStat` has none."""
    values = {member.name: getattr(stat, member.attribute) for member in (*_STAT, *_DELTA_STAT)}
    return {name: value for name, value in values.items() if name in _ALWAYS_WRITTEN or value is not None} | stat.extra
