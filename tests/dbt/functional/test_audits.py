"""Models with `audit: true`: nobody sees their rows before their tests have passed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dbt.adapters.lakehouse.writing.audits import Audits
from lakehouse_engine import Lakehouse
from tests.support.dbt_project import Project

ORDERS = """
{{{{ config(materialized='incremental', unique_key='id', table_type='{kind}', partition_by='part', audit=true) }}}}
select cast(id as int) as id, cast(id % 2 as string) as part, {{{{ var('amount') }}}} as amount
from range({{{{ var('low') }}}}, {{{{ var('high') }}}})
"""
TOTALS = """
{{ config(materialized='table', unique_key='part', audit=true) }}
select part, sum(amount) as total, count(*) as n from {{ ref('orders') }} group by part
"""
SPY = "{{ config(materialized='table') }} select count(*) as n, max(amount) as highest from {{ ref('orders') }}"
SCHEMA = """
models:
  - name: orders
    columns:
      - name: amount
        data_tests: [{accepted_values: {arguments: {values: [1, 2, 3], quote: false}}}]
  - name: totals
    columns:
      - name: part
        data_tests: [unique]
      - name: n
        data_tests: [{accepted_values: {arguments: {values: [5, 10], quote: false}}}]
"""


class Shop(Project):
    def __init__(self, folder: Path, spark: dict[str, Any], kind: str = "cow", **models: str) -> None:
        super().__init__(folder, spark, vars={"amount": 1, "low": 0, "high": 10})
        for name, text in {"orders": ORDERS.format(kind=kind), **models}.items():
            (folder / "models" / f"{name}.sql").write_text(text)
        (folder / "models" / "schema.yml").write_text(SCHEMA)

    def build(self, amount: int, low: int, high: int, *more: str, fails: bool = False, alone: bool = False) -> str:
        return self.dbt("build", "--vars", f"{{amount: {amount}, low: {low}, high: {high}}}", *more, fails=fails, alone=alone)

    def amounts(self) -> dict[int, int]:
        rows = self.rows("orders")
        return dict(zip(rows["id"].to_pylist(), rows["amount"].to_pylist(), strict=True))

    def left(self) -> list[str]:
        """What is left where tables are held back."""
        hidden = self.warehouse / ".lakehouse"
        return sorted(path.name for path in hidden.iterdir()) if hidden.exists() else []


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_only_rows_that_passed_their_tests_are_published_by_one_commit(tmp_path: Path, spark_keys: dict[str, Any], kind: str) -> None:
    shop = Shop(tmp_path, spark_keys, kind, totals=TOTALS)
    shown = shop.build(1, 0, 10)
    assert "10 new), held back until its tests have passed" in shown
    assert "Published s.orders" in shown
    assert "Published s.totals" in shown
    assert shop.amounts() == dict.fromkeys(range(10), 1)
    assert shop.rows("totals")["total"].to_pylist() == [5, 5]
    instants = [one.requested_time for one in shop.table("orders").timeline.completed()]

    shown = shop.build(9, 5, 20, fails=True)
    assert "Not published: s.orders" in shown
    assert "accepted_values_orders" in shown
    assert shop.amounts() == dict.fromkeys(range(10), 1)
    assert [one.requested_time for one in shop.table("orders").timeline] == instants
    assert shop.rows("totals")["total"].to_pylist() == [5, 5]
    assert shop.left() == []

    shop.build(2, 0, 10)
    assert shop.amounts() == dict.fromkeys(range(10), 2)
    assert sorted(shop.rows("totals")["total"].to_pylist()) == [10, 10]
    assert len(shop.table("orders").timeline.completed().writes()) == len(instants) + 1
    assert shop.left() == []


def test_failing_model_below_holds_back_what_it_read(tmp_path: Path, spark_keys: dict[str, Any]) -> None:
    shop = Shop(tmp_path, spark_keys, totals=TOTALS)
    project = tmp_path / "dbt_project.yml"
    project.write_text(project.read_text() + "on-run-end: [\"select 'the hook ran' as said\"]\n")
    shop.build(1, 0, 10)
    shown = shop.build(2, 10, 14, fails=True)  # 7 of a part: the test of totals fails, those of orders pass
    assert "Not published: s.totals" in shown
    assert "Not published: s.orders: it belongs to s.totals" in shown
    assert "OK hook: shop.on-run-end.0" in shown
    assert shop.amounts() == dict.fromkeys(range(10), 1)
    assert shop.rows("totals")["n"].to_pylist() == [5, 5]


def test_model_that_is_not_audited_reads_what_is_published_before_it(tmp_path: Path, spark_keys: dict[str, Any]) -> None:
    shop = Shop(tmp_path, spark_keys, spy=SPY)
    shop.build(1, 0, 10)
    assert shop.rows("spy")["n"].to_pylist() == [10]
    shop.build(3, 0, 12)
    assert shop.rows("spy").select(["n", "highest"]).to_pylist() == [{"n": 12, "highest": 3}]
    shop.build(9, 0, 50, fails=True)
    assert shop.rows("spy").select(["n", "highest"]).to_pylist() == [{"n": 12, "highest": 3}]


def meanwhile(monkeypatch: pytest.MonkeyPatch, shop: Shop, *rows: dict[str, object]) -> None:
    """Have somebody else write rows to the table after its tests have passed, before it is published."""
    settle, others = Audits.settle, list(rows)

    def later(audits: Audits, publish: Any) -> Any:
        if others and audits._held:
            Lakehouse(str(shop.warehouse)).table("s.orders").upsert(pa.Table.from_pylist([others.pop()], shop.table("orders").schema))
        return settle(audits, publish)

    monkeypatch.setattr(Audits, "settle", later)


def test_commit_of_somebody_else_before_publishing_is_merged_and_tested_again(
    tmp_path: Path, spark_keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path, spark_keys)
    shop.build(1, 0, 10)
    meanwhile(monkeypatch, shop, {"id": 100, "part": "0", "amount": 3})
    assert "Published s.orders" in shop.build(2, 0, 5)
    assert shop.amounts() == {**dict.fromkeys(range(5), 2), **dict.fromkeys(range(5, 10), 1), 100: 3}


def test_commit_of_somebody_else_that_fails_the_tests_keeps_the_rows_back(
    tmp_path: Path, spark_keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path, spark_keys)
    shop.build(1, 0, 10)
    meanwhile(monkeypatch, shop, {"id": 100, "part": "0", "amount": 9})
    shown = shop.build(2, 0, 5, fails=True)
    assert "merged into what it is now" in shown
    assert "accepted_values_orders" in shown
    assert shop.amounts() == {**dict.fromkeys(range(10), 1), 100: 9}
    assert shop.left() == []


def test_commit_of_somebody_else_to_a_table_that_the_model_reads_keeps_the_rows_back(
    tmp_path: Path, spark_keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = ORDERS + "{{% if is_incremental() %}} where id <= (select max(id) from {{{{ this }}}}) {{% endif %}}"
    shop = Shop(tmp_path, spark_keys, orders=text.format(kind="cow"))
    shop.build(1, 0, 10)
    meanwhile(monkeypatch, shop, {"id": 100, "part": "0", "amount": 3})
    shown = shop.build(2, 0, 5, fails=True)
    assert "Not published: s.orders" in shown
    assert shop.amounts() == {**dict.fromkeys(range(10), 1), 100: 3}


def test_hook_that_writes_to_an_audited_table_keeps_it_back(tmp_path: Path, spark_keys: dict[str, Any]) -> None:
    hooked = ORDERS.format(kind="cow").replace("audit=true", "audit=true, post_hook='delete from {{ this }} where id = 0'")
    shop = Shop(tmp_path, spark_keys, orders=hooked)
    assert "leave the hook out" in shop.build(1, 0, 10, fails=True)
    assert not (shop.warehouse / "s" / "orders").exists()


def test_killed_run_leaves_nothing_that_is_seen_and_the_next_one_removes_the_rest(tmp_path: Path, spark_keys: dict[str, Any]) -> None:
    shop = Shop(tmp_path, spark_keys)
    shop.build(1, 0, 10)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "deadly.sql").write_text(
        "{{ config(enabled=var('deadly', false)) }} select reflect('java.lang.System', 'exit', 3) as id from {{ ref('orders') }}"
    )
    held_back = "{amount: 2, low: 0, high: 10, deadly: true}"
    shop.dbt("build", "--vars", held_back, fails=True, alone=True)
    assert shop.amounts() == dict.fromkeys(range(10), 1)
    shop.build(3, 0, 10)
    assert shop.amounts() == dict.fromkeys(range(10), 3)
    assert shop.left() == []


def test_run_without_tests_is_refused_before_anything_is_written(tmp_path: Path, spark_keys: dict[str, Any]) -> None:
    shop = Shop(tmp_path, spark_keys)
    shown = shop.dbt("run", fails=True)
    assert "use dbt build" in shown
    assert not (shop.warehouse / "s" / "orders").exists()


def test_audited_test_that_is_left_out_keeps_the_table_back(tmp_path: Path, spark_keys: dict[str, Any]) -> None:
    shop = Shop(tmp_path, spark_keys)
    shown = shop.build(1, 0, 10, "--exclude-resource-type", "test", fails=True)
    assert "did not run" in shown
    assert not (shop.warehouse / "s" / "orders").exists()


def test_seeds_and_snapshots_are_held_back_too(tmp_path: Path, spark_keys: dict[str, Any]) -> None:
    history = (
        "{% snapshot history %}{{ config(unique_key='id', strategy='check', check_cols='all', target_schema='s', audit=true) }}"
        "select * from {{ ref('places') }}{% endsnapshot %}"
    )
    shop = Project(tmp_path, spark_keys, seeds={"shop": {"audit": True}})
    for folder in ("seeds", "snapshots", "tests"):
        (tmp_path / folder).mkdir()
    (tmp_path / "snapshots" / "history.sql").write_text(history)
    (tmp_path / "tests" / "named.sql").write_text("select * from {{ ref('history') }} where name is null")

    def build(*names: str, fails: bool = False) -> None:
        (tmp_path / "seeds" / "places.csv").write_text("id,name\n" + "".join(f"{at},{name}\n" for at, name in enumerate(names)))
        shop.dbt("build", fails=fails)

    def names(table: str) -> list[str]:
        return sorted(shop.rows(table)["name"].to_pylist())

    build("a", "b")
    build("a", "", fails=True)
    assert (names("places"), names("history")) == (["a", "b"], ["a", "b"])
    build("a", "c")
    assert (names("places"), names("history")) == (["a", "c"], ["a", "b", "c"])
