"""What nobody has taken through the whole visit yet, by the Hudi that makes the table."""

UNTRIED = {
    "0.15.0": frozenset(
        [
            "index-everything-mor", "schema-added-mor", "schema-nested-mor", "zone-local-mor",
            "sql-mor", "sql-nonpartitioned", "sql-no-precombine", "sql-no-key", "sql-no-key-mor", "sql-two-keys", "sql-ctas",
            "sql-ctas-mor", "sql-insert-strict", "sql-insert-bulk", "sql-insert-upsert", "sql-overwrite-partition",
            "sql-overwrite-table", "sql-drop-partition", "sql-truncate", "sql-empty", "sql-two-partitions", "frame-mor",
            "frame-nonpartitioned", "frame-nonpartitioned-mor", "frame-nothing-said", "frame-bulk-insert",
            "frame-bulk-insert-mor", "frame-deleted", "frame-deleted-mor", "frame-overwritten", "frame-overwritten-mor",
            "frame-overwritten-table", "frame-partition-deleted", "payload-event-time-avro-cow", "spark-merger",
            "index-bloom-mor", "index-global-bloom", "index-global-bloom-mor", "index-simple", "index-simple-mor",
            "index-global-simple", "index-global-simple-mor", "index-bucket", "index-bucket-untold", "index-record",
            "index-record-mor", "index-column-stats", "index-column-stats-mor", "index-bloom-metadata", "key-long", "key-float",
            "key-timestamp-logical-rows", "keygen-simple", "keygen-complex-named", "keygen-nested-key", "keygen-nonpartitioned",
            "keygen-custom-simple", "keygen-custom-timestamp", "keygen-timestamp-micros", "keygen-timestamp-unix",
            "keygen-timestamp-scalar", "keygen-timestamp-timestamp", "partition-hive", "partition-odd-hive",
            "partition-odd-encoded", "partition-odd-hive-encoded", "partition-slash", "partition-slash-hive",
            "partition-blank-hive", "partition-date", "partition-date-plain", "partition-int", "partition-long",
            "partition-boolean", "partition-decimal", "partition-timestamp", "service-clustering-mor",
            "service-clustering-pending", "service-compaction", "service-compaction-scheduled", "service-cleaned",
            "service-cleaned-mor", "service-archived", "service-archived-mor", "service-savepoint", "service-savepoint-archived",
            "service-savepoint-beyond", "service-restored", "service-occ", "service-occ-mor", "service-all-mor", "schema-added",
            "schema-nested", "schema-types", "schema-sql-added", "zone-utc", "virtual-keys", "cdc-mor", "logs-avro",
            "logs-parquet", "logs-hfile", "logs-deleted", "sql-table-of-frames",
        ]
    ),
    "1.2.0": frozenset(
        [
            "index-everything-mor", "schema-added-mor", "schema-nested-mor", "zone-local-mor",
            "sql-mor", "sql-nonpartitioned", "sql-no-precombine", "sql-no-precombine-mor", "sql-no-key", "sql-no-key-mor",
            "sql-two-keys", "sql-ctas", "sql-ctas-mor", "sql-insert-strict", "sql-insert-bulk", "sql-insert-upsert",
            "sql-overwrite-partition", "sql-overwrite-table", "sql-drop-partition", "sql-truncate", "sql-empty",
            "sql-two-partitions", "frame-mor", "frame-nonpartitioned", "frame-nonpartitioned-mor", "frame-nothing-said",
            "frame-bulk-insert", "frame-bulk-insert-mor", "frame-deleted", "frame-deleted-mor", "frame-overwritten",
            "frame-overwritten-mor", "frame-overwritten-table", "frame-partition-deleted", "payload-event-time-avro-cow",
            "payload-custom", "merge-mode-commit-time", "index-bloom-mor", "index-global-bloom", "index-global-bloom-mor",
            "index-simple", "index-simple-mor", "index-global-simple", "index-global-simple-mor", "index-bucket",
            "index-bucket-untold", "index-record", "index-record-mor", "index-column-stats", "index-column-stats-mor",
            "index-bloom-metadata", "key-long", "key-float", "key-timestamp-logical-rows", "keygen-simple", "keygen-nested-key",
            "keygen-nonpartitioned", "keygen-custom-simple", "keygen-custom-untold", "keygen-timestamp-millis",
            "keygen-timestamp-micros", "keygen-timestamp-unix", "keygen-timestamp-text", "keygen-timestamp-mixed",
            "keygen-timestamp-scalar", "keygen-timestamp-timestamp", "keygen-timestamp-as-millis", "partition-hive", "partition-odd-hive",
            "partition-odd-encoded", "partition-odd-hive-encoded", "partition-slash", "partition-slash-hive",
            "partition-blank-hive", "partition-date", "partition-date-plain", "partition-int", "partition-long",
            "partition-boolean", "partition-decimal", "partition-timestamp", "partition-dropped", "service-clustering-mor",
            "service-clustering-pending", "service-compaction", "service-compaction-scheduled", "service-cleaned",
            "service-cleaned-mor", "service-archived", "service-archived-mor", "service-savepoint", "service-savepoint-archived",
            "service-savepoint-beyond", "service-restored", "service-occ", "service-occ-mor", "service-all-mor", "schema-added",
            "schema-nested", "zone-utc", "virtual-keys", "cdc-mor", "logs-avro", "logs-parquet", "logs-hfile", "logs-deleted",
            "sql-table-of-frames",
        ]
    ),
}
"""Visited with LAKEHOUSE_ZOO=untried or by name; shares, `make zoo` and the documentation leave them out."""
