"""dbt-tests-adapter: simple_snapshot."""

from __future__ import annotations

from typing import Any, ClassVar

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
from dbt.tests.util import run_dbt

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


class TestRowsThatComeBack:
    """dbt names a version by key and `updated_at`: a row that was deleted and comes back as it was has the id of a version that ended."""

    ROWS = "select * from values {{ var('rows') }} as t(id, v, at)"
    BOTH = "(1, 'a', timestamp'2024-01-01'), (2, 'b', timestamp'2024-01-01')"
    ONE = "(1, 'a', timestamp'2024-01-01')"

    @pytest.fixture(scope="class")
    def models(self):
        return {"source_rows.sql": self.ROWS}

    @pytest.fixture(scope="class")
    def snapshots(self):
        config = "unique_key='id', strategy='timestamp', updated_at='at', table_type='KIND', hard_deletes='DELETES'"
        text = "{% snapshot KIND_DELETES %}{{ config(" + config + ") }} select * from {{ ref('source_rows') }}{% endsnapshot %}"
        return {
            f"{kind}_{deletes}.sql": text.replace("KIND", kind).replace("DELETES", deletes)
            for kind in ("cow", "mor")
            for deletes in ("invalidate", "new_record")
        }

    def versions(self, project: Any, name: str) -> list[tuple[Any, ...]]:
        text = f"select v, dbt_valid_to is null, dbt_scd_id from {project.test_schema}.{name} where id = 2 order by 2, 3"
        return list(project.run_sql(text, fetch="all"))

    def test_they_are_versions_of_their_own_each_time(self, project):
        for rows in (self.BOTH, self.ONE, self.BOTH, self.BOTH, self.ONE, self.BOTH, self.BOTH):
            run_dbt(["build", "--vars", str({"rows": rows})])
        for kind in ("cow", "mor"):
            for deletes, many in (("invalidate", 3), ("new_record", 5)):
                found = self.versions(project, f"{kind}_{deletes}")
                assert [(v, is_open) for v, is_open, _ in found] == [("b", False)] * (many - 1) + [("b", True)]
                assert len({scd_id for _, _, scd_id in found}) == many


class TestVersionsEndWhereTheyAreStored:
    """Of a key unique in its partition only, or with an ordering field: dbt stages what ends with the source's values, or with nulls."""

    ROWS = "select * from values {{ var('rows') }} as t(id, v, day, at)"
    FIRST = "(1, 'a', 'd1', 5), (2, 'b', 'd1', 5), (3, 'c', 'd1', 5), (4, 'd', 'd1', null)"
    LATER = "(1, 'A', 'd2', 2), (3, 'c', 'd1', 5), (4, 'D', 'd1', null)"
    KINDS: ClassVar = {
        "simple": "partition_by='day', index='simple', hard_deletes='invalidate'",
        "bloom": "partition_by='day', index='bloom', table_type='mor', hard_deletes='new_record'",
        "bucket": "partition_by='day', index='bucket', hoodie={'hoodie.bucket.index.num.buckets': 2}, hard_deletes='invalidate'",
        "ordered": "ordering_fields='at', hard_deletes='invalidate', dbt_valid_to_current=\"timestamp'9999-12-31'\"",
        "ordered_mor": "ordering_fields='at', table_type='mor', partition_by='day', index='simple', hard_deletes='new_record'",
    }

    @pytest.fixture(scope="class")
    def models(self):
        return {"source_rows.sql": self.ROWS}

    @pytest.fixture(scope="class")
    def snapshots(self):
        text = "{% snapshot NAME %}{{ config(unique_key='id', strategy='check', check_cols=['v'], KIND) }}"
        text += "select * from {{ ref('source_rows') }}{% endsnapshot %}"
        return {f"{name}.sql": text.replace("NAME", name).replace("KIND", kind) for name, kind in self.KINDS.items()}

    def test_each_version_ends_once_and_stays_as_it_is(self, project):
        for rows in (self.FIRST, self.LATER, self.LATER):
            run_dbt(["build", "--vars", str({"rows": rows})])
        kept = [(1, "A", "d2", 2, True), (1, "a", "d1", 5, False), (2, "b", "d1", 5, False), (3, "c", "d1", 5, True)]
        kept += [(4, "D", "d1", None, True), (4, "d", "d1", None, False)]
        for name, config in self.KINDS.items():
            is_open = "coalesce(dbt_valid_to, timestamp'9999-12-31') = timestamp'9999-12-31'"
            found = project.run_sql(f"select id, v, day, at, {is_open} from {project.test_schema}.{name}", fetch="all")
            deletion = [(2, "b", "d1", 5, True)] if "new_record" in config else []
            assert sorted(found, key=str) == sorted(kept + deletion, key=str), name


class TestMembersOfStructs:
    """Spark compares structs, and unites them, by the places of their members; dbt's own queries of a snapshot do both."""

    ROWS = (
        "(1, timestamp'2026-01-01', struct(1 as a, 2 as b)), (2, timestamp'2026-01-01', struct(1 as a, 2 as b))",
        "(1, timestamp'2026-01-02', struct(1 as b, 2 as a))",
        "(1, timestamp'2026-01-03', struct(1 as b, 2 as c))",
    )

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        choice = "{{ [" + ", ".join(f'"{rows}"' for rows in self.ROWS) + "][var('run')] }}"
        return {"src.sql": "{{ config(materialized='table') }} select * from values " + choice + " as t (id, changed, s)"}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        kinds = {
            "deleted": "strategy='timestamp', updated_at='changed', hard_deletes='new_record'",
            "compared": "strategy='check', check_cols=['s']",
        }
        return {
            f"{name}.sql": f"{{% snapshot {name} %}} {{{{ config(unique_key='id', {kind}) }}}}"
            " select * from {{ ref('src') }} -- all of them\n{% endsnapshot %}"
            for name, kind in kinds.items()
        }

    def test_they_are_met_by_their_names(self, project: Any) -> None:
        for run in (0, 1):
            run_dbt(["build", "--vars", f"{{run: {run}}}"])
        newest = "from {schema}.deleted where dbt_valid_to is null order by id"
        found = project.run_sql(f"select id, s.a, s.b, dbt_is_deleted {newest}", fetch="all")
        assert [tuple(row) for row in found] == [(1, 2, 1, "False"), (2, 1, 2, "True")]
        found = project.run_sql("select s.a, s.b from {schema}.compared where id = 1 order by dbt_valid_from", fetch="all")
        assert [tuple(row) for row in found] == [(1, 2), (2, 1)]
        results = {result.node.name: result.message for result in run_dbt(["build", "--vars", "{run: 2}"], expect_pass=False)}
        assert "s has members that the table does not have" in results["deleted"]
