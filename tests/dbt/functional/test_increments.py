"""Later runs of a model whose columns, keys or conditions are not those of its table."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from dbt.tests.util import run_dbt, write_file

from tests.dbt.functional.test_lakehouse import Base, model, values

MERGE = "materialized='incremental', unique_key='id'"


class Changing(Base):
    """A model whose text changes between its runs."""

    MODEL = ""

    @pytest.fixture(scope="class")
    def models(self):
        return {"m.sql": "select 1 as id"}

    def write(self, project: Any, config: str, rows: str) -> None:
        write_file(model(config, rows), project.project_root, "models", "m.sql")

    def first(self, project: Any, config: str, rows: str) -> None:
        self.write(project, config, rows)
        self.run("--full-refresh")

    def fails(self) -> str:
        return str(run_dbt(["run"], expect_pass=False).results[0].message)

    def commits(self, project: Any) -> list[str]:
        return [one.requested_time for one in self.table(project).timeline.completed().writes().instants]


class TestColumnsThatAModelLeavesOut(Changing):
    @pytest.mark.parametrize("kind", ["cow", "mor"])
    def test_merge_keeps_what_is_stored_and_adds_new_rows_with_null(self, project, kind):
        config = f"{MERGE}, table_type='{kind}', on_schema_change='append_new_columns'"
        self.first(project, config, values("id, a, b", "1, 'x', 'kept'", "2, 'x', 'kept'"))
        self.write(project, config, values("id, a, c", "2, 'new', 7", "3, 'new', 8"))
        self.run()
        assert self.rows(project, "id, a, b, c") == [(1, "x", "kept", None), (2, "new", "kept", 7), (3, "new", None, 8)]

    def test_other_strategies_add_rows_with_null(self, project):
        config = "materialized='incremental', incremental_strategy='append', on_schema_change='append_new_columns'"
        self.first(project, config, values("id, b", "1, 'kept'"))
        self.write(project, config, "select 2 as id")
        self.run()
        config = "materialized='incremental', unique_key='id', incremental_strategy='delete+insert', on_schema_change='append_new_columns'"
        self.write(project, config, "select 2 as id")
        self.run()
        assert self.rows(project, "id, b") == [(1, "kept"), (2, None)]


class TestColumnsThatComeWithoutRows(Changing):
    """A run without news adds them nonetheless: other models read them."""

    @pytest.mark.parametrize("policy", ["append_new_columns", "sync_all_columns"])
    @pytest.mark.parametrize("strategy", ["merge", "append", "delete+insert", "insert_overwrite"])
    def test_an_empty_run(self, project, strategy, policy):
        key = "unique_key='id', " if strategy in ("merge", "delete+insert") else ""
        config = f"materialized='incremental', {key}incremental_strategy='{strategy}', on_schema_change='{policy}'"
        if strategy == "insert_overwrite":
            config += ", partition_by='day'"
        self.first(project, config, values("id, day", "1, 'a'"))
        self.write(project, config, "select 2 as id, 'b' as day, 7 as more where 1 = 0")
        self.run()
        assert self.rows(project, "id, day, more") == [(1, "a", None)]

    def test_a_run_of_late_rows(self, project):
        config = f"{MERGE}, ordering_fields=['at'], on_schema_change='append_new_columns'"
        self.first(project, config, values("id, at", "1, 5"))
        self.write(project, config, values("id, at, more", "1, 4, 'late'"))
        self.run()
        assert self.rows(project, "id, at, more") == [(1, 5, None)]


class TestTypesThatATableStoresOtherwise(Changing):
    """TINYINT and SMALLINT are INT in every table, and texts have no collation: that is no change of the model's."""

    NARROW = "select {} as id, cast(2 as smallint) as a, named_struct('t', cast(3 as tinyint)) as b, 'x' collate utf8_lcase as c"

    @pytest.mark.parametrize("policy", ["sync_all_columns", "fail"])
    def test_a_later_run_is_one_commit_of_its_rows(self, project, policy):
        config = f"{MERGE}, on_schema_change='{policy}'"
        self.first(project, config, self.NARROW.format(1))
        before = self.commits(project)
        self.write(project, config, self.NARROW.format(2))
        self.run()
        assert len(self.commits(project)) == len(before) + 1
        assert self.rows(project, "id, a, b.t, c") == [(1, 2, 3, "x"), (2, 2, 3, "x")]


