"""The clauses of a merge: rows of the model that are left out by what is stored, and stored rows that the model does not have."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, write_file

from tests.dbt.functional.test_increments import MERGE, Changing
from tests.dbt.functional.test_lakehouse import values

T, S = "DBT_INTERNAL_DEST", "DBT_INTERNAL_SOURCE"
FIRST = ("1, 1, 'a'", "2, 2, 'b'", "3, 3, 'c'", "4, null, null")
KINDS = ("cow", "mor")


class TestMergeClauses(Changing):
    def merged(self, project: Any, clauses: str, *rows: str, kind: str = "cow", first: tuple[str, ...] = FIRST) -> list[tuple[Any, ...]]:
        """What a merge of (id, v, s) leaves of the first rows; the response is kept in `answer`."""
        config = f"{MERGE}, table_type='{kind}', {clauses}"
        self.first(project, config, values("id, v, s", *first))
        assert len(self.rows(project)) == len(first)  # the clauses do not apply to a first build
        before = len(self.commits(project))
        self.write(project, config, values("id, v, s", *rows))
        self.answer = run_dbt(["run"]).results[0].adapter_response
        assert len(self.commits(project)) == before + 1
        return self.rows(project, "id, v, s")

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_stored_row_is_updated_where_the_condition_holds_and_a_new_one_added_where_its_own_does(self, project, kind):
        clauses = f'matched_condition="{S}.v > {T}.v", not_matched_condition="{S}.s <> \'no\'"'
        rows = ("1, 9, 'x'", "2, 1, 'x'", "4, 9, 'x'", "5, 9, 'no'", "6, 9, null", "7, 9, 'yes'")
        found = self.merged(project, clauses, *rows, kind=kind)
        assert found == [(1, 9, "x"), (2, 2, "b"), (3, 3, "c"), (4, None, None), (7, 9, "yes")]
        assert (self.answer["inserts"], self.answer["updates"], self.answer["deletes"]) == (1, 1, 0)
        assert self.answer["rows_affected"] == 2

    def test_steps_that_are_skipped(self, project):
        rows = ("1, 9, 'x'", "5, 9, 'x'")
        assert self.merged(project, "skip_matched_step=true", *rows)[0] == (1, 1, "a")
        assert self.rows(project, "id")[-1] == (5,)
        assert [row[0] for row in self.merged(project, "skip_not_matched_step=true", *rows)] == [1, 2, 3, 4]
        assert self.rows(project, "id, v, s")[0] == (1, 9, "x")
        both = "skip_matched_step=true, skip_not_matched_step=true, not_matched_by_source_action='delete'"
        assert self.merged(project, both, *rows) == [(1, 1, "a")]

    @pytest.mark.parametrize("kind", KINDS)
    def test_stored_rows_that_the_model_does_not_have_are_deleted_where_the_condition_holds(self, project, kind):
        clauses = f"not_matched_by_source_action='DELETE', not_matched_by_source_condition='{T}.v < 3'"
        found = self.merged(project, clauses, "1, 9, 'x'", "5, 9, 'x'", kind=kind)
        assert found == [(1, 9, "x"), (3, 3, "c"), (4, None, None), (5, 9, "x")]
        assert (self.answer["inserts"], self.answer["updates"], self.answer["deletes"]) == (1, 1, 1)
        assert self.merged(project, "not_matched_by_source_action='delete'", "1, 9, 'x'", kind=kind) == [(1, 9, "x")]

    @pytest.mark.parametrize("kind", KINDS)
    def test_stored_rows_that_the_model_does_not_have_are_updated(self, project, kind):
        action = f"update set {T}.s = 'gone', v = {T}.v * 10L"
        clauses = f"not_matched_by_source_action=\"{action}\", not_matched_by_source_condition='v is not null', merge_update_columns=['s']"
        found = self.merged(project, clauses, "1, 9, 'x'", "5, 9, 'new'", kind=kind)
        assert found == [(1, 1, "x"), (2, 20, "gone"), (3, 30, "gone"), (4, None, None), (5, 9, "new")]
        assert (self.answer["inserts"], self.answer["updates"]) == (1, 3)

    def test_late_rows_lose_and_the_ordering_field_may_only_grow(self, project):
        ordered = "ordering_fields='v', not_matched_by_source_action=\"update set s = 'gone', v = coalesce(v + 1, 0)\""
        found = self.merged(project, ordered, "1, 0, 'late'", "2, 9, 'new'", "2, 8, 'older'")
        assert found == [(1, 1, "a"), (2, 9, "new"), (3, 4, "gone"), (4, 0, "gone")]
        older = f"{MERGE}, ordering_fields='v', not_matched_by_source_action='update set v = v - 1'"
        self.write(project, older, values("id, v, s", "1, 5, 'x'"))
        assert "sets the ordering field 'v' to an older value in 3 row(s)" in self.fails()
        deleting = "ordering_fields='v', delete_condition=\"s = 'D'\", not_matched_by_source_action='delete'"
        assert self.merged(project, deleting, "1, 0, 'D'", "2, 9, 'D'", "3, 9, 'x'") == [(1, 1, "a"), (3, 9, "x")]

    def test_several_ordering_fields_are_compared_one_after_the_other(self, project):
        ordered = "table_version=9, ordering_fields=['v', 's'], not_matched_by_source_action=\"update set v = v + 1, s = ''\""
        found = self.merged(project, ordered, "1, 9, 'x'")
        assert found == [(1, 9, "x"), (2, 3, ""), (3, 4, ""), (4, None, "")]
        self.first(project, f"{MERGE}, {ordered}", values("id, v, s", *FIRST))
        self.write(project, f"{MERGE}, {ordered.replace('v + 1', 'v')}", values("id, v, s", "1, 9, 'x'"))
        assert "sets the ordering field 'v, s' to an older value in 2 row(s)" in self.fails()

    def test_a_deletion_is_a_matched_row_and_the_sides_may_have_other_names(self, project):
        clauses = "source_alias='s', target_alias='t', delete_condition=\"s.s = 'D'\", matched_condition='t.v < 2'"
        assert [row[0] for row in self.merged(project, clauses, "1, 9, 'D'", "2, 9, 'D'", "5, 9, 'D'")] == [2, 3, 4]
        predicates = "target_alias='t', matched_condition='t.v < 3', incremental_predicates=['t.v is not null']"
        assert self.merged(project, predicates, "1, 9, 'x'", "3, 9, 'x'")[0:3] == [(1, 9, "x"), (2, 2, "b"), (3, 3, "c")]
        self.write(project, f"{MERGE}, {predicates}", values("id, v, s", "4, 9, 'x'"))
        assert "stored where incremental_predicates" in self.fails()

    def test_a_record_is_a_key_in_its_partition_where_the_index_is_not_global(self, project):
        clauses = "partition_by='s', index='simple', not_matched_by_source_action='delete', matched_condition='false'"
        assert self.merged(project, clauses, "1, 9, 'a'", "2, 9, 'other'") == [(1, 1, "a"), (2, 9, "other")]

    @pytest.mark.parametrize("policy", ["append_new_columns", "sync_all_columns"])
    def test_columns_that_the_model_gains_and_leaves_out(self, project, policy):
        config = f"{MERGE}, on_schema_change='{policy}', not_matched_by_source_action=\"update set v = 0\""
        self.first(project, config, values("id, v, s", *FIRST[:2]))
        self.write(project, config, values("id, v, n", "1, 9, 7", "5, 9, 8"))
        self.run()
        assert self.rows(project, "id, v, n") == [(1, 9, 7), (2, 0, None), (5, 9, 8)]
        if policy == "append_new_columns":
            assert self.rows(project, "id, s") == [(1, "a"), (2, "b"), (5, None)]

    def test_an_audited_merge_is_repeated_on_the_table(self, project):
        config = f"{MERGE}, audit=true, not_matched_by_source_action='delete', matched_condition='{T}.v is null'"
        self.first(project, config, values("id, v, s", *FIRST))
        self.write(project, config, values("id, v, s", "1, 9, 'x'", "4, 9, 'x'"))
        self.run()
        assert self.rows(project, "id, v, s") == [(1, 1, "a"), (4, 9, "x")]

    def test_a_model_that_reads_its_own_table_is_merged_on_what_it_read(self, project):
        config = f"{MERGE}, on_schema_change='sync_all_columns', not_matched_by_source_action='delete'"
        self.first(project, config, values("id, v, s", *FIRST))
        self.write(project, config, "select id, v * 10 as v, 'new' as t from {{ this }} where v > 1")
        self.run()
        assert self.rows(project, "id, v, t") == [(2, 20, "new"), (3, 30, "new")]

    def test_a_mistaken_condition_is_found_by_the_first_build(self, project):
        project.run_sql(f"drop table if exists {project.test_schema}.m")
        for clause, said in (
            (f"matched_condition='{T}.nope > 1'", "nope"),
            ("matched_condition='v > 1'", "ambiguous"),
            (f"not_matched_condition='{T}.v > 1'", "v"),
            ("not_matched_by_source_action='update set nope = 1'", "'nope'"),
        ):
            self.write(project, f"{MERGE}, {clause}", values("id, v, s", *FIRST))
            assert said in self.fails()

    def test_a_contract_is_kept_by_rows_that_the_action_changes(self, project):
        contract = """
        models:
          - name: m
            config: {contract: {enforced: true}}
            columns:
              - {name: id, data_type: int}
              - {name: v, data_type: int, constraints: [{type: check, expression: "v >= 0"}]}
              - {name: s, data_type: string, constraints: [{type: unique}]}
        """
        write_file(contract, project.project_root, "models", "m.yml")
        config = f"{MERGE}, on_schema_change='append_new_columns', not_matched_by_source_action"
        self.first(project, f"{config}='delete'", values("id, v, s", *FIRST[:3]))
        for action, said in (("v = -v", "v >= 0"), ("s = 'one'", "unique")):
            self.write(project, f'{config}="update set {action}"', values("id, v, s", "1, 9, 'x'"))
            assert said in self.fails()
        self.write(project, f"{config}='delete'", values("id, v, s", "1, 9, 'b'"))
        self.run()
        assert self.rows(project, "id, v, s") == [(1, 9, "b")]
