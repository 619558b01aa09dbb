"""Commit, delta commit and replace commit metadata as Avro containers (hudi-format II.2; Hudi `CommitMetadataSerDeV2`)."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from lakehouse_engine.format.v6.metadata_avro import decode_record, encode_record, record_name
from lakehouse_engine.format.v6.metadata_json import operation_of
from lakehouse_engine.format.v6.plans_codec import avro_name
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.write_stats import HoodieWriteStat

_COMMIT, _REPLACE = "HoodieCommitMetadata", "HoodieReplaceCommitMetadata"
_REPLACED = "partitionToReplaceFileIds"
_KEPT_BESIDE = ("checksum", "extra")
_STAT = {field.name: avro_name(field.name) for field in fields(HoodieWriteStat) if field.name not in _KEPT_BESIDE}
_COUNTERS = frozenset(field.name for field in fields(HoodieWriteStat) if field.default == 0)
_UNNAMED: dict[str, int | None] = {"totalLogFiles": None, "prevBaseFile": None, "totalLogReadTimeMs": 0, "numUpdates": 0}
"""Members of a write stat that `HoodieWriteStat` keeps in `extra`, and the values that Hudi writes if there are none."""


def decode_commit_metadata(data: bytes) -> HoodieCommitMetadata:
    """Decode commit metadata, dropping members of later schemas. Raises `CorruptInstantError` if the bytes are empty, no whole Avro
    container or not as they were sealed, `MetadataError` for another kind of record.
    """
    name = _REPLACE if record_name(_COMMIT, data) == _REPLACE else _COMMIT
    record = decode_record(name, data)
    replaced = {partition: tuple(ids) for partition, ids in (record.get(_REPLACED) or {}).items()}
    return HoodieCommitMetadata(
        partition_to_write_stats={
            partition: tuple(_decode_stat(stat) for stat in stats) for partition, stats in (record["partitionToWriteStats"] or {}).items()
        },
        operation_type=operation_of(record["operationType"]),
        compacted=bool(record["compacted"]),
        extra_metadata=record["extraMetadata"] or {},
        partition_to_replace_file_ids=replaced if name == _REPLACE else None,
        extra={} if record["version"] is None else {"version": record["version"]},
    )


def encode_commit_metadata(metadata: HoodieCommitMetadata, *, sealed: bool = True) -> bytes:
    """Encode commit metadata. Not `sealed`, the bytes are as Hudi's. Members that another version added have no place in the schema and are
    left out.
    """
    replaced = metadata.partition_to_replace_file_ids
    record: dict[str, Any] = {
        "partitionToWriteStats": {
            partition: [_encode_stat(stat) for stat in stats] for partition, stats in metadata.partition_to_write_stats.items()
        },
        "compacted": metadata.compacted,
        "extraMetadata": {key: value for key, value in metadata.extra_metadata.items() if value is not None},
        "version": metadata.extra.get("version"),
        "operationType": None if metadata.operation_type is None else str(metadata.operation_type),
    }
    if replaced is None:
        return encode_record(_COMMIT, record, sealed=sealed)
    record[_REPLACED] = {partition: list(ids) for partition, ids in replaced.items()}
    return encode_record(_REPLACE, record, sealed=sealed)


def _decode_stat(record: dict[str, Any]) -> HoodieWriteStat:
    values: dict[str, Any] = {attribute: record[name] for attribute, name in _STAT.items()}
    for attribute in _COUNTERS:
        values[attribute] = values[attribute] or 0
    if values["log_files"] is not None:
        values["log_files"] = tuple(values["log_files"])
    if values["runtime_stats"] is not None:
        values["runtime_stats"] = {name: millis for name, millis in values["runtime_stats"].items() if millis is not None}
    return HoodieWriteStat(**values, extra={name: record[name] for name in _UNNAMED if record[name] is not None})


def _encode_stat(stat: HoodieWriteStat) -> dict[str, Any]:
    record = {name: getattr(stat, attribute) for attribute, name in _STAT.items()}
    record["logFiles"] = None if stat.log_files is None else list(stat.log_files)
    return record | {name: stat.extra.get(name, default) for name, default in _UNNAMED.items()}
