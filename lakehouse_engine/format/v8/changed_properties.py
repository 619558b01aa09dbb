"""The properties of a table in another version, changed as by Hudi's handlers (`SevenToEightUpgradeHandler`, `EightToNineUpgradeHandler`,
`NineToEightDowngradeHandler`, `EightToSevenDowngradeHandler` of 1.2.0).

Where those leave properties that contradict each other or merge rows by another rule, this module does not (docs/adr/0063).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lakehouse_engine.errors import VersionChangeError
from lakehouse_engine.format.v8.properties import (
    HISTORY_PATH,
    LAYOUT_VERSION,
    TIMELINE_PATH,
    history_folder,
    partition_kinds,
    timeline_folder,
)
from lakehouse_engine.model.merge_mode import (
    COMMIT_TIME_STRATEGY,
    EVENT_TIME_STRATEGY,
    LEGACY_PAYLOAD_KEY,
    MERGE_PREFIX,
    MODE_KEY,
    OLD_STRATEGY_KEY,
    PARTIAL_KEY,
    PAYLOAD_KEY,
    STRATEGY_KEY,
    MergeMode,
    Merging,
    merge_properties,
    merging_of,
    plain_payload,
    retired_as,
    usual_mode,
)
from lakehouse_engine.model.table_config import WRITERS_NAME_LOGS_KEY, TableConfig, TableType
from lakehouse_engine.model.table_version import TableVersion

VERSION_KEY = "hoodie.table.version"
_LAYOUT_KEY = "hoodie.timeline.layout.version"
_INITIAL_KEY = "hoodie.table.initial.version"
_ORDERING_KEY, _PRECOMBINE_KEY = "hoodie.table.ordering.fields", "hoodie.table.precombine.field"
_GENERATOR_CLASS, _GENERATOR_TYPE = "hoodie.table.keygenerator.class", "hoodie.table.keygenerator.type"
_PARTITION_KEY = "hoodie.table.partition.fields"
_DELETE_KEYS = ("hoodie.payload.delete.field", "hoodie.payload.delete.marker")
_LATER_ONLY = (
    _INITIAL_KEY,
    MODE_KEY,
    LEGACY_PAYLOAD_KEY,
    PARTIAL_KEY,
    _GENERATOR_TYPE,
    _ORDERING_KEY,
    "hoodie.timeline.path",
    "hoodie.timeline.history.path",
    "hoodie.table.format",
    "hoodie.table.index.defs.path",
    "hoodie.bootstrap.index.type",
)
"""Properties that version 6 does not have."""
_GENERATORS = "org.apache.hudi.keygen."
_TYPES = {
    f"{_GENERATORS}{name}": word
    for name, word in {
        "SimpleKeyGenerator": "SIMPLE",
        "SimpleAvroKeyGenerator": "SIMPLE_AVRO",
        "ComplexKeyGenerator": "COMPLEX",
        "ComplexAvroKeyGenerator": "COMPLEX_AVRO",
        "TimestampBasedKeyGenerator": "TIMESTAMP",
        "TimestampBasedAvroKeyGenerator": "TIMESTAMP_AVRO",
        "CustomKeyGenerator": "CUSTOM",
        "CustomAvroKeyGenerator": "CUSTOM_AVRO",
        "NonpartitionedKeyGenerator": "NON_PARTITION",
        "NonpartitionedAvroKeyGenerator": "NON_PARTITION_AVRO",
        "GlobalDeleteKeyGenerator": "GLOBAL_DELETE",
    }.items()
} | {
    "org.apache.spark.sql.hudi.command.SqlKeyGenerator": "SPARK_SQL",
    "org.apache.spark.sql.hudi.command.UuidKeyGenerator": "SPARK_SQL_UUID",
}
"""Key generator types of versions 8 and 9 for the classes that version 6 stores (Hudi `KeyGeneratorType`)."""
_CLASSES = {word: name for name, word in _TYPES.items()}
_DEBEZIUM_ORDER = {
    "MySqlDebeziumAvroPayload": ("_event_bin_file,_event_pos", "_event_seq"),
    "PostgresDebeziumAvroPayload": ("_event_lsn", "_event_lsn"),
}
"""Ordering fields of Debezium's payload classes, in version 9 and before it."""
_ORDER_OF_STEPS = (TableVersion.SIX, TableVersion.EIGHT, TableVersion.NINE)


