"""Tests that every run of a lane has, however little time it is given: each action, table type, storage and strategy once.

Names of tests begin with these; a test that is not here is run when it is near a change, or in its turn.
"""

from __future__ import annotations

SMOKE = (
    # The project itself.
    "tests/test_architecture.py",
    "tests/test_order.py",
    "tests/test_packaging.py",
    "tests/test_readme.py",
    "tests/test_selection.py",
    # Every action of both table types dies before each of its calls, and the table is whole.
    "tests/crash/test_crash_points.py::test_action_survives_a_fault_at_every_call[crash before",
    "tests/crash/test_crash_points.py::test_create_table_is_there_or_not",
    "tests/histories/test_histories.py::test_what_was_acknowledged_is_there_and_readers_see_whole_commits[mixed-mor-version-9]",
    # Every storage keeps the same promises.
    "tests/contracts/test_storage.py",
    # Random histories equal a model of them.
    "tests/model_based/test_table_model.py::test_random_histories_equal_the_model_after_each_step[0]",
    "tests/model_based/test_cow_model.py",
    # Others read what we write, in every kind of table.
    "tests/conformance/test_hudi_rs_reads_ours.py::test_a_history_of_every_operation_reads_the_same",
    "tests/conformance/test_hudi_rs_reads_our_logs.py::test_hudi_rs_reads_the_same_after_each_commit",
    "tests/interop/test_hudi_reads_ours.py::test_hudi_and_we_read_the_same_rows[1.2.0",
    "tests/interop/test_hudi_continues_ours.py::test_hudi_takes_our_table_through_everything[1.2.0",
    "tests/interop/test_hudi_continues_our_logs.py::test_hudi_takes_our_logs_through_everything[1.2.0",
    "tests/interop/test_compaction.py::test_hudi_carries_out_our_plan[1.2.0",
    "tests/interop/test_later_versions.py::test_hudi_and_we_write_one_table_in_turns",
    # We read what Hudi wrote.
    "tests/conformance/test_read_fixtures.py::test_a_reading_has_the_rows_that_hudi_reads",
    "tests/conformance/test_mor_fixtures.py::test_a_reading_has_the_rows_that_hudi_reads",
    "tests/conformance/test_read_v8_fixtures.py::test_a_reading_has_the_rows_that_hudi_reads",
    "tests/unit/write/test_table_version.py",
    # SQL and DataFrames.
    "tests/spark/test_sql_statements.py",
    "tests/spark/test_dataframes.py",
    "tests/spark/test_merge_on_read.py",
    # Every strategy of dbt.
    "tests/dbt/functional/test_lakehouse.py::TestMergeByKeyAndOrdering",
    "tests/dbt/functional/test_lakehouse.py::TestInsertOverwritePartitions",
    "tests/dbt/functional/test_lakehouse.py::TestReplaceWhere",
    "tests/dbt/functional/test_lakehouse.py::TestPythonModel",
    "tests/dbt/functional/test_hudi_strategies.py::TestHudiStrategies",
    "tests/dbt/functional/test_incremental.py::TestPredicatesDeleteInsert",
    "tests/dbt/functional/test_incremental.py::TestMicrobatch",
    "tests/dbt/functional/test_snapshot.py::TestSimpleSnapshot",
    "tests/dbt/functional/test_basic.py::TestSimpleMaterializations",
    "tests/dbt/functional/test_seeds.py::TestBasicSeedTests",
    "tests/dbt/functional/test_materialized_views.py::TestMaterializedViews",
    "tests/dbt/functional/test_bringing_back.py::TestProtectedRun",
    # A bucket, a cluster, a Spark Connect server.
    "tests/object_store/test_contract.py",
    "tests/object_store/test_tables.py",
    "tests/object_store/test_storage_lock.py",
    "tests/cluster/test_operations.py::test_statements_of_sql_change_and_read_tables",
    "tests/connect/test_sessions.py",
)


def is_smoke(nodeid: str) -> bool:
    return nodeid.startswith(SMOKE)
