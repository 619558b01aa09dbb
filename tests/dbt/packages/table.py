"""The packages that are run, and what is known of them: docs/packages.md is made of this."""

from __future__ import annotations

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
        Lane("dbt_artifacts", "dbt_artifacts", "integration_test_project", commands=(("build",),)),
        {"model.microbatch": "its `partition_by` is BigQuery's mapping, for every adapter; here it is a column or a list of columns"},
    ),
)