@dataclass(frozen=True, slots=True)
class ChangedProperties:
    """Properties to set, or to remove if the value is None; `notes` say what changes for the table's users."""

    changes: Mapping[str, str | None]
    notes: tuple[str, ...] = ()


def properties_in(config: TableConfig, to: TableVersion) -> ChangedProperties:
    """The changes that bring a table's properties to version `to`, one version after the other.

    Raises `VersionChangeError` if a version on the way cannot express a property of the table, and as `merging_of`.
    """
    changed, notes = config, list[str]()
    for step in _steps(config.version, to):
        told = step(changed)
        changed = changed.with_properties(told.changes)
        notes += told.notes
    before, after = config.properties, changed.properties
    gone: dict[str, str | None] = dict.fromkeys(key for key in before if key not in after)
    return ChangedProperties({**gone, **{key: value for key, value in after.items() if before.get(key) != value}}, tuple(notes))


def moves_timeline(config: TableConfig, to: TableVersion) -> bool:
    """True if the timeline of version `to` has another layout than the table's."""
    return (config.version is TableVersion.SIX) != (to is TableVersion.SIX)


def _steps(start: TableVersion, to: TableVersion) -> list[Callable[[TableConfig], ChangedProperties]]:
    first, last = _ORDER_OF_STEPS.index(start), _ORDER_OF_STEPS.index(to)
    if first <= last:
        return [_UP[version] for version in _ORDER_OF_STEPS[first:last]]
    return [_DOWN[version] for version in reversed(_ORDER_OF_STEPS[last + 1 : first + 1])]


def _six_to_eight(config: TableConfig) -> ChangedProperties:
    merging, notes = _merging_in_eight(config)
    generator = config.properties.get(_GENERATOR_CLASS, "")
    word = _TYPES.get(generator)
    if generator and word is None:
        raise VersionChangeError(
            f"{_GENERATOR_CLASS}={generator}: versions 8 and 9 have no word for that class; the table stays in version 6", table=config.name
        )
    return ChangedProperties(
        {
            VERSION_KEY: str(int(TableVersion.EIGHT)),
            _LAYOUT_KEY: LAYOUT_VERSION,
            _INITIAL_KEY: config.properties.get(_INITIAL_KEY) or str(int(config.version)),
            "hoodie.timeline.path": TIMELINE_PATH,
            "hoodie.timeline.history.path": HISTORY_PATH,
            WRITERS_NAME_LOGS_KEY: None,
            **({} if word is None else {_GENERATOR_TYPE: word}),
            **merging,
            OLD_STRATEGY_KEY: merging[STRATEGY_KEY],
        },
        notes,
    )


