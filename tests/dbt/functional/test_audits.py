"""Models with `audit: true`: nobody sees their rows before their tests have passed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dbt.adapters.lakehouse.writing.audits import Audits, Held
from lakehouse_engine import Lakehouse
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.timeline.lock import find_lock_holder
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


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_nobody_else_sees_anything_of_it_before_it_is_published(
    tmp_path: Path, spark_keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    shop = Shop(tmp_path, spark_keys, kind, totals=TOTALS)
    seen: list[Any] = []
    note = Audits.note

    def look() -> Any:
        """The warehouse as others find it: by its catalog, by our reader and by hudi-rs."""
        house = Lakehouse(str(shop.warehouse))
        names = sorted(str(one) for schema in house.schemas() for one in house.tables(schema))
        rows = {name: shop.rows(name.removeprefix("s.")).to_pylist() for name in names}
        timelines = {name: [str(one) for one in house.table(name).timeline] for name in names}
        return house.schemas(), {name: sorted(map(str, found)) for name, found in rows.items()}, timelines

    def noting(audits: Audits, node: str, outcome: str) -> None:
        seen.append((outcome, look()))
        note(audits, node, outcome)

    monkeypatch.setattr(Audits, "note", noting)
    before = None
    for amount in (1, 2):
        seen.clear()
        shop.build(amount, 0, 10)
        assert [outcome for outcome, _ in seen] == ["success", "pass", "success", "pass", "pass"]
        found = [found for _, found in seen]
        assert found == [found[0]] * 5
        assert found[0] == before if before is not None else found[0][1:] == ({}, {})
        before = look()
    assert set(before[1]) == {"s.orders", "s.totals"}


def meanwhile(monkeypatch: pytest.MonkeyPatch, shop: Shop, *rows: dict[str, object], table: str = "orders") -> None:
    """Have somebody else write rows to the table after its tests have passed, before it is published."""
    settle, others = Audits.settle, list(rows)

    def later(audits: Audits, publish: Any) -> Any:
        if others and audits._held:
            Lakehouse(str(shop.warehouse)).table(f"s.{table}").upsert(pa.Table.from_pylist([others.pop()], shop.table(table).schema))
        return settle(audits, publish)

    monkeypatch.setattr(Audits, "settle", later)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_commit_of_somebody_else_before_publishing_is_merged_and_tested_again(
    tmp_path: Path, spark_keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    shop = Shop(tmp_path, spark_keys, kind)
    shop.build(1, 0, 10)
    meanwhile(monkeypatch, shop, {"id": 100, "part": "0", "amount": 3})
    assert "Published s.orders" in shop.build(2, 0, 5)
    assert shop.amounts() == {**dict.fromkeys(range(5), 2), **dict.fromkeys(range(5, 10), 1), 100: 3}


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_commit_of_somebody_else_to_one_table_keeps_all_of_its_group_back(
    tmp_path: Path, spark_keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    shop = Shop(tmp_path, spark_keys, kind, totals=TOTALS)
    shop.build(1, 0, 10)
    meanwhile(monkeypatch, shop, {"part": "9", "total": 7, "n": 5}, table="totals")
    shown = shop.build(2, 0, 10, fails=True)
    assert "Not published: s.orders: it belongs to s.totals" in shown
    assert "Published" not in shown
    assert shop.amounts() == dict.fromkeys(range(10), 1)
    assert sorted(shop.rows("totals")["total"].to_pylist()) == [5, 5, 7]
    assert shop.left() == []


def test_tables_of_a_group_are_locked_until_the_last_is_published(
    tmp_path: Path, spark_keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path, spark_keys, totals=TOTALS)
    shop.build(1, 0, 10)
    write, locked = Held.write, []

    def writing(held: Held, house: Any) -> Any:
        if house._held is None:  # no repetition on a copy
            locked.append([find_lock_holder(shop.table(name).storage) is not None for name in ("orders", "totals")])
        return write(held, house)

    monkeypatch.setattr(Held, "write", writing)
    shop.build(2, 0, 10)
    assert locked == [[True, True]] * 2
    assert [find_lock_holder(shop.table(name).storage) for name in ("orders", "totals")] == [None, None]


def test_table_of_a_group_that_is_built_anew_takes_the_place_of_the_old_one(tmp_path: Path, spark_keys: dict[str, Any]) -> None:
    shop = Shop(tmp_path, spark_keys, totals=TOTALS)
    shop.build(1, 0, 10)
    (tmp_path / "models" / "totals.sql").write_text(TOTALS.replace("audit=true", "audit=true, partition_by='part'"))
    assert "Published s.totals" in shop.build(2, 0, 10)
    assert shop.table("totals").config.partition_fields == ("part",)
    assert shop.rows("totals")["total"].to_pylist() == [10, 10]
    assert [find_lock_holder(shop.table(name).storage) for name in ("orders", "totals")] == [None, None]
    shop.build(3, 0, 10)
    assert shop.rows("totals")["total"].to_pylist() == [15, 15]
    assert shop.left() == []


@pytest.mark.parametrize("was", [None, "a view"])
def test_table_that_somebody_else_made_meanwhile_keeps_the_rows_back(
    tmp_path: Path, spark_keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch, was: str | None
) -> None:
    shop = Shop(tmp_path, spark_keys)
    settle, name = Audits.settle, RelationName("s", "orders")
    if was:
        Lakehouse(str(shop.warehouse)).catalog.create_view(name, "select 1 as id")

    def later(audits: Audits, publish: Any) -> Any:
        if audits._held:
            house = Lakehouse(str(shop.warehouse))
            house.catalog.drop_view(name, if_exists=True)
            made = house.create_table("s.orders", schema=pa.schema([("id", pa.int32())]), record_key=["id"])
            made.insert(pa.table({"id": pa.array([7], pa.int32())}))
        return settle(audits, publish)

    monkeypatch.setattr(Audits, "settle", later)
    assert "somebody else made s.orders" in shop.build(1, 0, 10, fails=True)
    assert shop.rows("orders")["id"].to_pylist() == [7]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_commit_of_somebody_else_that_fails_the_tests_keeps_the_rows_back(
    tmp_path: Path, spark_keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    shop = Shop(tmp_path, spark_keys, kind)
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
    assert "keyboard interrupt" not in shown
    assert statuses(shop) == {"orders": "error", "test": "skipped"}  # a retry builds and tests it
    assert shop.amounts() == {**dict.fromkeys(range(10), 1), 100: 3}


def test_hook_that_writes_to_an_audited_table_keeps_it_back(tmp_path: Path, spark_keys: dict[str, Any]) -> None:
    hooked = ORDERS.format(kind="cow").replace("audit=true", "audit=true, post_hook='delete from {{ this }} where id = 0'")
    shop = Shop(tmp_path, spark_keys, orders=hooked)
    assert "leave the hook out" in shop.build(1, 0, 10, fails=True)
    assert not (shop.warehouse / "s" / "orders").exists()


DEADLY = """
import os, signal
def model(dbt, session):
    dbt.config(materialized="table", audit=True)
    assert dbt.ref("orders").where("amount = 2").count() == 10
    os.kill(os.getpid(), signal.SIGKILL)
    return dbt.ref("orders")
