from __future__ import annotations

from dataclasses import replace

import pytest

from lakehouse_engine.errors import (
    ContradictoryPropertiesError,
    PropertiesError,
    UnsupportedTableError,
    UnsupportedTableVersionError,
)
from lakehouse_engine.format.properties import parse_properties, verify_checksum
from lakehouse_engine.format.v8.new_table import NewTable, new_table_properties
from lakehouse_engine.format.v8.properties import check_readable, history_folder, partition_kinds, timeline_folder
from lakehouse_engine.model.merge_mode import (
    COMMIT_TIME_STRATEGY,
    EVENT_TIME_STRATEGY,
    MERGE_PREFIX,
    PAYLOAD_STRATEGY,
    MergeMode,
    PartialUpdates,
    merge_properties,
    merging_of,
)
from lakehouse_engine.model.table_config import TableConfig, TableType
from lakehouse_engine.model.table_version import TableVersion
from tests.unit.format.v8.tables import TABLES, files_of, needs_fixtures

_MODELS = "org.apache.hudi.common.model."
_LATER = (
    "hoodie.table.metadata.partitions",
    "hoodie.table.metadata.partitions.inflight",
    "hoodie.table.index.defs.path",
    "hoodie.bootstrap.base.path",
    "hoodie.bootstrap.index.type",
)
"""Written by the metadata table and the bootstrap, not for every new table."""
_BY_DATA_FRAME = (
    "hoodie.table.multiple.base.file.formats.enable",
    "hoodie.table.partition_extractor_class",
    "hoodie.table.timeline.timezone",
    "hoodie.populate.meta.fields",
    "hoodie.partition.metafile.use.base.format",
    "hoodie.table.base.file.format",
    "hoodie.table.cdc.enabled",
)
"""Left out where a table was made by CREATE TABLE; the bootstrap leaves out the first two only."""


def config_of(name: str, folder: str = ".hoodie") -> TableConfig:
    return TableConfig(parse_properties(files_of(name)[f"{folder}/hoodie.properties"]))


def config(version: int = 9, **properties: str) -> TableConfig:
    stated = {"hoodie.table.name": "t", "hoodie.table.type": "MERGE_ON_READ", "hoodie.table.version": str(version)}
    return TableConfig(stated | {key.replace("__", "."): value for key, value in properties.items()})


def merged(version: int = 9, **properties: str) -> TableConfig:
    keys = {
        "mode": "hoodie.record.merge.mode",
        "strategy": "hoodie.record.merge.strategy.id",
        "payload": "hoodie.compaction.payload.class",
        "legacy": "hoodie.table.legacy.payload.class",
        "partial": "hoodie.table.partial.update.mode",
        "ordering": "hoodie.table.ordering.fields",
    }
    return config(version, **{keys[key]: value for key, value in properties.items()})


@needs_fixtures
@pytest.mark.parametrize("name", TABLES)
def test_properties_of_hudi_are_those_of_the_template(name: str) -> None:
    found = config_of(name)
    verify_checksum(found.properties)
    properties = dict(found.properties)
    merging = merging_of(found)
    legacy = properties.get("hoodie.table.legacy.payload.class")
    also = {key: value for key, value in properties.items() if key.startswith("hoodie.keygen.timebased.")}
    for key in ("hoodie.table.create.schema", "hoodie.table.cdc.supplemental.logging.mode"):
        if key in properties:
            also[key] = properties[key]
    made = new_table_properties(
        found.version,
        NewTable(
            name=found.name,
            table_type=found.table_type,
            key_generator=found.key_generator or "",
            record_key_fields=found.record_key_fields,
            ordering_fields=found.ordering_fields,
            partition_fields=[field if kind is None else f"{field}:{kind}" for field, kind in partition_kinds(found)],
            database=found.properties.get("hoodie.database.name"),
            merge_mode=merging.mode,
            payload_class=legacy,
            hive_style=found.hive_style_partitioning,
            url_encode=found.url_encode_partitioning,
            timezone="LOCAL",
            cdc=found.cdc_enabled,
            also=also,
        ),
    )
    if "hoodie.table.create.schema" in properties:
        assert properties["hoodie.archivelog.folder"] == "archived"
        properties["hoodie.archivelog.folder"] = "history"
    absent = made.keys() - properties.keys()
    assert absent in (set(), set(_BY_DATA_FRAME), set(_BY_DATA_FRAME[:2]))
    assert properties == {key: value for key, value in made.items() if key not in absent} | {
        key: properties[key] for key in _LATER if key in properties
    }


