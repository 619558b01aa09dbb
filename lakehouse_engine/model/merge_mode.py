"""How a table of version 8 or 9 merges rows of one key: reading and writing the properties that say so (Hudi `HoodieTableConfig`).

Version 8 stores a mode, a strategy id and a payload class with the same meaning. Version 9 stores the mode; the built-in payload class that
a table was made with is kept under another key, and what the class did beyond the mode is in separate properties.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakehouse_engine.compat import StrEnum
from lakehouse_engine.errors import ContradictoryPropertiesError, PropertiesError, UnsupportedTableError
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.model.table_version import TableVersion

MODE_KEY = "hoodie.record.merge.mode"
STRATEGY_KEY = "hoodie.record.merge.strategy.id"
OLD_STRATEGY_KEY = "hoodie.compaction.record.merger.strategy"
"""Name of the same property in Hudi 0.x."""
PAYLOAD_KEY = "hoodie.compaction.payload.class"
LEGACY_PAYLOAD_KEY = "hoodie.table.legacy.payload.class"
PARTIAL_KEY = "hoodie.table.partial.update.mode"
MERGE_PREFIX = "hoodie.record.merge.property."

EVENT_TIME_STRATEGY = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
"""Id of Hudi's own mergers: of all of them in 0.x, of merging by event time in 1.x."""
COMMIT_TIME_STRATEGY = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
"""Hudi 1.x's id of merging by commit time. Its writers store it in version 6 tables too, which then ignore ordering values."""
PAYLOAD_STRATEGY = "00000000-0000-0000-0000-000000000000"


class MergeMode(StrEnum):
    """Values of `hoodie.record.merge.mode`."""

    EVENT_TIME = "EVENT_TIME_ORDERING"
    COMMIT_TIME = "COMMIT_TIME_ORDERING"
    CUSTOM = "CUSTOM"


class PartialUpdates(StrEnum):
    """Which values of a row keep the stored ones: values equal to the column's default, or to a marker."""

    IGNORE_DEFAULTS = "IGNORE_DEFAULTS"
    FILL_UNAVAILABLE = "FILL_UNAVAILABLE"


STRATEGIES = {
    EVENT_TIME_STRATEGY: MergeMode.EVENT_TIME,
    COMMIT_TIME_STRATEGY: MergeMode.COMMIT_TIME,
    PAYLOAD_STRATEGY: MergeMode.CUSTOM,
}
"""Hudi's strategy ids, and the mode of each."""
_STRATEGY_OF = {mode: strategy for strategy, mode in STRATEGIES.items()}
_MODELS = "org.apache.hudi.common.model."
_PLAIN_PAYLOADS = {
    MergeMode.EVENT_TIME: _MODELS + "DefaultHoodieRecordPayload",
    MergeMode.COMMIT_TIME: _MODELS + "OverwriteWithLatestAvroPayload",
}
_IN_VERSION_8 = {
    **{payload: mode for mode, payload in _PLAIN_PAYLOADS.items()},
    _MODELS + "EventTimeAvroPayload": MergeMode.EVENT_TIME,
}
"""Classes that mean a plain mode in version 8; every other class is CUSTOM there."""


@dataclass(frozen=True, slots=True)
class _Retired:
    """Properties that a version 9 table stores for a payload class that this version no longer has."""

    mode: MergeMode
    partial: PartialUpdates | None = None
    properties: Mapping[str, str] | None = None


