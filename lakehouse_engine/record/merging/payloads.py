"""Hudi's payload classes by name: how a table is merged, what orders its rows, which rows delete.

Rules are those of Hudi 0.15 (`org.apache.hudi.common.model`); docs/interop.md says where 1.2 differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lakehouse_engine.errors import OptionError, PropertiesError, SchemaIncompatibleError, UnsupportedTableError
from lakehouse_engine.model.keys import DELETED_AT
from lakehouse_engine.model.merge_mode import (
    COMMIT_TIME_STRATEGY,
    MERGE_PREFIX,
    PARTIAL_KEY,
    STRATEGIES,
    STRATEGY_KEY,
    MergeMode,
    PartialUpdates,
    merging_of,
)
from lakehouse_engine.model.table_config import TableConfig, TableType
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.options import PAYLOADS_OF_MODES
from lakehouse_engine.record.merging.deletions import HUDI_MARK, DeleteMarks
from lakehouse_engine.record.merging.mergers import (
    EventTime,
    FilledIn,
    FillNulls,
    OverwriteWithLatest,
    PartialUpdate,
    RecordMerger,
    Toasted,
    UpdateColumns,
    storing_as_given,
)
from lakehouse_engine.record.merging.ordering_fields import OrderingFields

DELETE_FIELD = "hoodie.payload.delete.field"
DELETE_MARKER = "hoodie.payload.delete.marker"
_STRATEGY_KEYS = (STRATEGY_KEY, "hoodie.compaction.record.merger.strategy")
_UNAVAILABLE = "hoodie.write.partial.update.unavailable.value"
"""Merge property of version 9: the text by which a row says that it lacks a value."""
_MODELS = "org.apache.hudi.common.model."


@dataclass(frozen=True, slots=True)
class Payload:
    """`name` is the class's last name, `java_class` the full one.

    `marks` finds deleting rows; `takes_marker`: `hoodie.payload.delete.field` and `.marker` apply too. `columns` must exist in the table.
    `ordered_by` is the one ordering field of classes that read it themselves. `weighs_deletions`: ordering values of deletions in logs
    count against base rows.
    """

    name: str
    merger: RecordMerger
    marks: DeleteMarks = HUDI_MARK
    package: str = _MODELS
    columns: tuple[str, ...] = ()
    ordered_by: str = ""
    binlog: bool = False
    takes_marker: bool = False
    weighs_deletions: bool = False

    @property
    def java_class(self) -> str:
        return self.package + self.name

    def ordering(self, config: TableConfig, schema: pa.Schema) -> OrderingFields:
        """Ordering of the table's rows; `schema` has its user columns."""
        names = () if _by_commit_time(config) else config.ordering_fields
        return OrderingFields.of(names, schema, binlog=self.binlog, required=bool(self.ordered_by))

    def delete_marks(self, properties: Mapping[str, str]) -> DeleteMarks:
        """`marks`, plus the column that the properties name if the class reads it (Hudi `DefaultHoodieRecordPayload`).

        Raises `OptionError` for a column without its marker.
        """
        field, marker = (properties.get(key, "") for key in (DELETE_FIELD, DELETE_MARKER))
        if not field or not self.takes_marker:
            return self.marks
        if not marker:
            raise OptionError(f"{DELETE_FIELD}={field!r} needs {DELETE_MARKER}, the value that marks a deletion in it")
        return DeleteMarks(field, marker)

    def check_marker(self, asked: Mapping[str, str]) -> None:
        """Raise `OptionError` if options ask for a deletion column and the class does not read it."""
        if asked and not self.takes_marker:
            keys = " and ".join(asked)
            raise OptionError(f"{keys} goes with DefaultHoodieRecordPayload or FirstValueAvroPayload, not with {self.name}")

    def check_columns(self, schema: pa.Schema) -> None:
        """Raise `SchemaIncompatibleError` if the schema lacks a column that the class reads by name."""
        for name in self.columns:
            if name not in schema.names:
                raise SchemaIncompatibleError(f"{self.name} needs a column {name!r}; there are {', '.join(schema.names)}", column=name)


_DEBEZIUM = "org.apache.hudi.common.model.debezium."
_DEBEZIUM_MARKS = DeleteMarks("_change_operation_type", "d", any_case=True)