@needs_fixtures
@pytest.mark.parametrize("name", TABLES)
def test_tables_of_hudi_are_readable(name: str) -> None:
    found = config_of(name)
    check_readable(found)
    assert timeline_folder(found) == ".hoodie/timeline"
    assert history_folder(found) == ".hoodie/timeline/history"
    assert any(path.startswith(timeline_folder(found)) for path in files_of(name))
    assert found.ordering_fields == (() if name.endswith("no_ordering") else ("ts",))


@needs_fixtures
@pytest.mark.parametrize(
    ("name", "mode", "payload", "partial"),
    [
        ("v8-1.2.0/mor_merge_commit_time", MergeMode.COMMIT_TIME, "OverwriteWithLatestAvroPayload", None),
        ("v8-1.2.0/mor_merge_default_payload", MergeMode.EVENT_TIME, "DefaultHoodieRecordPayload", None),
        ("v9-1.2.0/mor_merge_commit_time", MergeMode.COMMIT_TIME, "OverwriteWithLatestAvroPayload", None),
        ("v9-1.2.0/mor_merge_event_time", MergeMode.EVENT_TIME, "DefaultHoodieRecordPayload", None),
        ("v9-1.2.0/mor_merge_overwrite_latest", MergeMode.COMMIT_TIME, "OverwriteWithLatestAvroPayload", None),
        ("v9-1.2.0/mor_merge_partial_update", MergeMode.EVENT_TIME, "PartialUpdateAvroPayload", PartialUpdates.IGNORE_DEFAULTS),
        ("v9-1.2.0/mor_no_ordering", MergeMode.COMMIT_TIME, "OverwriteWithLatestAvroPayload", None),
    ],
)
def test_tables_of_hudi_say_how_they_merge(name: str, mode: MergeMode, payload: str, partial: PartialUpdates | None) -> None:
    found = merging_of(config_of(name))
    assert (found.mode, found.payload_class, found.partial) == (mode, _MODELS + payload, partial)


@needs_fixtures
@pytest.mark.parametrize("name", [name for name in TABLES if name.endswith("_metadata")])
def test_the_metadata_table_has_a_class_of_its_own(name: str) -> None:
    found = merging_of(config_of(name, ".hoodie/metadata/.hoodie"))
    assert (found.mode, found.payload_class) == (MergeMode.CUSTOM, "org.apache.hudi.metadata.HoodieMetadataPayload")


@needs_fixtures
def test_partition_fields_carry_their_kind() -> None:
    assert partition_kinds(config_of("v9-1.2.0/cow_keygen_custom")) == (("region", "SIMPLE"), ("at", "TIMESTAMP"))
    assert partition_kinds(config_of("v9-1.2.0/cow_keygen_complex")) == (("p1", None), ("p2", None))
    assert partition_kinds(config_of("v9-1.2.0/cow_nonpartitioned")) == ()


def test_another_kind_of_partition_field_is_refused() -> None:
    with pytest.raises(PropertiesError, match="at:HOUR"):
        partition_kinds(config(hoodie__table__partition__fields="at:HOUR"))


