"""Names of configs: this adapter's, dbt's, other adapters', and the Hudi keys that a config sets."""

from __future__ import annotations

from dbt.adapters.lakehouse.config.clauses import CLAUSE_KEYS
from dbt.adapters.lakehouse.config.service_config import SERVICES

OWN_KEYS = (
    "table_type",
    "ordering_fields",
    "precombine_field",
    "partition_by",
    "hive_style_partitioning",
    "merge_update_columns",
    "merge_exclude_columns",
    "incremental_predicates",
    "predicates",
    "delete_condition",
    *CLAUSE_KEYS,
    "deletes",
    "on_duplicate_source_keys",
    "index",
    "metadata",
    "audit",
    "table_version",
    "hoodie",
    *SERVICES,
)
"""Configs of this adapter."""

DBT_KEYS = (
    "sql_header",
    "strategy",
    "updated_at",
    "check_cols",
    "hard_deletes",
    "invalidate_hard_deletes",
    "target_schema",
    "target_database",
    "snapshot_meta_column_names",
    "snapshot_table_column_names",
    "dbt_valid_to_current",
    "delimiter",
    "quote_columns",
    "column_types",
    "submission_method",
    "config_keys_used",
    "config_keys_defaults",
    "meta_keys_used",
    "meta_keys_defaults",
    "access",
    "freshness",
    "catalog_name",
    "catalog",
    "post-hook",
    "pre-hook",
    "language",
    "store_failures",
    "store_failures_as",
    "limit",
    "where",
    "severity",
    "overwrite",
    "description",
    "static_analysis",
    "sync",
)
"""Configs that dbt reads although its config classes do not list them for every node type."""

_PLACE = "tables are at <warehouse>/<schema>/<alias>: set the profile's 'warehouse', and the model's 'schema' and 'alias'"
_HUDI = "Hudi's own settings go under 'hoodie'"
_BUCKETS = "bucketing is Hudi's bucket index: index 'bucket', with 'hoodie.bucket.index.num.buckets' under 'hoodie'"
_ORDER = "files are sorted by the config 'clustering': {order_by: [a, b], layout: z_order}"
_COMPRESSION = "it is 'hoodie.parquet.compression.codec' under 'hoodie'"
_CLUSTER = "Python models run in dbt's process; where Spark runs is said by the profile's 'method'"

ELSEWHERE = {
    "file_format": "every table is a Hudi table; leave 'file_format' out",
    "format": "it belongs to materialized 'external'; every table is a Hudi table",
    "table_format": "every table is a Hudi table; leave 'table_format' out",
    "location": f"it belongs to materialized 'external'; {_PLACE}",
    "location_root": _PLACE,
    "custom_location": _PLACE,
    "external_location": _PLACE,
    "s3_data_dir": _PLACE,
    "include_full_name_in_path": _PLACE,
    "tblproperties": _HUDI,
    "table_properties": _HUDI,
    "options": _HUDI,
    "hudi_options": _HUDI,
    "compression": _COMPRESSION,
    "write_compression": _COMPRESSION,
    "liquid_clustered_by": _ORDER,
    "auto_liquid_cluster": _ORDER,
    "zorder": _ORDER,
    "databricks_tags": "a warehouse directory has no tags; dbt's own are 'tags' and 'meta'",
    "databricks_compute": _CLUSTER,
    "http_path": _CLUSTER,
    "cluster_id": _CLUSTER,
    "job_cluster_config": _CLUSTER,
    "merge_with_schema_evolution": "did you mean 'on_schema_change'?",
    "clustered_by": _BUCKETS,
    "buckets": _BUCKETS,
    "bucketed_by": _BUCKETS,
    "bucket_count": _BUCKETS,
    "partitioned_by": "did you mean 'partition_by'?",
    "primary_key": "did you mean 'unique_key'?",
}
"""Configs of other adapters that get a specific message here."""

WITHOUT_EFFECT = ("sort", "sort_type", "dist", "bind", "unlogged", "transient", "cluster_by", "automatic_clustering", "backup", "indexes")
"""Storage hints of other adapters, accepted and ignored: projects for several platforms carry them, and they promise nothing."""

CONFIG_OF_OPTION = {
    "hoodie.datasource.write.recordkey.field": "unique_key",
    "hoodie.table.recordkey.fields": "unique_key",
    "hoodie.datasource.write.precombine.field": "ordering_fields",
    "hoodie.table.precombine.field": "ordering_fields",
    "hoodie.table.ordering.fields": "ordering_fields",
    "hoodie.datasource.write.partitionpath.field": "partition_by",
    "hoodie.table.partition.fields": "partition_by",
    "hoodie.datasource.write.hive_style_partitioning": "hive_style_partitioning",
    "hoodie.datasource.write.table.type": "table_type",
    "hoodie.table.type": "table_type",
    "hoodie.datasource.write.operation": "incremental_strategy",
    "hoodie.index.type": "index",
    "hoodie.table.name": "alias",
    "hoodie.table.version": "table_version",
    "hoodie.write.table.version": "table_version",
}
"""Hudi keys that a dbt config sets. Setting both would be a contradiction."""
