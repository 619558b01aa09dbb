"""The names of configs: this adapter's own, dbt's, those of other adapters, and the Hudi keys that a config speaks for."""

from __future__ import annotations

from dbt.adapters.lakehouse.config.clauses import CLAUSE_KEYS
from dbt.adapters.lakehouse.config.service_config import SERVICES, SERVICES_LATER

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
    "on_duplicate_source_keys",
    "index",
    "audit",
    "table_version",
    "hoodie",
    *SERVICES,
    *SERVICES_LATER,
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
"""Configs that dbt itself reads although its config classes do not list them for every node type."""

ELSEWHERE = {
    "file_format": "every table is a Hudi table; leave 'file_format' out",
    "location_root": "tables live in the profile's 'warehouse'",
    "custom_location": "tables live in the profile's 'warehouse'",
    "tblproperties": "Hudi's own settings go under 'hoodie'",
    "options": "Hudi's own settings go under 'hoodie'",
    "location": "it belongs to materialized 'external'; tables live in the profile's 'warehouse'",
    "format": "it belongs to materialized 'external'; every table is a Hudi table",
    "hudi_options": "Hudi's own settings go under 'hoodie'",
    "clustered_by": "bucketing is Hudi's bucket index: index 'bucket', with 'hoodie.bucket.index.num.buckets' under 'hoodie'",
    "buckets": "bucketing is Hudi's bucket index: index 'bucket', with 'hoodie.bucket.index.num.buckets' under 'hoodie'",
    "partitioned_by": "did you mean 'partition_by'?",
    "primary_key": "did you mean 'unique_key'?",
    "merge_with_schema_evolution": "new columns are added by on_schema_change 'append_new_columns'",
}
"""Configs of other adapters that have an answer of their own here."""

WITHOUT_EFFECT = ("sort", "sort_type", "dist", "bind", "unlogged", "transient", "cluster_by", "automatic_clustering", "backup", "indexes")
"""Hints of other adapters about how a table is stored: a project that runs on several platforms carries them, and they promise nothing."""

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
"""Hudi keys that a dbt config speaks for; given twice they would contradict each other."""