@pytest.mark.parametrize(
    ("properties", "match"),
    [
        ({"hoodie.timeline.layout.version": "1"}, "layout"),
        ({"hoodie.table.version": "6"}, "layout"),
        ({"hoodie.table.format": "iceberg"}, "iceberg"),
        ({"hoodie.table.multiple.base.file.formats.enable": "true"}, "several formats"),
    ],
)
def test_what_is_not_read_is_refused_by_name(properties: dict[str, str], match: str) -> None:
    with pytest.raises((UnsupportedTableVersionError, UnsupportedTableError), match=match):
        check_readable(TableConfig({**config().properties, **properties}))


@pytest.mark.parametrize("path", ["../up", "/abs", "a//b", ".", "a/../b", "a\0"])
def test_the_timeline_stays_inside_the_table(path: str) -> None:
    with pytest.raises(PropertiesError, match=r"hoodie\.timeline\.path"):
        timeline_folder(config(hoodie__timeline__path=path))
    with pytest.raises(PropertiesError, match=r"hoodie\.timeline\.history\.path"):
        history_folder(config(hoodie__timeline__history__path=path))


def test_other_folders_are_taken_as_they_are_named() -> None:
    other = config(hoodie__timeline__path="instants/", hoodie__timeline__history__path="old", hoodie__archivelog__folder="archived")
    assert (timeline_folder(other), history_folder(other)) == (".hoodie/instants", ".hoodie/instants/old")
    assert history_folder(config()) == ".hoodie/timeline/history"


@pytest.mark.parametrize(
    ("found", "mode"),
    [
        (merged(ordering="ts"), MergeMode.EVENT_TIME),
        (merged(), MergeMode.COMMIT_TIME),
        (merged(8, strategy=COMMIT_TIME_STRATEGY, ordering="ts"), MergeMode.COMMIT_TIME),
        (merged(8, payload=_MODELS + "EventTimeAvroPayload"), MergeMode.EVENT_TIME),
        (merged(8, mode="CUSTOM", payload=_MODELS + "PartialUpdateAvroPayload", strategy=PAYLOAD_STRATEGY), MergeMode.CUSTOM),
        (merged(9, legacy=_MODELS + "OverwriteNonDefaultsWithLatestAvroPayload"), MergeMode.COMMIT_TIME),
    ],
)
def test_what_is_not_said_follows_from_what_is(found: TableConfig, mode: MergeMode) -> None:
    assert merging_of(found).mode is mode


@pytest.mark.parametrize(
    ("found", "payload"),
    [
        (merged(mode="EVENT_TIME_ORDERING", partial="IGNORE_DEFAULTS"), "PartialUpdateAvroPayload"),
        (merged(mode="COMMIT_TIME_ORDERING", partial="IGNORE_DEFAULTS"), "OverwriteNonDefaultsWithLatestAvroPayload"),
        (merged(mode="COMMIT_TIME_ORDERING", partial="NONE"), "OverwriteWithLatestAvroPayload"),
        (
            merged(mode="EVENT_TIME_ORDERING", partial="FILL_UNAVAILABLE", legacy=_MODELS + "debezium.PostgresDebeziumAvroPayload"),
            "debezium.PostgresDebeziumAvroPayload",
        ),
    ],
)
def test_a_mode_and_its_partial_updates_are_a_payload_class(found: TableConfig, payload: str) -> None:
    assert merging_of(found).payload_class == _MODELS + payload


