"""Properties of a table in another version."""

from __future__ import annotations

import pytest

from lakehouse_engine.errors import VersionChangeError
from lakehouse_engine.format.v8.changed_properties import moves_timeline, properties_in
from lakehouse_engine.model.merge_mode import COMMIT_TIME_STRATEGY, EVENT_TIME_STRATEGY, PAYLOAD_STRATEGY, MergeMode, merging_of
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.model.table_version import TableVersion

SIX, EIGHT, NINE = TableVersion
MODELS = "org.apache.hudi.common.model."
DEFAULT, LATEST = f"{MODELS}DefaultHoodieRecordPayload", f"{MODELS}OverwriteWithLatestAvroPayload"
MODE, STRATEGY = "hoodie.record.merge.mode", "hoodie.record.merge.strategy.id"
PAYLOAD, LEGACY = "hoodie.compaction.payload.class", "hoodie.table.legacy.payload.class"
GENERATOR = "hoodie.table.keygenerator.class"
PARTIAL = "hoodie.table.partial.update.mode"
PREFIX = "hoodie.record.merge.property."


def six(table_type: str = "MERGE_ON_READ", payload: str | None = DEFAULT, ordering: str = "ts", **more: str) -> TableConfig:
    properties = {
        "hoodie.table.name": "t",
        "hoodie.table.type": table_type,
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.partition.fields": "day",
        "hoodie.compaction.record.merger.strategy": EVENT_TIME_STRATEGY,
        **{key.replace("__", "."): value for key, value in more.items()},
    }
    if payload:
        properties[PAYLOAD] = payload
    if ordering:
        properties["hoodie.table.precombine.field"] = ordering
    return TableConfig(properties)


def brought(config: TableConfig, to: TableVersion) -> TableConfig:
    return config.with_properties(properties_in(config, to).changes)


@pytest.mark.parametrize(
    ("table_type", "payload", "ordering", "mode", "stored"),
    [
        ("MERGE_ON_READ", DEFAULT, "ts", MergeMode.EVENT_TIME, DEFAULT),
        ("MERGE_ON_READ", LATEST, "ts", MergeMode.EVENT_TIME, DEFAULT),
        ("MERGE_ON_READ", LATEST, "", MergeMode.COMMIT_TIME, LATEST),
        ("COPY_ON_WRITE", LATEST, "ts", MergeMode.COMMIT_TIME, LATEST),
        ("COPY_ON_WRITE", None, "ts", MergeMode.EVENT_TIME, DEFAULT),
        ("COPY_ON_WRITE", None, "", MergeMode.COMMIT_TIME, LATEST),
        ("MERGE_ON_READ", f"{MODELS}FirstValueAvroPayload", "ts", MergeMode.CUSTOM, f"{MODELS}FirstValueAvroPayload"),
        ("MERGE_ON_READ", f"{MODELS}PartialUpdateAvroPayload", "ts", MergeMode.CUSTOM, f"{MODELS}PartialUpdateAvroPayload"),
    ],
)
def test_version_8_says_the_mode_that_hudi_takes_for_a_payload_class(
    table_type: str, payload: str | None, ordering: str, mode: MergeMode, stored: str
) -> None:
    config = brought(six(table_type, payload, ordering), EIGHT)
    strategy = {MergeMode.EVENT_TIME: EVENT_TIME_STRATEGY, MergeMode.COMMIT_TIME: COMMIT_TIME_STRATEGY}.get(mode, PAYLOAD_STRATEGY)
    properties = config.properties
    assert (properties[MODE], properties[STRATEGY], properties[PAYLOAD]) == (mode, strategy, stored)
    assert (properties["hoodie.table.version"], properties["hoodie.timeline.layout.version"]) == ("8", "2")
    assert (properties["hoodie.table.initial.version"], properties["hoodie.timeline.path"]) == ("6", "timeline")
    assert properties["hoodie.table.keygenerator.type"] == "SIMPLE"
    assert merging_of(config).mode is mode


def test_a_table_of_version_6_that_hudi_1_merges_by_commit_time_stays_so_and_one_that_changes_says_it() -> None:
    stated = six(payload=LATEST, **{STRATEGY: COMMIT_TIME_STRATEGY})
    assert merging_of(brought(stated, NINE)).mode is MergeMode.COMMIT_TIME
    assert properties_in(stated, NINE).notes == ()
    (note,) = properties_in(six(payload=LATEST), NINE).notes
    assert "a row with a lower ts than the stored one no longer replaces it" in note


def test_version_9_drops_the_strategy_and_keeps_the_class_as_the_legacy_one() -> None:
    properties = brought(six(), NINE).properties
    assert (properties[MODE], properties[LEGACY], properties["hoodie.table.ordering.fields"]) == ("EVENT_TIME_ORDERING", DEFAULT, "ts")
    assert not {STRATEGY, PAYLOAD, "hoodie.table.precombine.field"} & set(properties)