"""


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_killed_process_leaves_nothing_that_is_seen_and_any_later_run_removes_the_rest(
    tmp_path: Path, spark_keys: dict[str, Any], kind: str
) -> None:
    shop = Shop(tmp_path, spark_keys, kind, plain="select 1 as id")
    shop.build(1, 0, 10)
    before = [str(one) for one in shop.table("orders").timeline]
    (tmp_path / "models" / "deadly.py").write_text(DEADLY)
    shown = shop.build(2, 0, 10, fails=True, alone=True)
    assert "held back until its tests have passed" in shown
    (tmp_path / "models" / "deadly.py").unlink()
    assert len(shop.left()) == 2  # the copies, and whose they are
    assert shop.amounts() == dict.fromkeys(range(10), 1)
    assert [str(one) for one in shop.table("orders").timeline] == before
    assert Lakehouse(str(shop.warehouse)).schemas() == ["s"]
    shop.dbt("run", "--select", "plain")
    assert shop.left() == []
    assert shop.amounts() == dict.fromkeys(range(10), 1)


BETWEEN = """
import os, signal, sys
from dbt.adapters.lakehouse.writing.audits import Held
from dbt.cli.main import dbtRunner
write, done = Held.write, []
def writing(held, house):
    if done:
        os.kill(os.getpid(), signal.SIGKILL)
    done.append(held)
    return write(held, house)