_ORDERING_KEY = "hoodie.table.ordering.fields"
"""For Debezium tables: the columns that their payload class reads, overriding the requested ones (Hudi
`HoodieTableConfig.inferMergingConfigsForV9TableCreation`).
"""
_DEBEZIUM_DELETES = {
    f"{MERGE_PREFIX}hoodie.payload.delete.field": "_change_operation_type",
    f"{MERGE_PREFIX}hoodie.payload.delete.marker": "d",
}
_IN_VERSION_9 = {
    **{payload: _Retired(mode) for payload, mode in _IN_VERSION_8.items()},
    _MODELS + "PartialUpdateAvroPayload": _Retired(MergeMode.EVENT_TIME, PartialUpdates.IGNORE_DEFAULTS),
    _MODELS + "OverwriteNonDefaultsWithLatestAvroPayload": _Retired(MergeMode.COMMIT_TIME, PartialUpdates.IGNORE_DEFAULTS),
    _MODELS + "AWSDmsAvroPayload": _Retired(
        MergeMode.COMMIT_TIME,
        properties={f"{MERGE_PREFIX}hoodie.payload.delete.field": "Op", f"{MERGE_PREFIX}hoodie.payload.delete.marker": "D"},
    ),
    _MODELS + "debezium.MySqlDebeziumAvroPayload": _Retired(
        MergeMode.EVENT_TIME, properties={_ORDERING_KEY: "_event_bin_file,_event_pos", **_DEBEZIUM_DELETES}
    ),
    _MODELS + "debezium.PostgresDebeziumAvroPayload": _Retired(
        MergeMode.EVENT_TIME,
        PartialUpdates.FILL_UNAVAILABLE,
        {
            f"{MERGE_PREFIX}hoodie.write.partial.update.unavailable.value": "__debezium_unavailable_value",
            _ORDERING_KEY: "_event_lsn",
            **_DEBEZIUM_DELETES,
        },
    ),
}


@dataclass(frozen=True, slots=True)
class Merging:
    """How rows of one key are merged.

    `payload_class` is the class with the same meaning, with its package; for the mode CUSTOM, the class that decides. `properties` are the
    table's merge properties, without their prefix.
    """

    mode: MergeMode
    payload_class: str
    partial: PartialUpdates | None = None
    properties: Mapping[str, str] | None = None


def merging_of(config: TableConfig) -> Merging:
    """Merging as the table's properties define it.

    Raises `UnsupportedTableError` for a custom merger, `ContradictoryPropertiesError` if the mode, the strategy and the payload class
    differ in meaning, and `PropertiesError` for values unknown to Hudi.
    """
    properties = config.properties
    payload = properties.get(PAYLOAD_KEY) or _legacy_payload(properties)
    strategy = properties.get(STRATEGY_KEY) or None
    if strategy is not None and strategy not in STRATEGIES:
        raise UnsupportedTableError(
            f"the table is merged by a merger of its own ({STRATEGY_KEY}={strategy}), code that this engine does not have; go on writing it"
            " with Hudi; its base files can be read read-optimized",
            table=config.name,
        )
    mode = _mode(config, payload, strategy)
    partial = _partial(config)
    payload = payload or _payload_meant(config, mode, partial)
    return Merging(mode, payload, partial, config.prefixed(MERGE_PREFIX))


def _legacy_payload(properties: Mapping[str, str]) -> str | None:
    """Payload class that the table had before version 9; None if it is a plain class beside a mode, because it may contradict the mode.

    When Hudi upgrades a version 6 table in one go, it chooses the mode by its own rules but stores the old class.
    """
    payload = properties.get(LEGACY_PAYLOAD_KEY) or None
    return None if payload in _PLAIN_PAYLOADS.values() and properties.get(MODE_KEY) else payload


def _mode(config: TableConfig, payload: str | None, strategy: str | None) -> MergeMode:
    stated = config.properties.get(MODE_KEY, "").strip().upper()
    if stated and stated not in MergeMode.__members__.values():
        raise PropertiesError(f"{MODE_KEY}={stated!r} is none of {', '.join(MergeMode)}", table=config.name)
    by_strategy = None if strategy is None else STRATEGIES[strategy]
    by_payload = None if payload is None else _meant_by(config.version, payload)
    meant = {one for one in (by_strategy, by_payload) if one is not None}
    mode = MergeMode(stated) if stated else next(iter(meant), usual_mode(config.ordering_fields))
    if meant - {mode}:
        raise ContradictoryPropertiesError(
            f"{MODE_KEY}={stated or 'not set'} does not mean the same as {STRATEGY_KEY}={strategy or 'not set'} and the payload class"
            f" {payload or 'not set'}; Hudi would refuse to write the table, too: correct .hoodie/hoodie.properties",
            table=config.name,
        )
    if mode is MergeMode.CUSTOM and payload is None:
        raise UnsupportedTableError(f"{MODE_KEY}=CUSTOM names no payload class: the table has a merger of its own", table=config.name)
    return mode