PAYLOADS: dict[str, Payload] = {
    payload.name: payload
    for payload in (
        Payload("OverwriteWithLatestAvroPayload", OverwriteWithLatest()),
        Payload("DefaultHoodieRecordPayload", EventTime(), takes_marker=True),
        Payload("EventTimeAvroPayload", EventTime(late_deletions=True)),
        Payload("PartialUpdateAvroPayload", PartialUpdate()),
        Payload("OverwriteNonDefaultsWithLatestAvroPayload", FillNulls()),
        Payload("FirstValueAvroPayload", EventTime(equals_win=False, earliest_of_equals=True), takes_marker=True),
        Payload("AWSDmsAvroPayload", OverwriteWithLatest(), DeleteMarks("Op", "D", any_case=True), columns=("Op",)),
        Payload(
            "MySqlDebeziumAvroPayload",
            EventTime(equals_win=False),
            _DEBEZIUM_MARKS,
            _DEBEZIUM,
            ("_event_seq",),
            ordered_by="_event_seq",
            binlog=True,
        ),
        Payload("PostgresDebeziumAvroPayload", Toasted(), _DEBEZIUM_MARKS, _DEBEZIUM, ("_event_lsn",), ordered_by="_event_lsn"),
    )
}
"""Classes with fixed rules, by last name."""

_IN_1X = {
    "DefaultHoodieRecordPayload": replace(PAYLOADS["DefaultHoodieRecordPayload"], weighs_deletions=True),
    "EventTimeAvroPayload": replace(PAYLOADS["EventTimeAvroPayload"], merger=EventTime(), weighs_deletions=True),
    "MySqlDebeziumAvroPayload": replace(PAYLOADS["MySqlDebeziumAvroPayload"], merger=EventTime()),
}
"""Rules that Hudi 1.x changed for its own tables: late deletions do not apply, and equal binlog positions replace.

It maps the first two to merge mode EVENT_TIME_ORDERING; under the others a deletion in a log still always applies.
"""


def payload_of(config: TableConfig, override: str = "") -> Payload:
    """The payload that the table names, else that of `override` (a class name, with or without package).

    If neither names one, that of the Hudi release that made the table (`_unstated`). Versions 8 and 9 use the merge mode, and a class if
    that is CUSTOM. Raises `UnsupportedTableError` or `OptionError` for an unknown class, `UnsupportedTableError` for a merger that is not
    Hudi's own, `OptionError` for an override that contradicts the table, and as `merging_of`.
    """
    asked = override.strip()
    if asked and last_name(asked) not in PAYLOADS:
        raise OptionError(f"the payload class {asked!r} is not known; the engine has {', '.join(PAYLOADS)}")
    _check_strategy(config)
    if config.version is not TableVersion.SIX:
        return _by_mode(config, asked)
    if config.properties.get(PARTIAL_KEY):
        raise UnsupportedTableError(f"{PARTIAL_KEY} goes with table version 9; correct .hoodie/hoodie.properties", table=config.name)
    stored = config.payload_class
    _check_known(config, stored)
    if stored and asked and last_name(stored) != last_name(asked):
        raise OptionError(
            f"the table merges by {last_name(stored)} (hoodie.compaction.payload.class); leave {last_name(asked)} out of the write",
            table=config.name,
        )
    if asked and not stored:
        _check_mode(config, last_name(asked))
    name = last_name(stored or asked or _unstated(config))
    return _of_class(config, name)


def _by_mode(config: TableConfig, asked: str) -> Payload:
    """The payload of a table of version 8 or 9 by its merge mode; `asked` like `override` of `payload_of`."""
    merging = merging_of(config)
    name = last_name(merging.payload_class)
    same = (name,) if merging.partial else (name, *PAYLOADS_OF_MODES.get(merging.mode, ()))
    if asked and last_name(asked) not in same:
        raise OptionError(
            f"the table merges by {merging.mode} (hoodie.record.merge.mode), as {name}; leave {last_name(asked)} out of the write",
            table=config.name,
        )
    if merging.mode is MergeMode.CUSTOM:
        _check_known(config, merging.payload_class)
        return _of_class(config, name)
    by_event_time, properties = merging.mode is MergeMode.EVENT_TIME, merging.properties or {}
    merger: RecordMerger = EventTime() if by_event_time else OverwriteWithLatest()
    if merging.partial is not None:
        merger = FilledIn(by_event_time, _unavailable(config, merging.partial, properties))
    payload = Payload(name, merger, package=_package(merging.payload_class), takes_marker=True, weighs_deletions=by_event_time)
    return replace(payload, marks=payload.delete_marks(properties))