class TestSyncAllColumnsOfAModelThatFails(Changing):
    SYNC = f"{MERGE}, on_schema_change='sync_all_columns'"

    @pytest.mark.parametrize(
        ("config", "rows", "message"),
        [
            (SYNC, "select id, raise_error('no rows today') as a from values (1), (2) as t(id)", "no rows today"),
            (f"{SYNC}, on_duplicate_source_keys='error'", values("id, a", "1, 'x'", "1, 'y'"), "have a key that another row has too"),
        ],
        ids=["in its query", "when it is written"],
    )
    def test_the_table_is_as_it_was(self, project, config, rows, message):
        self.first(project, self.SYNC, values("id, a, b", "1, 'x', 'kept'"))
        before = self.commits(project)
        self.write(project, config, rows)
        assert message in self.fails()
        assert self.rows(project, "id, a, b") == [(1, "x", "kept")]
        assert self.commits(project) == before

    def test_a_model_that_works_drops_and_retypes_columns(self, project):
        self.first(project, self.SYNC, values("id, a, b", "1, 5, 'gone'"))
        self.write(project, self.SYNC, values("id, a", "2, 'text'"))
        self.run()
        assert self.rows(project) == [(1, "5"), (2, "text")]

    def test_an_empty_table_takes_the_columns_of_the_model(self, project):
        self.first(project, self.SYNC, values("id, a, b", "1, 5, 'gone'") + " where false")
        self.write(project, self.SYNC, values("id, a", "2, 'text'"))
        self.run()
        assert self.rows(project) == [(2, "text")]


class TestDuplicateKeysOfAFirstBuild(Changing):
    def test_one_row_a_key_stays_or_they_are_an_error(self, project):
        self.first(project, MERGE, values("id, a", "1, 'x'", "1, 'y'", "2, 'z'"))
        assert [row[0] for row in self.rows(project, "id")] == [1, 2]
        self.write(project, f"{MERGE}, on_duplicate_source_keys='error'", values("id, a", "1, 'x'", "1, 'y'"))
        result = run_dbt(["run", "--full-refresh"], expect_pass=False).results[0]
        assert "have a key that another row has too" in result.message
        assert [row[0] for row in self.rows(project, "id")] == [1, 2]


class TestChangedOrderingFields(Changing):
    def test_an_increment_is_refused_and_a_full_refresh_builds_the_table_anew(self, project):
        self.first(project, f"{MERGE}, ordering_fields='a'", values("id, a, b", "1, 5, 1"))
        self.write(project, f"{MERGE}, ordering_fields='b'", values("id, a, b", "1, 4, 2"))
        assert "ordering_fields is ['b'] but the table was built with ['a']" in self.fails()
        assert self.rows(project) == [(1, 5, 1)]
        self.run("--full-refresh")
        assert self.table(project).config.ordering_fields == ("b",)
        assert self.rows(project) == [(1, 4, 2)]


class TestSeveralOrderingFields(Changing):
    @pytest.mark.parametrize("config", ["table_type='cow'", "table_type='mor'", "table_type='mor', deletes='soft'"])
    def test_rows_that_are_equal_in_the_first_are_told_apart_by_the_second(self, project, config):
        merge = f"{MERGE}, table_version=9, ordering_fields=['a', 'b'], {config}"
        self.first(project, merge, values("id, a, b, v", "1, 5, 1, 'kept'", "2, 5, 1, 'old'", "3, 5, 1, 'kept'"))
        assert self.table(project).config.ordering_fields == ("a", "b")
        self.write(project, merge, values("id, a, b, v", "1, 5, 0, 'late'", "2, 5, 2, 'new'", "3, 4, 9, 'late'"))
        self.run()
        assert self.rows(project, "id, v") == [(1, "kept"), (2, "new"), (3, "kept")]


class TestMergeWithPredicates(Changing):
    CONFIG = MERGE + ", incremental_predicates=['DBT_INTERNAL_DEST.day >= 20', 'locked = false']"

    def test_rows_inside_are_merged_and_one_stored_outside_is_refused(self, project):
        self.first(project, self.CONFIG, values("id, day, locked, a", "1, 10, false, 'x'", "2, 20, false, 'x'", "3, 30, true, 'x'"))
        self.write(project, self.CONFIG, values("id, day, locked, a", "2, 25, true, 'new'", "4, 1, true, 'new'"))
        self.run()
        stored = [(1, 10, False, "x"), (2, 25, True, "new"), (3, 30, True, "x"), (4, 1, True, "new")]
        assert self.rows(project) == stored
        for key in (1, 3):
            self.write(project, self.CONFIG, values("id, day, locked, a", f"{key}, 40, false, 'no'", "5, 40, false, 'no'"))
            message = self.fails()
            assert "1 row(s) have a key that is stored where incremental_predicates" in message
            assert f"{{{key}}}" in message
            assert self.rows(project) == stored