Held.write = writing
dbtRunner().invoke(["build", "--vars", "{amount: 2, low: 0, high: 10}", "--profiles-dir", "."])
"""


def test_process_killed_between_two_publications_leaves_whole_tables_and_the_next_run_goes_on(
    tmp_path: Path, spark_keys: dict[str, Any]
) -> None:
    shop = Shop(tmp_path, spark_keys, totals=TOTALS)
    shop.build(1, 0, 10)
    writes = [len(shop.table(name).timeline.completed().writes()) for name in ("orders", "totals")]
    command = [sys.executable, "-c", BETWEEN]
    killed = subprocess.run(command, cwd=tmp_path, env=shop.environment, capture_output=True, timeout=300, check=False)
    assert killed.returncode == -9
    assert shop.amounts() == dict.fromkeys(range(10), 2)
    assert shop.rows("totals")["total"].to_pylist() == [5, 5]
    assert [len(shop.table(name).timeline.completed().writes()) for name in ("orders", "totals")] == [writes[0] + 1, writes[1]]
    assert [one for name in ("orders", "totals") for one in shop.table(name).timeline.pending()] == []
    assert len(shop.left()) == 2
    shop.build(2, 0, 10)
    assert shop.amounts() == dict.fromkeys(range(10), 2)
    assert shop.rows("totals")["total"].to_pylist() == [10, 10]
    assert shop.left() == []


def test_run_whose_spark_ended_leaves_nothing_that_is_seen_and_the_next_one_removes_the_rest(
    tmp_path: Path, spark_keys: dict[str, Any]
) -> None:
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


def statuses(shop: Shop) -> dict[str, str]:
    """How the last command ended, by node: a test by its model's name."""
    results = json.loads((shop.folder / "target" / "run_results.json").read_text())["results"]
    return {"test" if one["unique_id"].startswith("test.") else one["unique_id"].split(".")[-1]: one["status"] for one in results}


def test_retry_builds_what_was_held_back_again_and_nothing_below_it_before(tmp_path: Path, spark_keys: dict[str, Any]) -> None:
    shop = Shop(tmp_path, spark_keys, spy=SPY)
    shop.build(1, 0, 10)
    shown = shop.build(9, 5, 20, fails=True)
    assert "keyboard interrupt" not in shown
    assert statuses(shop) == {"orders": "error", "test": "fail", "spy": "skipped"}
    written = shop.table("spy").timeline.completed().last()

    # As an older version left it, or a run that was stopped: the model succeeded, and what it wrote is gone.
    stored = shop.folder / "target" / "run_results.json"
    kept = stored.read_text()
    found = json.loads(kept)
    for one in found["results"]:
        one["status"] = "success" if one["unique_id"].endswith(".orders") else one["status"]
    stored.write_text(json.dumps(found))
    shown = shop.dbt("retry", fails=True)
    assert "s.orders: dbt retry tests it without building it again" in shown
    assert "use dbt build --select orders" in shown
    assert "keyboard interrupt" not in shown
    assert statuses(shop) == {"test": "error", "spy": "error"}
    assert shop.table("spy").timeline.completed().last() == written

    stored.write_text(kept)
    (shop.folder / "models" / "orders.sql").write_text(ORDERS.format(kind="cow").replace("{{ var('amount') }}", "3"))
    shop.dbt("retry")
    assert shop.amounts() == {**dict.fromkeys(range(5), 1), **dict.fromkeys(range(5, 20), 3)}
    assert shop.rows("spy")["highest"].to_pylist() == [3]


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