def _merging_in_eight(config: TableConfig) -> tuple[dict[str, str], tuple[str, ...]]:
    """Merge properties of version 8 for a table of version 6, and notes on what changes (Hudi
    `SevenToEightUpgradeHandler.upgradeMergeMode`).

    A table made by Hudi 1.x stores its mode as a strategy, which takes precedence over Hudi's rule. That rule goes by the payload class,
    and merges a merge-on-read table with an ordering field by event time.
    """
    stated = config.properties.get(PAYLOAD_KEY) or None
    payload = stated or plain_payload(usual_mode(config.ordering_fields))
    plain = {mode: plain_payload(mode) for mode in (MergeMode.EVENT_TIME, MergeMode.COMMIT_TIME)}
    if payload not in (*plain.values(), f"{payload.rpartition('.')[0]}.EventTimeAvroPayload"):
        return merge_properties(TableVersion.EIGHT, MergeMode.CUSTOM, payload), ()
    if config.properties.get(STRATEGY_KEY) == COMMIT_TIME_STRATEGY:
        return merge_properties(TableVersion.EIGHT, MergeMode.COMMIT_TIME, plain[MergeMode.COMMIT_TIME]), ()
    if payload != plain[MergeMode.COMMIT_TIME]:
        note = "" if stated else f"the table says no payload class: rows are merged by {MODE_KEY}={MergeMode.EVENT_TIME}, as Hudi does"
        return merge_properties(TableVersion.EIGHT, MergeMode.EVENT_TIME, payload), (note,) if note else ()
    if config.table_type is TableType.COPY_ON_WRITE or not config.ordering_fields:
        return merge_properties(TableVersion.EIGHT, MergeMode.COMMIT_TIME, payload), ()
    note = (
        f"rows are merged by {MODE_KEY}={MergeMode.EVENT_TIME} from now on, as Hudi's upgrade has it for merge-on-read tables with an"
        f" ordering field: a row with a lower {config.ordering_fields[0]} than the stored one no longer replaces it"
    )
    return merge_properties(TableVersion.EIGHT, MergeMode.EVENT_TIME, plain[MergeMode.EVENT_TIME]), (note,)


def _eight_to_nine(config: TableConfig) -> ChangedProperties:
    merging = merging_of(config)
    mode = retired_as(merging.payload_class) or merging.mode
    stored = merge_properties(TableVersion.NINE, mode, merging.payload_class)
    ordering = _debezium_order(merging, 0) or ",".join(config.ordering_fields) or None
    return ChangedProperties(
        {
            STRATEGY_KEY: None,
            PAYLOAD_KEY: None,
            _PRECOMBINE_KEY: None,
            _ORDERING_KEY: ordering,
            **_marked(config),
            **stored,
            VERSION_KEY: str(int(TableVersion.NINE)),
        }
    )


def _nine_to_eight(config: TableConfig) -> ChangedProperties:
    merging, notes = merging_of(config), tuple[str, ...]()
    if merging.partial is not None:
        if not config.properties.get(LEGACY_PAYLOAD_KEY):
            raise VersionChangeError(
                f"{PARTIAL_KEY}={merging.partial} without a payload class: earlier versions have partial updates by payload classes only;"
                " the table stays in version 9",
                table=config.name,
            )
        notes = (f"rows are merged by {merging.payload_class} again, which differs from {PARTIAL_KEY}={merging.partial} in deletions",)
    mode = merging.mode if retired_as(merging.payload_class) is None or _is_plain(merging) else MergeMode.CUSTOM
    stored = merge_properties(TableVersion.EIGHT, mode, merging.payload_class)
    implied = {} if merging.mode is MergeMode.CUSTOM else merge_properties(TableVersion.NINE, merging.mode, merging.payload_class)
    own = {key: value for key, value in config.properties.items() if key.startswith(MERGE_PREFIX) and implied.get(key) != value}
    marks = {key.removeprefix(MERGE_PREFIX): value for key, value in own.items()}
    if unknown := sorted(marks.keys() - set(_DELETE_KEYS)):
        raise VersionChangeError(
            f"{MERGE_PREFIX}{unknown[0]}: version 8 has no place for merge properties; the table stays in version 9", table=config.name
        )
    return ChangedProperties(
        {
            PARTIAL_KEY: None,
            LEGACY_PAYLOAD_KEY: None,
            **dict.fromkeys(key for key in config.properties if key.startswith(MERGE_PREFIX)),
            **marks,
            **stored,
            OLD_STRATEGY_KEY: stored[STRATEGY_KEY],
            _ORDERING_KEY: None,
            _PRECOMBINE_KEY: _debezium_order(merging, 1) or ",".join(config.ordering_fields) or None,
            VERSION_KEY: str(int(TableVersion.EIGHT)),
        },
        notes,
    )