def _meant_by(version: TableVersion, payload: str) -> MergeMode:
    if version is TableVersion.NINE:
        return _IN_VERSION_9[payload].mode if payload in _IN_VERSION_9 else MergeMode.CUSTOM
    return _IN_VERSION_8.get(payload, MergeMode.CUSTOM)


def _partial(config: TableConfig) -> PartialUpdates | None:
    text = config.properties.get(PARTIAL_KEY, "").strip().upper()
    if text in ("", "NONE"):
        return None
    if text not in PartialUpdates.__members__:
        raise PropertiesError(f"{PARTIAL_KEY}={text!r} is none of {', '.join(PartialUpdates)}", table=config.name)
    return PartialUpdates(text)


def _payload_meant(config: TableConfig, mode: MergeMode, partial: PartialUpdates | None) -> str:
    """Payload class that means a mode and its partial updates, for a table that names none."""
    if partial is None:
        return _PLAIN_PAYLOADS[mode]
    found = [payload for payload, retired in _IN_VERSION_9.items() if (retired.mode, retired.partial) == (mode, partial)]
    if partial is PartialUpdates.FILL_UNAVAILABLE or not found:
        raise UnsupportedTableError(
            f"{PARTIAL_KEY}={partial} with {MODE_KEY}={mode} is not known but for the payload classes of Debezium; go on writing the table"
            " with Hudi; its base files can be read read-optimized",
            table=config.name,
        )
    return found[0]


def plain_payload(mode: MergeMode) -> str:
    """Payload class for a mode; raises `KeyError` for the mode CUSTOM."""
    return _PLAIN_PAYLOADS[mode]


def retired_as(payload_class: str) -> MergeMode | None:
    """Mode that replaces a payload class (with its package) in version 9; None for a class that still decides by itself."""
    retired = _IN_VERSION_9.get(payload_class)
    return None if retired is None else retired.mode


def usual_mode(ordering_fields: Sequence[str]) -> MergeMode:
    """Hudi's default mode."""
    return MergeMode.EVENT_TIME if ordering_fields else MergeMode.COMMIT_TIME


def merge_properties(version: TableVersion, mode: MergeMode, payload_class: str | None = None) -> dict[str, str]:
    """Properties that a new table of `version` stores for a mode, or for a payload class (with its package), as in Hudi 1.2.0.

    Raises `ContradictoryPropertiesError` for a class that means another mode in that version.
    """
    meant = mode if payload_class is None else _meant_by(version, payload_class)
    if meant is not mode:
        raise ContradictoryPropertiesError(f"{payload_class} means {MODE_KEY}={meant} in a table of version {int(version)}, not {mode}")
    payload = payload_class or _PLAIN_PAYLOADS.get(mode)
    if payload is None:
        raise PropertiesError(f"{MODE_KEY}={mode} needs a payload class")
    stored: dict[str, str] = {MODE_KEY: str(mode)}
    if version is TableVersion.EIGHT or mode is MergeMode.CUSTOM:
        return stored | {STRATEGY_KEY: _STRATEGY_OF[mode], PAYLOAD_KEY: payload}
    if payload_class is None:
        return stored
    retired = _IN_VERSION_9[payload_class]
    stored[LEGACY_PAYLOAD_KEY] = payload_class
    return stored | ({} if retired.partial is None else {PARTIAL_KEY: str(retired.partial)}) | dict(retired.properties or {})
