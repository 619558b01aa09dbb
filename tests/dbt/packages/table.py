"""The packages that are run, and what is known of them: docs/packages.md is made of this."""

from __future__ import annotations

from tests.dbt.packages import tpch
from tests.dbt.packages.lane import Known, Lane

NO_METRICS = ("--exclude", "path:models/metrics")
"""Of elementary's project without the models of rows that its pytest makes."""

NAMES_OF_TYPES = "the expected text has Postgres' names of types, `integer` and `text`; Spark's are `int` (`bigint` in a seed) and `string`"
SPARK_OF_UTILS = {
    "model.test_groupby": "Spark refuses `select *` with `group by 1, 2` (`STAR_GROUP_BY_POS`), which is all that this model does",
    "test.dbt_utils_equality_data_test_equality_floats_a_ref_data_test_equality_floats_b___8.951adb8669": (
        "seven digits and the eighth that differs, in a column of the type `float`: Spark's has 32 bits, in which both numbers are one"
    ),
}
AS_TABLES = {name: {"+materialized": "table"} for name in ("int_direct_relationships", "int_all_dag_relationships")}
"""As the package has them on Databricks: all else reads them, and as views each computes them again."""

BIGQUERYS_PARTITIONS = """partition_by = {
            'field': 'transaction_ts',
            'data_type': 'datetime',
            'granularity': 'day'
        },"""

KNOWN = (
    Known(Lane("dbt_utils", "dbt_utils"), SPARK_OF_UTILS),
    Known(
        Lane("dbt_utils with spark_utils", "dbt_utils", needs=("spark_utils",), dispatch={"dbt_utils": ("spark_utils",)}),
        {
            **SPARK_OF_UTILS,
            "model.test_get_relations_by_pattern": (
                "spark_utils writes `show table extended in <pattern>`, here `packages%`: Spark takes the name of a schema there"
            ),
        },
    ),
    Known(
        Lane(
            "audit_helper",
            "audit_helper",
            needs=("dbt_utils",),
            edits={"macros/unit_tests/struct_generation_macros.sql": ("'databricks'", "'lakehouse'")},
        ),
        {
            "unit_test.unit_compare_classify_struct.unit_compare_classify_struct_identical_values_different_order": (
                "a map keeps the order of its keys; of Databricks the package expects so, in `..._different_order_dbx`, which passes"
            ),
        },
    ),
    Known(Lane("dbt_date", "dbt_date")),
    Known(Lane("dbt_expectations", "dbt_expectations", needs=("dbt_date",))),
    Known(
        Lane(
            "codegen",
            "codegen",
            needs=("dbt_utils",),
            commands=(("run-operation", "create_source_table"), ("seed",), ("run",), ("test",)),
        ),
        {
            "test.test_generate_model_repeated_yaml": NAMES_OF_TYPES,
            "test.test_generate_model_yaml": NAMES_OF_TYPES,
            "test.test_generate_source_all_args": NAMES_OF_TYPES,
        },
    ),
    Known(
        Lane(
            "elementary",
            "elementary",
            "integration_tests/dbt_project",
            needs=("dbt_utils",),
            commands=(("seed",), ("run", *NO_METRICS), ("run", *NO_METRICS), ("test", *NO_METRICS)),
        ),
        {
            "test.elementary_exposure_schema_validity_orders_.d84ad832cf": (
                "it is there to fail: the exposure names a column `ZOMG`, which the model does not have"
            ),
        },
    ),
    Known(
        Lane(
            "dbt_artifacts",
            "dbt_artifacts",
            "integration_test_project",
            edits={"models/microbatch.sql": (BIGQUERYS_PARTITIONS, "partition_by = 'transaction_ts',")},
            commands=(("build",),),
        ),
        {"model.microbatch": "its batch of today has rows of the day before, and rows outside of their batch are refused"},
    ),
    Known(
        Lane(
            "dbt_project_evaluator",
            "dbt_project_evaluator",
            needs=("dbt_utils",),
            inner=("exclude_package",),
            settings={"vars": {"max_depth_dag": 9}, "models": {"dbt_project_evaluator": {"marts": {"core": AS_TABLES}}}},
            edits={"seeds/docs/docs_seeds.yml": ("'spark'", "'spark', 'lakehouse'")},
            commands=(("build",),),
        ),
        {
            "test.equality_fct_test_coverage.b49f5d7c41": (
                "it compares quotients with a seed of 32-bit numbers; for Databricks, DuckDB and Trino the package leaves these columns out"
            ),
        },
    ),
    Known(
        Lane(
            "automate_dv_demo with automate_dv",
            "automate_dv_demo",
            ".",
            needs=("automate_dv", "dbt_utils"),
            files=tpch.seeds(),
            edits={
                "models/schema.yml": (
                    "database: SNOWFLAKE_SAMPLE_DATA\n    schema: TPCH_SF{{ var('tpch_size', 10) }}",
                    'schema: "{{ target.schema }}"',
                ),
                "models/raw_stage/raw_transactions.sql": ("'YYYYMMDD')),  24, '0'))", "'yyyyMMdd')),  24, '0'), repeat('9', 24))"),
            },
            commands=(("seed",), ("run",), ("run",)),
        ),
    ),
)