@pytest.mark.parametrize(
    ("found", "error", "match"),
    [
        (merged(mode="CUSTOM", strategy="1897ef5f-18bc-4557-939c-9d6a8afd1519"), UnsupportedTableError, "1897ef5f"),
        (merged(mode="CUSTOM"), UnsupportedTableError, "CUSTOM"),
        (merged(mode="EVENT_TIME_ORDERING", partial="FILL_UNAVAILABLE"), UnsupportedTableError, "Debezium"),
        (merged(mode="EVENT_TIME_ORDERING", strategy=COMMIT_TIME_STRATEGY), ContradictoryPropertiesError, "ce9acb64"),
        (merged(8, mode="EVENT_TIME_ORDERING", payload=_MODELS + "PartialUpdateAvroPayload"), ContradictoryPropertiesError, "Partial"),
        (merged(8, strategy=EVENT_TIME_STRATEGY, payload="org.acme.Own"), ContradictoryPropertiesError, "org.acme.Own"),
        (merged(mode="SOMEHOW"), PropertiesError, "SOMEHOW"),
        (merged(mode="EVENT_TIME_ORDERING", partial="SOME"), PropertiesError, "SOME"),
    ],
)
def test_mergers_that_are_not_known_are_refused_by_name(found: TableConfig, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        merging_of(found)


@pytest.mark.parametrize(
    ("payload", "fields"),
    [("MySqlDebeziumAvroPayload", "_event_bin_file,_event_pos"), ("PostgresDebeziumAvroPayload", "_event_lsn")],
)
def test_a_table_of_debezium_is_ordered_by_the_columns_of_its_class(payload: str, fields: str) -> None:
    """As `HoodieTableConfig.inferMergingConfigsForV9TableCreation` of Hudi 1.2.0 says, whatever else is given."""
    made = NewTable(
        name="t",
        table_type=TableType.MERGE_ON_READ,
        key_generator="SIMPLE",
        ordering_fields=["ts"],
        merge_mode=MergeMode.EVENT_TIME,
        payload_class=f"{_MODELS}debezium.{payload}",
    )
    assert new_table_properties(TableVersion.NINE, made)["hoodie.table.ordering.fields"] == fields
    assert new_table_properties(TableVersion.NINE, replace(made, payload_class=None))["hoodie.table.ordering.fields"] == "ts"


def test_merge_properties_of_the_table_are_kept() -> None:
    properties = merge_properties(TableVersion.NINE, MergeMode.COMMIT_TIME, _MODELS + "AWSDmsAvroPayload")
    found = merging_of(config(**properties))
    assert found.properties == {"hoodie.payload.delete.field": "Op", "hoodie.payload.delete.marker": "D"}
    assert found.payload_class == _MODELS + "AWSDmsAvroPayload"
    assert all(key.startswith("hoodie.") for key in properties)
    assert f"{MERGE_PREFIX}hoodie.payload.delete.field" in properties


@pytest.mark.parametrize("version", [TableVersion.EIGHT, TableVersion.NINE])
@pytest.mark.parametrize(
    ("mode", "payload"),
    [
        (MergeMode.EVENT_TIME, None),
        (MergeMode.COMMIT_TIME, None),
        (MergeMode.EVENT_TIME, _MODELS + "EventTimeAvroPayload"),
        (MergeMode.CUSTOM, "org.acme.Own"),
    ],
)
def test_what_is_stored_is_read_back(version: TableVersion, mode: MergeMode, payload: str | None) -> None:
    found = merging_of(config(int(version), **merge_properties(version, mode, payload)))
    assert found.mode is mode
    assert payload is None or found.payload_class == payload


def test_a_class_of_another_mode_is_not_stored() -> None:
    partial = _MODELS + "PartialUpdateAvroPayload"
    with pytest.raises(ContradictoryPropertiesError, match="CUSTOM"):
        merge_properties(TableVersion.EIGHT, MergeMode.EVENT_TIME, partial)
    assert merge_properties(TableVersion.NINE, MergeMode.EVENT_TIME, partial)["hoodie.table.partial.update.mode"] == "IGNORE_DEFAULTS"
    with pytest.raises(PropertiesError, match="payload class"):
        merge_properties(TableVersion.NINE, MergeMode.CUSTOM)


def test_a_new_table_is_readable() -> None:
    for version in (TableVersion.EIGHT, TableVersion.NINE):
        properties = new_table_properties(
            version, NewTable(name="t", table_type=TableType.COPY_ON_WRITE, key_generator="SIMPLE", partition_fields=["p"], also={"x": "y"})
        )
        verify_checksum(properties)
        made = TableConfig(properties)
        check_readable(made)
        assert (made.version, made.timeline_timezone, properties["x"]) == (version, "UTC", "y")
