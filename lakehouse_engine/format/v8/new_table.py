"""The properties of a new table of version 8 or 9, as Hudi 1.2.0 stores them (hudi-format II.1)."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse_engine.format.new_table import NewTable
from lakehouse_engine.format.properties import CHECKSUM_KEY, table_checksum
from lakehouse_engine.format.v8.properties import HISTORY_PATH, LAYOUT_VERSION, TABLE_FORMAT, TIMELINE_PATH
from lakehouse_engine.model.merge_mode import merge_properties, usual_mode
from lakehouse_engine.model.table_version import TableVersion

_EXTRACTORS = "org.apache.hudi.hive."


def new_table_properties(version: TableVersion, table: NewTable) -> dict[str, str]:
    """All properties, including the checksum. Raises as `merge_properties`."""
    mode = table.merge_mode or usual_mode(table.ordering_fields)
    properties = {
        "hoodie.table.name": table.name,
        **({} if table.database is None else {"hoodie.database.name": table.database}),
        "hoodie.table.type": str(table.table_type),
        "hoodie.table.version": str(int(version)),
        "hoodie.table.initial.version": str(int(version)),
        "hoodie.table.format": TABLE_FORMAT,
        "hoodie.timeline.layout.version": LAYOUT_VERSION,
        "hoodie.timeline.path": TIMELINE_PATH,
        "hoodie.timeline.history.path": HISTORY_PATH,
        "hoodie.archivelog.folder": HISTORY_PATH,
        "hoodie.table.timeline.timezone": table.timezone,
        "hoodie.table.base.file.format": "PARQUET",
        "hoodie.table.multiple.base.file.formats.enable": "false",
        "hoodie.partition.metafile.use.base.format": "false",
        "hoodie.populate.meta.fields": "true",
        "hoodie.table.cdc.enabled": str(table.cdc).lower(),
        "hoodie.table.keygenerator.type": table.key_generator,
        "hoodie.table.partition.fields": ",".join(table.partition_fields),
        "hoodie.table.partition_extractor_class": _EXTRACTORS + _extractor(table),
        "hoodie.datasource.write.hive_style_partitioning": str(table.hive_style).lower(),
        "hoodie.datasource.write.partitionpath.urlencode": str(table.url_encode).lower(),
        "hoodie.datasource.write.drop.partition.columns": "false",
        **{key: ",".join(names) for key, names in _columns(table) if names},
        **merge_properties(version, mode, table.payload_class),
        **table.also,
    }
    return {**properties, CHECKSUM_KEY: table_checksum(properties)}


def _columns(table: NewTable) -> tuple[tuple[str, Sequence[str]], ...]:
    return ("hoodie.table.recordkey.fields", table.record_key_fields), ("hoodie.table.ordering.fields", table.ordering_fields)


def _extractor(table: NewTable) -> str:
    """Class with which Hive's synchronization reads partition values."""
    if not table.partition_fields:
        return "NonPartitionedExtractor"
    if len(table.partition_fields) > 1:
        return "MultiPartKeysValueExtractor"
    return "HiveStylePartitionValueExtractor" if table.hive_style else "SinglePartPartitionValueExtractor"