def _eight_to_six(config: TableConfig) -> ChangedProperties:
    """Properties of version 6. `hoodie.record.merge.strategy.id` stays, as in the tables of version 6 that Hudi 1.2.0 makes, so that this
    engine and Hudi 1.x merge rows by the same rules as before. The payload class is for Hudi 0.x.
    """
    if len(config.ordering_fields) > 1:
        raise VersionChangeError(
            f"version 6 keeps one ordering field, and the table has {', '.join(config.ordering_fields)}; combine them into one column, or"
            " leave the table as it is",
            table=config.name,
        )
    _check_folders(config)
    merging, notes = merging_of(config), list[str]()
    if merging.mode is MergeMode.COMMIT_TIME and config.ordering_fields:
        notes.append(
            f"Hudi 0.x takes the higher {config.ordering_fields[0]} among rows of logs, where version 8 takes the later row; Hudi 1.x and"
            " this engine go on with the later row"
        )
    kinds = partition_kinds(config)
    if any(kind == "TIMESTAMP" for _, kind in kinds):
        notes.append(
            "version 6 does not store which partition fields are timestamps: its writers give"
            f" hoodie.datasource.write.partitionpath.field={','.join(f'{name}:{kind}' for name, kind in kinds)}"
        )
    if config.properties.get("hoodie.table.index.defs.path"):
        notes.append("version 6 has no definitions of secondary or expression indexes: readers pass over those of the table")
    word = config.properties.get(_GENERATOR_TYPE, "").strip().upper()
    generator = config.properties.get(_GENERATOR_CLASS) or _CLASSES.get(word)
    if word and generator is None:
        raise VersionChangeError(f"{_GENERATOR_TYPE}={word}: version 6 has no class for it; leave the table as it is", table=config.name)
    strategy = COMMIT_TIME_STRATEGY if merging.mode is MergeMode.COMMIT_TIME else EVENT_TIME_STRATEGY
    return ChangedProperties(
        {
            **dict.fromkeys(_LATER_ONLY),
            PAYLOAD_KEY: merging.payload_class,
            STRATEGY_KEY: strategy,
            OLD_STRATEGY_KEY: EVENT_TIME_STRATEGY,
            _PRECOMBINE_KEY: ",".join(config.ordering_fields) or None,
            **({} if generator is None else {_GENERATOR_CLASS: generator}),
            **({_PARTITION_KEY: ",".join(name for name, _ in kinds)} if kinds else {}),
            _LAYOUT_KEY: "1",
            VERSION_KEY: str(int(TableVersion.SIX)),
        },
        tuple(notes),
    )


def _check_folders(config: TableConfig) -> None:
    """Raise `VersionChangeError` if the timeline is in other folders: an interrupted change would not be found there."""
    usual = f".hoodie/{TIMELINE_PATH}"
    if timeline_folder(config) != usual or history_folder(config) != f"{usual}/{HISTORY_PATH}":
        raise VersionChangeError(
            f"the timeline is in {timeline_folder(config)} and its history in {history_folder(config)}: only a table with the usual folders"
            f" ({usual}, {usual}/{HISTORY_PATH}) can be brought to version 6",
            table=config.name,
        )


def _marked(config: TableConfig) -> dict[str, str]:
    """The column that marks deletions, under the keys that readers of version 9 look for."""
    found = {key: config.properties.get(key, "") for key in _DELETE_KEYS}
    return {f"{MERGE_PREFIX}{key}": value for key, value in found.items()} if all(found.values()) else {}


def _is_plain(merging: Merging) -> bool:
    """True if version 8 has the merge mode without a payload class of its own."""
    return merging.partial is None and merging.payload_class.rpartition(".")[2] in (
        "DefaultHoodieRecordPayload",
        "EventTimeAvroPayload",
        "OverwriteWithLatestAvroPayload",
    )


def _debezium_order(merging: Merging, place: int) -> str | None:
    found = _DEBEZIUM_ORDER.get(merging.payload_class.rpartition(".")[2])
    return None if found is None else found[place]


_UP = {TableVersion.SIX: _six_to_eight, TableVersion.EIGHT: _eight_to_nine}
_DOWN = {TableVersion.NINE: _nine_to_eight, TableVersion.EIGHT: _eight_to_six}
