"""The properties of a new table of version 6, as Hudi 0.15 stores them (hudi-format 1.2)."""

from __future__ import annotations

from lakehouse_engine.format.new_table import NewTable
from lakehouse_engine.model.merge_mode import EVENT_TIME_STRATEGY

_KEY_GENERATORS = {"NON_PARTITION": "NonpartitionedKeyGenerator", "SIMPLE": "SimpleKeyGenerator", "COMPLEX": "ComplexKeyGenerator"}


def new_table_properties(table: NewTable) -> dict[str, str]:
    """All properties except the checksum. The payload class says how rows merge, not the merge mode; the zone is UTC, without change data.
    """
    columns = (
        ("hoodie.table.recordkey.fields", table.record_key_fields),
        ("hoodie.table.precombine.field", table.ordering_fields),
        ("hoodie.table.partition.fields", table.partition_fields),
    )
    return {
        "hoodie.table.name": table.name,
        "hoodie.database.name": table.database or "",
        "hoodie.table.type": table.table_type.value,
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        "hoodie.table.keygenerator.class": f"org.apache.hudi.keygen.{_KEY_GENERATORS[table.key_generator]}",
        "hoodie.datasource.write.hive_style_partitioning": str(table.hive_style).lower(),
        "hoodie.datasource.write.partitionpath.urlencode": str(table.url_encode).lower(),
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.table.base.file.format": "PARQUET",
        "hoodie.archivelog.folder": "archived",
        "hoodie.populate.meta.fields": "true",
        "hoodie.table.cdc.enabled": "false",
        "hoodie.partition.metafile.use.base.format": "false",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.compaction.record.merger.strategy": EVENT_TIME_STRATEGY,
        **({} if table.payload_class is None else {"hoodie.compaction.payload.class": table.payload_class}),
        **{key: ",".join(names) for key, names in columns if names},
        **table.also,
    }
