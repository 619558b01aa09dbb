"""What differs between metadata tables of the table versions (design: metadata table, sections 4 to 6)."""

from __future__ import annotations

from dataclasses import dataclass, field

from lakehouse_engine.model.keys import COMMIT_TIME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from lakehouse_engine.model.table_version import TableVersion

_FIRST_COLUMNS = 32
"""User columns that Hudi 1.x gives statistics to unless told otherwise (`hoodie.metadata.index.column.stats.max.columns.to.index`)."""


@dataclass(frozen=True, slots=True)
class MetadataForm:
    """Form of a metadata table.

    `statistics_version` is that of the index of statistics; `indexed_meta_columns` and the first `indexed_columns` user columns (None: all)
    have statistics by default. `every_column`: whatever is defined, since Hudi 0.15 takes any column without statistics for all null in a
    file that has some; also decimals whose values may not fit. `properties` are those of a new one.
    """

    statistics_version: str
    indexed_meta_columns: tuple[str, ...]
    indexed_columns: int | None
    every_column: bool
    has_partition_stats: bool
    properties: dict[str, str] = field(default_factory=dict)


def metadata_form(version: TableVersion) -> MetadataForm:
    """How metadata tables of this table version are stored."""
    return _FORMS[version]


def metadata_properties(version: TableVersion, name: str) -> dict[str, str]:
    """`hoodie.properties` of the new metadata table of the table `name`, without checksum."""
    return {"hoodie.table.name": f"{name}_metadata", **_COMMON, "hoodie.table.version": str(int(version)), **_FORMS[version].properties}


_COMMON = {
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.base.file.format": "HFILE",
    "hoodie.table.recordkey.fields": "key",
    "hoodie.populate.meta.fields": "false",
    "hoodie.datasource.write.drop.partition.columns": "false",
    "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
}
_OLD_PROPERTIES = {
    "hoodie.timeline.layout.version": "1",
    "hoodie.archivelog.folder": "archived",
    "hoodie.table.keygenerator.class": "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
    "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
}
_NEW_PROPERTIES = {
    "hoodie.timeline.layout.version": "2",
    "hoodie.timeline.path": "timeline",
    "hoodie.timeline.history.path": "history",
    "hoodie.archivelog.folder": "history",
    "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
    "hoodie.record.merge.mode": "CUSTOM",
    "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
}
_META = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)


def _later(version: TableVersion, statistics_version: str) -> MetadataForm:
    properties = {**_NEW_PROPERTIES, "hoodie.table.initial.version": str(int(version))}
    return MetadataForm(statistics_version, _META, _FIRST_COLUMNS, False, True, properties)


_FORMS = {
    TableVersion.SIX: MetadataForm("V1", META_COLUMNS, None, True, False, _OLD_PROPERTIES),
    TableVersion.EIGHT: _later(TableVersion.EIGHT, "V1"),
    TableVersion.NINE: _later(TableVersion.NINE, "V2"),
}
