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
