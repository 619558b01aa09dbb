"""What merges and builds make of late rows, of keys with a null, and of rows that say that they are deletions."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from dbt.tests.util import run_dbt

from lakehouse_engine.table import HoodieTable

INCREMENTAL = "materialized='incremental', "
MERGED = INCREMENTAL + "unique_key='id', ordering_fields='ts', "
PAYLOAD = "'hoodie.datasource.write.payload.class': 'org.apache.hudi.common.model.AWSDmsAvroPayload'"
MARKER = "'hoodie.payload.delete.field': 'mark', 'hoodie.payload.delete.marker': 'gone'"


class TestMerging:
    """Three runs, with events at 1, 10 and 5; then a full refresh."""

    LATE: ClassVar = {
        "late_cow": MERGED + "merge_exclude_columns=['ts', 'kept']",
        "late_mor": MERGED + "merge_update_columns=['v'], table_type='mor'",
    }
    EVENTS = "select 1 as id, {{ [\"'first', 1, 'a'\", \"'newest', 10, 'b'\", \"'late', 5, 'c'\"][var('run')] }}"
    NULL_KEYS = "select * from values ('y', cast(null as int), 1), ('z', 2, 1), (cast(null as string), 3, 1) as t(a, b, n)"
    MARKED: ClassVar = {
        "marked_cow": (MERGED, "_hoodie_is_deleted"),
        "marked_mor": (MERGED + "table_type='mor'", "_hoodie_is_deleted"),
        "marked_op": (MERGED + f"hoodie={{{PAYLOAD}}}", "Op"),
        "marked_by_marker": (MERGED + f"hoodie={{{MARKER}}}", "mark"),
        "marked_table": ("materialized='table', unique_key='id'", "_hoodie_is_deleted"),
        "marked_keyless": ("materialized='table'", "_hoodie_is_deleted"),
        "marked_appended": (INCREMENTAL + "incremental_strategy='append'", "_hoodie_is_deleted"),
        "marked_overwritten": (INCREMENTAL + "incremental_strategy='insert_overwrite', partition_by='v'", "_hoodie_is_deleted"),
    }
    MARKS: ClassVar = {"_hoodie_is_deleted": ("false", "true"), "Op": ("'I'", "'D'"), "mark": ("''", "'gone'")}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        found = {
            f"{name}.sql": f"{{{{ config({config}) }}}} select id, v, ts, kept from ({self.EVENTS}) as t(id, v, ts, kept)"
            for name, config in self.LATE.items()
        }
        replaced = INCREMENTAL + "incremental_strategy='delete+insert', unique_key=['a', 'b']"
        found["null_keys.sql"] = f"{{{{ config({replaced}) }}}} {self.NULL_KEYS}"
        for name, (config, column) in self.MARKED.items():
            live, gone = self.MARKS[column]
            rows = f"select 1 as id, 'a' as v, 1 as ts, {live} as {column} union all select 9, 'gone', 1, {gone}"
            found[f"{name}.sql"] = f"{{{{ config({config}) }}}} {rows}"
        return found

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        text = "{% snapshot NAME %}{{ config(strategy='check', check_cols=['n'], KEY) }}" + self.NULL_KEYS + "{% endsnapshot %}"
        keys = {"nulls_of_one": "unique_key='b'", "nulls_of_two": "unique_key=['a', 'b'], hard_deletes='new_record'"}
        return {f"{name}.sql": text.replace("NAME", name).replace("KEY", key) for name, key in keys.items()}

    @pytest.fixture(scope="class")
    def runs(self, project: Any) -> Any:
        for run in (0, 1, 2):
            run_dbt(["build", "--vars", f"run: {run}"])
        return project

    def rows(self, project: Any, name: str, *columns: str) -> list[tuple[Any, ...]]:
        table = HoodieTable.open(f"{project.adapter.config.credentials.warehouse}/{project.test_schema}/{name}")
        return sorted((tuple(row.values()) for row in table.to_arrow(list(columns)).to_pylist()), key=str)

    @pytest.mark.parametrize("name", LATE)
    def test_a_late_row_loses_whatever_columns_the_merge_is_of(self, runs: Any, name: str) -> None:
        assert self.rows(runs, name, "id", "v", "ts", "kept") == [(1, "newest", 10, "a")]

    @pytest.mark.parametrize("name", ["null_keys", "nulls_of_one", "nulls_of_two"])
    def test_keys_with_a_null_are_found_again(self, runs: Any, name: str) -> None:
        assert self.rows(runs, name, "a", "b", "n") == [("y", None, 1), ("z", 2, 1), (None, 3, 1)]

    @pytest.mark.parametrize("name", MARKED)
    def test_builds_from_nothing_leave_out_what_increments_do(self, runs: Any, name: str) -> None:
        many = 3 if name == "marked_appended" else 1
        assert self.rows(runs, name, "id", "v") == [(1, "a")] * many

    def test_full_refreshes_do_too(self, runs: Any) -> None:
        run_dbt(["run", "--full-refresh", "--select", *self.MARKED])
        assert [self.rows(runs, name, "id", "v") for name in self.MARKED] == [[(1, "a")]] * len(self.MARKED)


class TestSoftDeletes:
    """Events out of order, in four runs: a deletion at 20 is followed by an update at 15, and by one at 30."""

    EVENTS: ClassVar = (
        "(1, 'I', 10, 'a'), (2, 'I', 10, 'b'), (9, 'D', 10, null), (1, 'D', 5, null)",
        "(1, 'D', 20, null)",
        "(1, 'U', 15, 'late'), (9, 'U', 5, 'late')",
        "(1, 'U', 30, 'back')",
    )
    SOFT = MERGED + "deletes='soft', delete_condition=\"DBT_INTERNAL_SOURCE.op = 'D'\", "
    MODELS: ClassVar = {
        "cow": SOFT + "on_schema_change='sync_all_columns'",
        "mor": SOFT + "table_type='mor', merge_exclude_columns=['ts']",
        "turned": MERGED + "deletes=('soft' if var('run') else 'hard'), delete_condition=\"op = 'D'\"",
    }

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        extra, events = "{% if var('run') != 2 %}, 1 as extra{% endif %}", ", ".join(f'"{one}"' for one in self.EVENTS)
        rows = f"select id, op, ts, string(v) as v{extra} from values {{{{ [{events}][var('run')] }}}} as t(id, op, ts, v)"
        found = {f"{name}.sql": f"{{{{ config({config}) }}}} {rows}" for name, config in self.MODELS.items()}
        found |= {name: text.replace(extra, "") for name, text in found.items() if name != "cow.sql"}
        table = "{{ config(materialized='table') }} "
        found["seen.sql"] = table + "select id, v from {{ ref('cow') }}"
        is_gone = "_lakehouse_deleted_at is not null as gone"
        found["everything.sql"] = table + f"select id, {is_gone} from {{{{ lakehouse.with_deleted(ref('cow')) }}}}"
        purged = MERGED + "deletes={'mode': 'soft', 'purge_after': '2 hours'}"
        hours = "select id, ts, current_timestamp() - make_dt_interval(0, hours) as _lakehouse_deleted_at"
        first = hours + " from values (1, 5, 1), (2, 5, 3) as t(id, ts, hours)"
        body = "{% if is_incremental() %}select 3 as id, 1 as ts{% else %}" + first + "{% endif %}"
        return {**found, "purged.sql": f"{{{{ config({purged}) }}}} {body}"}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        config = "unique_key='id', strategy='check', check_cols=['v'], hard_deletes='invalidate'"
        return {"history.sql": "{% snapshot history %}{{ config(" + config + ") }} select id, v from {{ ref('mor') }}{% endsnapshot %}"}

    def table(self, project: Any, name: str) -> HoodieTable:
        return HoodieTable.open(f"{project.adapter.config.credentials.warehouse}/{project.test_schema}/{name}")

    def shown(self, project: Any, name: str) -> dict[int, Any]:
        return {row["id"]: row["v"] for row in self.table(project, name).to_arrow().to_pylist()}

    def test_an_older_event_changes_nothing_and_reads_show_live_rows(self, project: Any) -> None:
        for run, live in enumerate(({1: "a", 2: "b"}, {2: "b"}, {2: "b"}, {1: "back", 2: "b"})):
            run_dbt(["build", "--vars", f"run: {run}"])
            assert [self.shown(project, name) for name in ("cow", "mor", "seen")] == [live] * 3
            gone = self.table(project, "everything").to_arrow().to_pylist()
            assert {row["id"] for row in gone if row["gone"]} == ({9} if run in (0, 3) else {1, 9})
            assert {row["id"] for row in gone if not row["gone"]} == set(live)
        assert self.shown(project, "turned") == {1: "back", 2: "b", 9: "late"}  # its first run deleted the key for good
        versions = project.run_sql("select id, v, dbt_valid_to is null from {schema}.history order by dbt_valid_from, id", fetch="all")
        assert [tuple(row) for row in versions] == [(1, "a", False), (2, "b", True), (1, "back", True)]
        assert sorted(row["id"] for row in self.table(project, "purged").to_arrow(deleted=True).to_pylist()) == [1, 3]
        columns = project.run_sql("describe {schema}.cow", fetch="all")
        assert [row[0] for row in columns if not row[0].startswith("#")][:5] == ["id", "op", "ts", "v", "extra"]
        # Back to hard deletes only by a build from nothing, which drops what was kept.
        hard = ["run", "--vars", "run: 0", "--select", "turned"]
        result = run_dbt(hard, expect_pass=False).results[0]
        assert "deletes is hard but the table keeps deleted rows" in result.message
        run_dbt([*hard, "--full-refresh"])
        assert self.table(project, "turned").config.deletes_softly is False
        run_dbt(["run", "--vars", "run: 0", "--select", "cow", "--full-refresh"])
        assert self.shown(project, "cow") == {1: "a", 2: "b"}
        assert self.table(project, "cow").to_arrow(deleted=True).num_rows == 3