class TestTablesWithGeneratedColumns(Changing):
    """Made outside: models leave the columns out, which every write computes."""

    STRATEGIES: ClassVar[dict[str, str]] = {
        "append": "materialized='incremental', incremental_strategy='append', on_schema_change='fail'",
        "merge": f"{MERGE}, on_schema_change='fail'",
        "some columns": f"{MERGE}, merge_exclude_columns=['v'], on_schema_change='append_new_columns'",
        "delete+insert": "materialized='incremental', unique_key='id', incremental_strategy='delete+insert', on_schema_change='ignore'",
        "insert_overwrite": "materialized='incremental', incremental_strategy='insert_overwrite', partition_by='day'",
        "sync": f"{MERGE}, on_schema_change='sync_all_columns'",
        "replace_where": "materialized='incremental', incremental_strategy='replace_where', incremental_predicates=['day is not null']",
        "table": "materialized='table'",
        "audited": f"{MERGE}, audit=true",
    }

    def made(self, project: Any, config: str) -> None:
        key = "primaryKey = 'id'" if config.startswith(MERGE) and "incremental_strategy" not in config else "type = 'cow'"
        partitioned = "partitioned by (day)" if "partition_by" in config else ""
        project.run_sql(f"drop table if exists {project.test_schema}.m")
        project.run_sql(
            f"create table {project.test_schema}.m (id int, at string, v int, day date generated always as (cast(left(at, 10) as date)),"
            f" twice int generated always as (v * 2)) {partitioned} tblproperties ({key})"
        )

    def put(self, project: Any, strategy: str, text: str) -> None:
        self.write(project, self.STRATEGIES[strategy], text)
        self.run()

    @pytest.mark.parametrize("strategy", STRATEGIES)
    def test_they_are_computed(self, project, strategy):
        self.made(project, self.STRATEGIES[strategy])
        self.put(project, strategy, "select 1 as id, '2024-01-01 x' as at, 5 as v")
        wide = "" if "'fail'" in self.STRATEGIES[strategy] else "L"
        self.put(project, strategy, f"select 2{wide} as id, '2024-01-02 x' as at, 6 as v")
        stored = self.rows(project, "id, string(day), twice")
        second = (2, "2024-01-02", 12)
        assert stored == ([second] if strategy in ("table", "replace_where") else [(1, "2024-01-01", 10), second])
        assert [one.column for one in self.table(project).config.constraints.generated] == ["day", "twice"]
        before = self.commits(project)
        self.write(project, self.STRATEGIES[strategy], "select 3 as id, '2024-01-03 x' as at, 7 as v, 15 as twice")
        assert "the column 'twice' is GENERATED ALWAYS AS (v * 2), and a row gives it another value" in self.fails()
        assert self.commits(project) == before

    def test_columns_that_a_merge_does_not_update_keep_theirs(self, project):
        self.made(project, self.STRATEGIES["some columns"])
        self.put(project, "some columns", "select 1 as id, '2024-01-01 x' as at, 5 as v")
        self.put(project, "some columns", "select 1 as id, '2024-01-02 x' as at, 9 as v")
        assert self.rows(project, "id, at, v, string(day), twice") == [(1, "2024-01-02 x", 5, "2024-01-02", 10)]
        self.write(project, self.STRATEGIES["sync"], "select 1 as id, 9 as v")
        assert "'day' is GENERATED ALWAYS AS (cast(left(at, 10) as date)), and the rows do not have 'at'" in self.fails()


class TestDeletionsOfARecord(Changing):
    """With an index that is not global a record is a key in its partition: a deletion is of that one alone."""

    @pytest.mark.parametrize(("index", "kind"), [("simple", "cow"), ("bloom", "mor"), ("auto", "cow")])
    def test_rows_of_the_key_in_other_partitions_stay(self, project, index, kind):
        config = f"{MERGE}, partition_by='day', index='{index}', table_type='{kind}', ordering_fields='ts', delete_condition=\"op = 'D'\""
        both = values("id, day, ts, op", "1, 'd1', 9, 'D'", "1, 'd2', 5, 'I'")
        self.first(project, config, values("id, day, ts, op", "1, 'd1', 1, 'I'", "2, 'd1', 1, 'I'"))
        self.write(project, config, both)
        self.run()
        elsewhere = [] if index == "auto" else [(1, "d2")]
        assert self.rows(project, "id, day") == [*elsewhere, (2, "d1")]
        self.run("--full-refresh")
        assert self.rows(project, "id, day") == elsewhere
        project.run_sql(f"drop table {project.test_schema}.m")
        self.run()
        assert self.rows(project, "id, day") == elsewhere


