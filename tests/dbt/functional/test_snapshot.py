"""dbt-tests-adapter: simple_snapshot."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.simple_snapshot import (
    new_record_check_mode,
    new_record_dbt_valid_to_current,
    new_record_timestamp_mode,
)
from dbt.tests.adapter.simple_snapshot import (
    test_ephemeral_snapshot_hard_deletes as hard_deletes,
)
from dbt.tests.adapter.simple_snapshot import (
    test_various_configs as various,
)
from dbt.tests.adapter.simple_snapshot.test_snapshot import BaseSimpleSnapshot, BaseSnapshotCheck

from tests.dbt.functional.spark_text import translated


class TestSimpleSnapshot(BaseSimpleSnapshot):
    def add_fact_column(self, column=None, definition=None):
        super().add_fact_column(column, "string")


class TestSnapshotCheck(BaseSnapshotCheck):
    pass


class TestSnapshotColumnNames(various.BaseSnapshotColumnNames):
    dialect = translated(various)


class TestSnapshotColumnNamesFromDbtProject(various.BaseSnapshotColumnNamesFromDbtProject):
    dialect = translated(various)


class TestSnapshotInvalidColumnNames(various.BaseSnapshotInvalidColumnNames):
    dialect = translated(various)


class TestSnapshotDbtValidToCurrent(various.BaseSnapshotDbtValidToCurrent):
    dialect = translated(various)


class TestSnapshotMultiUniqueKey(various.BaseSnapshotMultiUniqueKey):
    dialect = translated(various)


class AddColumn:
    @pytest.fixture(scope="class")
    def source_alter_sql(self):
        """A column's default would have to be written into rows that are stored; new columns are null in those."""
        return "alter table {schema}.src_customers add column dummy_column string"


class TestSnapshotEphemeralHardDeletes(AddColumn, hard_deletes.BaseSnapshotEphemeralHardDeletes):
    dialect = translated(hard_deletes)


class TestSnapshotNewColumnTimestampStrategy(AddColumn, hard_deletes.BaseSnapshotNewColumnTimestampStrategy):
    dialect = translated(hard_deletes)


class TestSnapshotNewColumnSpecificCheckCols(AddColumn, hard_deletes.BaseSnapshotNewColumnSpecificCheckCols):
    dialect = translated(hard_deletes)


class TestSnapshotNewColumnWithDeletes(AddColumn, hard_deletes.BaseSnapshotNewColumnWithDeletes):
    dialect = translated(hard_deletes)


class TestSnapshotNewRecordTimestampMode(new_record_timestamp_mode.BaseSnapshotNewRecordTimestampMode):
    dialect = translated(new_record_timestamp_mode)


class TestSnapshotNewRecordCheckMode(new_record_check_mode.BaseSnapshotNewRecordCheckMode):
    dialect = translated(new_record_check_mode, new_record_timestamp_mode)


class TestSnapshotNewRecordDbtValidToCurrent(new_record_dbt_valid_to_current.BaseSnapshotNewRecordDbtValidToCurrent):
    dialect = translated(new_record_dbt_valid_to_current)