def _unavailable(config: TableConfig, partial: PartialUpdates, properties: Mapping[str, str]) -> str | None:
    """Text that stands for a missing value; None if null does."""
    if partial is PartialUpdates.IGNORE_DEFAULTS:
        return None
    text = properties.get(_UNAVAILABLE, "")
    if not text:
        message = f"{PARTIAL_KEY}={partial} needs {MERGE_PREFIX}{_UNAVAILABLE}, the text that stands for a value that a row does not have"
        raise PropertiesError(f"{message}; correct .hoodie/hoodie.properties", table=config.name)
    return text


def _package(java_class: str) -> str:
    return java_class[: java_class.rfind(".") + 1]


def _check_known(config: TableConfig, stored: str | None) -> None:
    """Raise `UnsupportedTableError` for a user-defined class."""
    if stored and last_name(stored) not in PAYLOADS:
        raise UnsupportedTableError(
            f"the table is merged by {stored}, code that this engine does not have; it has {', '.join(PAYLOADS)}. Go on writing it with"
            " Hudi; its base files can be read read-optimized. Where the class does what one of these does, set"
            " hoodie.compaction.payload.class to that",
            table=config.name,
        )


def _of_class(config: TableConfig, name: str) -> Payload:
    payload = _IN_1X.get(name, PAYLOADS[name]) if made_by_1x(config) else PAYLOADS[name]
    if payload.ordered_by and config.ordering_fields != (payload.ordered_by,):
        raise UnsupportedTableError(
            f"{payload.name} orders rows by {payload.ordered_by}; the table's ordering field is"
            f" {','.join(config.ordering_fields) or 'not set'}: set hoodie.table.precombine.field to {payload.ordered_by}",
            table=config.name,
        )
    return payload


def merger_of(
    config: TableConfig, override: str = "", *, update_columns: Sequence[str] | None = None, as_given: bool = False
) -> RecordMerger:
    """The merger of `payload_of`; `as_given` stores winning rows unchanged, `update_columns` limits the columns that a matched row takes
    from the batch. Raises likewise.
    """
    merger = payload_of(config, override).merger
    merger = storing_as_given(merger) if as_given else merger
    if update_columns is None:
        return merger
    return UpdateColumns(merger, frozenset(map(str.lower, update_columns)), DELETED_AT if config.deletes_softly else "")


def last_name(text: str) -> str:
    """Last name of one of Hudi's own classes; other class names stay whole."""
    package, _, name = text.rpartition(".")
    return name if not package or package.startswith("org.apache.hudi") else text


def _unstated(config: TableConfig) -> str:
    """Payload class of a table that names none, which only foreign tables do.

    Hudi 0.15 stores none in copy-on-write tables and uses the writer's option, by default overwriting with the latest row
    (`DataSourceWriteOptions.PAYLOAD_CLASS_NAME`). Releases since 1.0 store a merge mode, or infer it: event time if there are ordering
    fields.
    """
    overwritten = config.table_type is TableType.COPY_ON_WRITE and not made_by_1x(config)
    if _by_commit_time(config) or not config.ordering_fields or overwritten:
        return "OverwriteWithLatestAvroPayload"
    return "DefaultHoodieRecordPayload"


def made_by_1x(config: TableConfig) -> bool:
    """True if Hudi 1.x made the table, by properties that it also stores in version 6."""
    return config.version is not TableVersion.SIX or any(
        config.properties.get(key) for key in (_STRATEGY_KEYS[0], "hoodie.record.merge.mode", "hoodie.table.ordering.fields")
    )


def _by_commit_time(config: TableConfig) -> bool:
    mode = config.properties.get("hoodie.record.merge.mode", "").upper()
    return mode == "COMMIT_TIME_ORDERING" or config.properties.get(_STRATEGY_KEYS[0]) == COMMIT_TIME_STRATEGY


def _check_mode(config: TableConfig, asked: str) -> None:
    """Raise `OptionError` for a class that differs from the table's merge mode."""
    mode = "COMMIT_TIME_ORDERING" if _by_commit_time(config) else config.properties.get("hoodie.record.merge.mode", "").upper()
    if mode in PAYLOADS_OF_MODES and asked not in PAYLOADS_OF_MODES[mode]:
        raise OptionError(f"the table merges by {mode} (hoodie.record.merge.mode); leave {asked} out of the write", table=config.name)


def _check_strategy(config: TableConfig) -> None:
    for key in _STRATEGY_KEYS:
        strategy = config.properties.get(key, "")
        if strategy and strategy not in STRATEGIES:
            raise UnsupportedTableError(
                f"the table is merged by a merger of its own ({key}={strategy}), code that this engine does not have; go on writing it"
                " with Hudi; its base files can be read read-optimized",
                table=config.name,
            )