def test_partial_updates_by_a_class_are_a_mode_in_version_9_and_the_class_again_before() -> None:
    config = brought(six(payload=f"{MODELS}PartialUpdateAvroPayload"), NINE)
    assert (config.properties[MODE], config.properties[PARTIAL]) == ("EVENT_TIME_ORDERING", "IGNORE_DEFAULTS")
    (note,) = properties_in(config, EIGHT).notes
    assert "PartialUpdateAvroPayload" in note
    before = brought(config, EIGHT).properties
    assert (before[MODE], before[STRATEGY], before[PAYLOAD]) == ("CUSTOM", PAYLOAD_STRATEGY, f"{MODELS}PartialUpdateAvroPayload")
    assert not {PARTIAL, LEGACY} & set(before)
    assert brought(config, SIX).properties[PAYLOAD] == f"{MODELS}PartialUpdateAvroPayload"


def test_debezium_orders_rows_by_the_place_in_the_binary_log_in_version_9() -> None:
    config = brought(six(payload=f"{MODELS}debezium.MySqlDebeziumAvroPayload", ordering="_event_seq"), NINE)
    assert config.ordering_fields == ("_event_bin_file", "_event_pos")
    assert config.properties[f"{PREFIX}hoodie.payload.delete.marker"] == "d"
    before = brought(config, EIGHT)
    assert before.ordering_fields == ("_event_seq",)
    assert not [key for key in before.properties if key.startswith(PREFIX)]


def test_a_column_that_marks_deletions_is_where_each_version_looks_for_it() -> None:
    marked = six(**{"hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D"})
    config = brought(marked, NINE)
    assert config.properties[f"{PREFIX}hoodie.payload.delete.field"] == "op"
    before = brought(config, EIGHT).properties
    assert (before["hoodie.payload.delete.field"], before["hoodie.payload.delete.marker"]) == ("op", "D")
    assert not [key for key in before if key.startswith(PREFIX)]


def test_version_6_has_none_of_what_later_ones_add_and_keeps_the_strategy() -> None:
    config = brought(brought(six(), NINE), SIX)
    assert {key: value for key, value in config.properties.items() if key != STRATEGY} == dict(six().properties)
    assert config.properties[STRATEGY] == EVENT_TIME_STRATEGY


@pytest.mark.parametrize(
    ("changes", "to", "says"),
    [
        ({"hoodie.table.ordering.fields": "ts,seq"}, SIX, "version 6 keeps one ordering field, and the table has ts, seq"),
        ({PARTIAL: "IGNORE_DEFAULTS", LEGACY: None}, EIGHT, "IGNORE_DEFAULTS without a payload class"),
        ({f"{PREFIX}mine": "1"}, EIGHT, "version 8 has no place for merge properties"),
        ({"hoodie.timeline.path": "times"}, SIX, "only a table with the usual folders"),
        ({GENERATOR: None, "hoodie.table.keygenerator.type": "USER_PROVIDED"}, SIX, "version 6 has no class for it"),
    ],
)
def test_what_an_earlier_version_cannot_say_is_refused(changes: dict[str, str | None], to: TableVersion, says: str) -> None:
    config = brought(six(), NINE).with_properties(changes)
    with pytest.raises(VersionChangeError, match=says):
        properties_in(config, to)


def test_a_key_generator_of_the_users_own_is_refused() -> None:
    with pytest.raises(VersionChangeError, match=r"com\.example\.Mine"):
        properties_in(six(**{"hoodie.table.keygenerator.class": "com.example.Mine"}), EIGHT)


def test_kinds_of_partition_fields_are_told_when_version_6_loses_them() -> None:
    config = brought(six(), EIGHT).with_properties(
        {"hoodie.table.partition.fields": "at:TIMESTAMP,day:SIMPLE", "hoodie.table.keygenerator.type": "CUSTOM"}
    )
    config = config.with_properties({"hoodie.table.keygenerator.class": None})
    told = properties_in(config, SIX)
    assert told.changes["hoodie.table.partition.fields"] == "at,day"
    assert told.changes["hoodie.table.keygenerator.class"] == "org.apache.hudi.keygen.CustomKeyGenerator"
    assert any("partitionpath.field=at:TIMESTAMP,day:SIMPLE" in note for note in told.notes)


def test_the_timeline_moves_between_6_and_the_others_only() -> None:
    later = brought(six(), EIGHT)
    assert [moves_timeline(six(), to) for to in (SIX, EIGHT, NINE)] == [False, True, True]
    assert [moves_timeline(later, to) for to in (SIX, EIGHT, NINE)] == [True, False, False]


def test_a_mode_counts_beside_the_legacy_class_that_hudi_stores_when_it_upgrades_in_one_go() -> None:
    """From 6 to 9 Hudi 1.2 stores the class of version 6 beside the mode that it chooses by its rule."""
    config = brought(six(), NINE).with_properties({LEGACY: LATEST})
    merging = merging_of(config)
    assert (merging.mode, merging.payload_class) == (MergeMode.EVENT_TIME, DEFAULT)