class TestMembersOfStructs(Changing):
    """Members are met by name, not by place: also in lists and maps."""

    SYNC, APPEND = (f"{MERGE}, on_schema_change='{policy}'" for policy in ("sync_all_columns", "append_new_columns"))

    def twice(self, project: Any, config: str, first: str, later: str, columns: str) -> list[Any]:
        """What of `n` is stored once a second row has come."""
        self.first(project, config, f"select 1 as id, {first} as n")
        self.write(project, config, f"select 2 as id, {later} as n")
        self.run()
        return [row[1:] for row in self.rows(project, f"id, {columns}")]

    @pytest.mark.parametrize(
        ("first", "later", "columns", "found"),
        [
            ("named_struct('a', 1, 'b', 2)", "named_struct('b', 20, 'A', 10)", "n.a, n.b", [(1, 2), (10, 20)]),
            ("named_struct('s', 'x', 'c', 1)", "named_struct('s', 'y', 'l', 'I')", "to_json(n)", [('{"s":"x"}',), ('{"s":"y","l":"I"}',)]),
            ("named_struct('a', 1, 'b', 2)", "named_struct('a', 3)", "to_json(n)", [('{"a":1}',), ('{"a":3}',)]),
            ("named_struct('a', 1, 'b', 2)", "named_struct('c', 5, 'b', 'x', 'a', 3)", "n.c, n.b, n.a", [(None, "2", 1), (5, "x", 3)]),
            ("array(named_struct('a', 1, 'b', 2))", "array(named_struct('b', 20L, 'a', 10))", "n.a, n.b", [([1], [2]), ([10], [20])]),
            (
                "map('k', named_struct('a', 1, 'b', array(named_struct('x', 1, 'y', 2))))",
                "map('k', named_struct('b', array(named_struct('z', 3, 'y', 'new')), 'a', 10))",
                "n['k'].a, to_json(n['k'].b)",
                [(1, '[{"y":"2"}]'), (10, '[{"y":"new","z":3}]')],
            ),
        ],
        ids=["order", "renamed", "dropped", "all at once", "in a list", "in a map"],
    )
    def test_sync_all_columns_gives_stored_rows_the_models_members(self, project, first, later, columns, found):
        assert self.twice(project, self.SYNC, first, later, columns) == found

    @pytest.mark.parametrize("kind", ["cow", "mor"])
    @pytest.mark.parametrize("more", ["", "5 as z, "])
    def test_new_members_come_and_missing_ones_are_null(self, project, kind, more):
        config = f"{self.APPEND}, table_type='{kind}'"
        self.first(project, config, "select 1 as id, named_struct('a', 1, 'b', 2) as n")
        self.write(project, config, f"select 2 as id, {more}named_struct('c', 3, 'A', 4L) as n")
        self.run()
        assert self.rows(project, "id, n.a, n.b, n.c") == [(1, 1, 2, None), (2, 4, None, 3)]

    def test_other_members_are_other_columns_where_those_fail(self, project):
        config = f"{MERGE}, on_schema_change='fail'"
        assert self.twice(project, config, "named_struct('a', 1, 'b', 2)", "named_struct('b', 3, 'a', 4)", "n.a, n.b") == [(1, 2), (4, 3)]
        self.write(project, config, "select 3 as id, named_struct('a', 1) as n")
        assert "Other types: n struct<a:int,b:int> -> struct<a:int>" in self.fails()

    def test_a_table_is_not_written_anew_for_an_order_or_for_new_members(self, project):
        self.first(project, self.SYNC, "select 1 as id, named_struct('a', 1, 'b', 2) as n")
        for later in ("named_struct('b', 3, 'a', 4)", "named_struct('c', 3, 'b', 3, 'a', 4)"):
            before = len(self.commits(project))
            self.write(project, self.SYNC, f"select 2 as id, {later} as n")
            self.run()
            assert len(self.commits(project)) == before + 1
