"""Run-operations: what is called on each table, how refusals and failures are told."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.operations import Report, check_arguments, operate, text_table
from dbt.adapters.lakehouse.writing.guards import Guard, Guards, failed_tests
from dbt.adapters.lakehouse.writing.selection import Selected
from dbt.adapters.lakehouse.writing.table_operations import OPERATIONS, run_on_table
from dbt.include import lakehouse
from lakehouse_engine.errors import RestoreError
from lakehouse_engine.model.services import CleanResult, CompactionResult, RestoreResult, Savepoint, VersionChange
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline.timeline import Timeline
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.documents import ROOT

ORDERS, CLIENTS = Selected("orders", "s", "orders"), Selected("clients", "s", "clients")


@dataclass
class Table:
    """Records what is asked of it."""

    refuses: bool = False
    kind: str = "COPY_ON_WRITE"
    calls: list[tuple[Any, ...]] = field(default_factory=list)

    def restore(
        self, savepoint: str | None, *, to: str | None = None, cascade: bool = False, dry_run: bool = False, accept_future: bool = False
    ) -> RestoreResult:
        self.calls.append((savepoint, to, cascade, dry_run, *(["accept_future"] if accept_future else [])))
        if self.refuses:
            raise RestoreError("later savepoints stand in the way", table="t")
        instant = None if dry_run else "2"
        return RestoreResult(instant=instant, restored_to="1", savepoint=savepoint, rolled_back=("9", "8"), dry_run=dry_run)

    def compact(self, op: str, *, instant: str | None, dry_run: bool, options: Any) -> CompactionResult:
        self.calls.append((op, instant, dry_run))
        return CompactionResult(instant="3", operation="COMPACT", state="completed", dry_run=dry_run)

    def delete_savepoint(self, savepoint: str, *, dry_run: bool = False) -> Savepoint:
        self.calls.append((savepoint, dry_run))
        return Savepoint(instant="1", name="monday", comment="", user="me", created_at=0, partitions=1, files=1, bytes=1)

    def savepoints(self) -> list[Savepoint]:
        return []

    @property
    def timeline(self) -> Timeline:
        return Timeline(())

    @property
    def config(self) -> Any:
        return SimpleNamespace(table_type=self.kind)


@dataclass
class House:
    tables: dict[str, Table]

    def table(self, schema: str, identifier: str) -> Table:
        return self.tables[identifier]

    def kind(self, schema: str, identifier: str) -> str | None:
        return "table" if identifier in self.tables else None


def test_every_operation_has_a_macro_of_its_name_and_a_line_in_the_guide() -> None:
    macros = Path(lakehouse.PACKAGE_PATH) / "macros" / "operations"
    texts = {path.stem: path.read_text(encoding="utf-8") for path in macros.glob("*.sql") if path.stem != "run"}
    calls = {stem: re.findall(r"macro (\w+)\(|lakehouse_operation\('(\w+)'", text) for stem, text in texts.items()}
    assert calls == {name: [(name, ""), ("", name)] for name in OPERATIONS}
    lines = [line.split("|")[1] for line in (ROOT / "docs" / "dbt.md").read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert [name for name in OPERATIONS if not any(f"`{name}`" in cell for cell in lines)] == []


def test_one_table_is_restored_at_once_and_the_answer_is_a_table() -> None:
    orders = Table()
    report = operate(House({"orders": orders}), "restore", [ORDERS], {"savepoint": "v1", "to": None, "cascade": False})  # type: ignore[arg-type]
    assert orders.calls == [("v1", None, False, False)]
    assert report.failures == []
    assert report.text.splitlines()[1].split()[:2] == ["table", "restored_to"]
    assert "s.orders" in report.text


def test_if_one_of_several_tables_refuses_to_be_restored_none_is() -> None:
    orders, clients = Table(), Table(refuses=True)
    others = Selected("others", "s", "others")
    house = House({"orders": orders, "clients": clients, "others": Table(refuses=True)})
    with pytest.raises(DbtRuntimeError) as raised:
        operate(house, "restore", [ORDERS, CLIENTS, others], {"savepoint": "v1"})  # type: ignore[arg-type]
    assert [line.split(": ")[0] for line in str(raised.value.msg).splitlines()] == [
        "restore is refused, and no table was changed:",
        "s.clients",
        "s.others",
    ]
    assert orders.calls == [("v1", None, False, True)]


def test_instants_that_yaml_made_numbers_of_are_text_again() -> None:
    orders = Table()
    operate(House({"orders": orders}), "restore", [ORDERS], {"to": 20260101101500000, "dry_run": "true"})  # type: ignore[arg-type]
    assert orders.calls == [(None, "20260101101500000", False, True)]


@pytest.mark.parametrize(
    ("operation", "given", "words"),
    [
        ("restor", {}, "did you mean 'restore'"),
        ("restore", {"dry_run": "maybe"}, "dry_run is true or false"),
        ("restore", {"cascade": "maybe"}, "cascade is true or false"),
    ],
)
def test_what_there_is_not_is_refused(operation: str, given: dict[str, Any], words: str) -> None:
    orders = Table()
    with pytest.raises(DbtRuntimeError, match=words):
        operate(House({"orders": orders}), operation, [ORDERS], given).check()  # type: ignore[arg-type]
    assert orders.calls == []


@pytest.mark.parametrize(("text", "expected"), [("false", False), ("true", True), (False, False), (True, True)])
def test_the_heading_says_dry_run_only_if_it_is_one(text: object, expected: bool) -> None:
    orders = Table()
    report = operate(House({"orders": orders}), "restore", [ORDERS], {"savepoint": "v1", "dry_run": text})  # type: ignore[arg-type]
    assert ("dry run" in report.text, orders.calls[0][-1]) == (expected, expected)


def test_an_argument_that_there_is_not_is_refused_with_those_there_are() -> None:
    with pytest.raises(DbtRuntimeError, match=r"savepoint has no argument 'nmae'; did you mean 'name'\?; it takes model, name"):
        check_arguments("savepoint", ("model", "name"), {"nmae": "x"})
    check_arguments("savepoint", ("model", "name"), {})


def test_failures_are_told_once_one_a_line() -> None:
    report = Report("clean", failures=["s.a: too late", "s.b: too soon"])
    assert "too late" not in report.text
    with pytest.raises(DbtRuntimeError, match=r"clean failed:\n\s*s\.a: too late\n\s*s\.b: too soon"):
        report.check()
    Report("clean").check()


def test_a_compaction_of_all_passes_over_copy_on_write_tables_and_one_of_a_named_one_does_not() -> None:
    orders, clients = Table(kind="MERGE_ON_READ"), Table()
    house = House({"orders": orders, "clients": clients})
    report = operate(house, "compact", [ORDERS, CLIENTS], {"op": "schedule_and_run"}, named=False)  # type: ignore[arg-type]
    assert [(row["table"], row["state"]) for row in report.rows] == [("s.orders", "completed"), ("s.clients", "copy-on-write")]
    assert (report.failures, clients.calls) == ([], [])
    operate(house, "compact", [CLIENTS], {"op": "run"})  # type: ignore[arg-type]
    assert clients.calls == [("run", None, False)]


def test_the_newest_savepoint_of_several_tables_is_deleted_after_a_try_on_all() -> None:
    orders, clients = Table(), Table()
    operate(House({"orders": orders, "clients": clients}), "delete_savepoint", [ORDERS, CLIENTS], {"savepoint": "latest"})  # type: ignore[arg-type]
    assert orders.calls == clients.calls == [("latest", True), ("latest", False)]


def test_numbers_stand_to_the_right_and_nothing_is_blank() -> None:
    shown = text_table([{"a": "x", "n": 1234, "b": True}, {"a": None, "n": None, "b": False}])
    assert shown.splitlines() == ["a      n  b", "-  -----  ---", "x  1,234  yes", "          no"]


def result(kind: str, status: str, *nodes: str) -> Any:
    node = SimpleNamespace(resource_type=kind, name=f"{kind}_{status}", depends_on=SimpleNamespace(nodes=list(nodes)))
    return SimpleNamespace(node=node, status=status)


def test_only_failed_tests_of_error_severity_are_a_cause() -> None:
    results = [
        result("test", "fail", "model.p.orders", "model.p.clients"),
        result("test", "warn", "model.p.rates"),
        result("test", "pass", "model.p.rates"),
        result("model", "error", "model.p.rates"),
        result("test", "error", "model.p.orders"),
    ]
    assert failed_tests(results) == {"model.p.orders": ["test_fail", "test_error"], "model.p.clients": ["test_fail"]}


def test_a_failed_test_of_a_table_that_was_not_there_is_told() -> None:
    lines, failures = Guards("i").settle(House({}), [result("test", "fail", "model.p.orders")])  # type: ignore[arg-type]
    assert failures == []
    assert lines == ["Not restored: model.p.orders had no table when the run began (test_fail failed)"]


@pytest.mark.parametrize("house", [{}, {"orders": Table()}], ids=["dropped", "another table"])
def test_a_protected_table_that_the_run_built_anew_is_let_go_and_told_where_a_test_failed(house: dict[str, Table]) -> None:
    guards = Guards("i", {"model.p.orders": Guard(ORDERS, "1", own=True)})
    assert guards.settle(House(house), []) == ([], [])  # type: ignore[arg-type]
    guards = Guards("i", {"model.p.orders": Guard(ORDERS, "1", own=True)})
    lines, failures = guards.settle(House(house), [result("test", "fail", "model.p.orders")])  # type: ignore[arg-type]
    assert lines == []
    assert "s.orders: the run built it anew" in failures[0]
    assert "test_fail failed" in failures[0]


PROTECT = """
import os, sys
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.writing.guards import Guards
nodes = {"m": {"name": "orders", "schema": "s", "resource_type": "model", "config": {"materialized": "table"}}}
Guards("01234567-89ab-cdef-0123-456789abcdef").protect(Warehouse(sys.argv[1]), nodes, ["m"])
os._exit(9)
"""


def test_savepoints_of_a_killed_protected_run_go_with_the_next_one(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string())])
    create_table(LocalStorage(str(tmp_path / "s" / "orders")), TableSpec("orders", schema, ["id"], []))
    table = HoodieTable.open(str(tmp_path / "s" / "orders"), options={"lakehouse.task.threads": 1})
    table.upsert(pa.table({"id": ["a"]}, schema=schema))
    table.savepoint(name="mine")
    table.upsert(pa.table({"id": ["b"]}, schema=schema))
    assert subprocess.run([sys.executable, "-c", PROTECT, str(tmp_path)], check=False).returncode == 9
    assert len(table.savepoints()) == 2
    nodes = {"m": {"name": "orders", "schema": "s", "resource_type": "model", "config": {"materialized": "table"}}}
    killed, warehouse = "dbt_01234567-89ab-cdef-0123-456789abcdef", Warehouse(str(tmp_path))

    def protected(run: str, *, commits: bool) -> Guards:
        guards = Guards(f"{run * 8}-89ab-cdef-0123-456789abcdef")
        guards.protect(warehouse, nodes, ["m"])
        if commits:
            table.upsert(pa.table({"id": [run]}, schema=schema))
        return guards

    failed = protected("1", commits=True)
    assert failed.settle(warehouse, [result("test", "fail", "m")])[1] == []
    assert [one.name for one in table.savepoints()] == ["mine", killed], "somebody may want to go back to it"
    first, second = protected("2", commits=True), protected("3", commits=True)
    assert second.settle(warehouse, []) == ([], [])
    assert [one.name for one in table.savepoints()] == ["mine"]
    third, fourth = protected("4", commits=True), protected("5", commits=True)
    assert fourth.settle(warehouse, []) == ([], [])
    assert [one.name for one in table.savepoints()] == ["mine", "dbt_44444444-89ab-cdef-0123-456789abcdef"], "its run is at work"
    assert third.settle(warehouse, []) == first.settle(warehouse, []) == ([], [])
    assert [one.name for one in table.savepoints()] == ["mine"]


def test_a_protected_table_is_restored_though_another_protected_run_dropped_the_savepoint_of_both(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string())])
    create_table(LocalStorage(str(tmp_path / "s" / "orders")), TableSpec("orders", schema, ["id"], []))
    table = HoodieTable.open(str(tmp_path / "s" / "orders"), options={"lakehouse.task.threads": 1})
    table.upsert(pa.table({"id": ["good"]}, schema=schema))
    nodes = {"m": {"name": "orders", "schema": "s", "resource_type": "model", "config": {"materialized": "table"}}}
    warehouse, first, second = Warehouse(str(tmp_path)), Guards("1"), Guards("2")
    for guards in (first, second):
        guards.protect(warehouse, nodes, ["m"])
    assert first.settle(warehouse, []) == ([], [])
    assert table.savepoints() == []
    table.upsert(pa.table({"id": ["bad"]}, schema=schema))
    lines, failures = second.settle(warehouse, [result("test", "fail", "m")])
    assert failures == []
    assert lines[0].startswith("Restored s.orders to ")
    assert table.to_arrow().to_pylist() == [{"id": "good"}]
    third = Guards("3")
    third.protect(warehouse, nodes, ["m"])
    table.delete_savepoint("latest")
    assert third.settle(warehouse, []) == ([], []), "somebody else may have dropped it"


def test_repair_puts_back_the_properties_of_a_table_that_cannot_be_opened(tmp_path: Path) -> None:
    warehouse = Warehouse(str(tmp_path))
    path = tmp_path / "s" / "orders"
    create_table(LocalStorage(str(path)), TableSpec("orders", pa.schema([("id", pa.string())]), ["id"], []))
    properties = path / ".hoodie" / "hoodie.properties"
    whole = properties.read_bytes()
    properties.write_bytes(b"torn")
    told = operate(warehouse, "repair", [ORDERS], {"dry_run": "true"})
    assert (told.failures, [row["result"] for row in told.rows]) == ([], ["would be repaired"])
    assert properties.read_bytes() == b"torn"
    operate(warehouse, "repair", [ORDERS], {}).check()
    assert properties.read_bytes() == whole


def test_a_restore_goes_on_from_the_future_where_that_is_asked_for() -> None:
    orders = Table()
    operate(House({"orders": orders}), "restore", [ORDERS], {"to": "1", "accept_future": "true"}).check()  # type: ignore[arg-type]
    assert orders.calls == [(None, "1", False, False, "accept_future")]


def test_a_repair_that_leaves_damage_fails_with_its_rows_and_verify_tells_the_way_out(tmp_path: Path) -> None:
    warehouse, path = Warehouse(str(tmp_path)), tmp_path / "s" / "orders"
    schema = pa.schema([("id", pa.string())])
    create_table(LocalStorage(str(path)), TableSpec("orders", schema, ["id"], []))
    table = HoodieTable.open(str(path), options={"lakehouse.task.threads": 1})
    for key in ("a", "b"):
        table.upsert(pa.table({"id": [key]}, schema=schema))
    commit = path / ".hoodie" / f"{table.history()[0].instant}.commit"
    commit.write_bytes(commit.read_bytes()[:100])
    found = operate(warehouse, "verify", [ORDERS], {})
    assert "s.orders  " in found.text
    assert commit.name in found.text
    with pytest.raises(DbtRuntimeError, match=f"(?s){commit.name}.*way out: .*`repair` sees to it"):
        found.check()
    report = operate(warehouse, "repair", [ORDERS], {})
    assert [row["result"] for row in report.rows] == ["left"]
    with pytest.raises(DbtRuntimeError, match=f"(?s)s.orders: .*{commit.name}: .*--trust-files"):
        report.check()
    operate(warehouse, "repair", [ORDERS], {"trust_files": "true"}).check()
    operate(warehouse, "verify", [ORDERS], {}).check()


@dataclass
class Versioned:
    """Takes a change of its version, and keeps what it was asked for."""

    asked: list[tuple[str, int, bool]] = field(default_factory=list)

    def upgrade(self, to: int, *, dry_run: bool, options: dict[str, str]) -> VersionChange:
        return self._asked("upgrade", to, dry_run)

    def downgrade(self, to: int, *, dry_run: bool, options: dict[str, str]) -> VersionChange:
        return self._asked("downgrade", to, dry_run)

    def _asked(self, method: str, to: int, dry_run: bool) -> VersionChange:
        self.asked.append((method, to, dry_run))
        return VersionChange(from_version=8, to_version=to, steps=("one", "two"), notes=("look",), dry_run=dry_run)


@pytest.mark.parametrize(
    ("operation", "given", "asked"),
    [
        ("upgrade", {}, ("upgrade", 9, False)),
        ("upgrade", {"to": "8", "dry_run": True}, ("upgrade", 8, True)),
        ("downgrade", {"to": 6}, ("downgrade", 6, False)),
    ],
)
def test_a_version_is_changed_and_each_step_is_told(operation: str, given: dict[str, Any], asked: tuple[str, int, bool]) -> None:
    table = Versioned()
    rows = run_on_table(table, operation, given, {})
    assert table.asked == [asked]
    done = "would be done" if asked[2] else "done"
    assert [(row["result"], row["step"]) for row in rows] == [(done, "one"), (done, "two"), ("note", "look")]
    assert {(row["from"], row["to"]) for row in rows} == {(8, asked[1])}


def test_a_version_that_is_no_number_is_refused() -> None:
    with pytest.raises(DbtRuntimeError, match="to is a whole number, not 'nine'"):
        run_on_table(Versioned(), "upgrade", {"to": "nine"}, {})


@dataclass
class Cleaned:
    """Takes a clean, and keeps what it was asked with."""

    asked: list[dict[str, str]] = field(default_factory=list)

    def clean(self, *, dry_run: bool, options: dict[str, str]) -> CleanResult:
        self.asked.append(options)
        return CleanResult(instant=None, policy=options.get("hoodie.clean.policy", ""), earliest_retained=None, dry_run=dry_run)


COMMITS, VERSIONS, HOURS = "hoodie.clean.commits.retained", "hoodie.clean.fileversions.retained", "hoodie.clean.hours.retained"


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({"retain_versions": 2}, {VERSIONS: "2", "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"}),
        ({"retain_hours": "5"}, {HOURS: "5", "hoodie.clean.policy": "KEEP_LATEST_BY_HOURS"}),
        ({"retain_commits": 3}, {COMMITS: "3", "hoodie.clean.policy": "KEEP_LATEST_COMMITS"}),
        ({"retain_hours": 5, "policy": "keep_latest_by_hours"}, {HOURS: "5", "hoodie.clean.policy": "KEEP_LATEST_BY_HOURS"}),
        ({"policy": "KEEP_LATEST_BY_HOURS"}, {"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS"}),
        ({}, {}),
    ],
)
def test_what_a_clean_is_told_to_keep_says_by_which_policy(given: dict[str, Any], options: dict[str, str]) -> None:
    table = Cleaned()
    run_on_table(table, "clean", {"dry_run": True, **given}, {"hoodie.clean.commits.retained": "10"})
    assert table.asked == [{"hoodie.clean.commits.retained": "10", **options}]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"retain_commits": 3, "retain_hours": 5}, r"one policy; given: retain_commits \(KEEP_LATEST_COMMITS\), retain_hours"),
        ({"retain_commits": 3, "policy": "KEEP_LATEST_BY_HOURS"}, "and policy KEEP_LATEST_BY_HOURS"),
        ({"retain_commits": 1.9}, "retain_commits is a whole number, not '1.9'"),
        ({"retain_commits": True}, "retain_commits is a whole number, not 'True'"),
        ({"retain_hours": "soon"}, "retain_hours is a whole number, not 'soon'"),
    ],
)
def test_a_clean_is_refused_what_it_would_not_look_at(given: dict[str, Any], words: str) -> None:
    table = Cleaned()
    with pytest.raises(DbtRuntimeError, match=words):
        run_on_table(table, "clean", given, {})
    assert table.asked == []


def test_a_clustering_sorts_as_it_is_told_or_as_the_model_says(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    create_table(LocalStorage(str(tmp_path)), TableSpec("t", schema, ["id"], [], [], "cow"))
    table = HoodieTable.open(str(tmp_path), options={"hoodie.parquet.small.file.limit": 0})
    for number in range(2):
        table.insert(pa.table({"id": [number], "v": [-number]}, schema))
    model = {"hoodie.clustering.plan.strategy.sort.columns": "v"}
    (planned,) = run_on_table(table, "cluster", {"dry_run": "true"}, model)
    assert (planned["state"], planned["groups"], planned["files"], planned["instant"]) == ("planned", 1, 2, None)
    (done,) = run_on_table(table, "cluster", {"order_by": "v, id", "layout": "z_order"}, model)
    assert (done["state"], done["files_created"], done["rows_written"], done["groups_left"]) == ("completed", 1, 2, 0)
    assert run_on_table(table, "cluster", {"order_by": ["v", "id"], "layout": "z_order"}, model)[0]["state"] == "none"
    assert run_on_table(table, "cluster", {}, model)[0]["state"] == "completed"
    assert table.to_arrow()["id"].to_pylist() == [1, 0]


def test_an_index_is_built_and_dropped_by_its_name(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    create_table(LocalStorage(str(tmp_path)), TableSpec("t", schema, ["id"], version=TableVersion.NINE))
    table = HoodieTable.open(str(tmp_path))
    table.insert(pa.table({"id": [1], "v": [2]}, schema))
    asked = {"name": "column_stats", "columns": "id, v"}
    assert run_on_table(table, "index", {**asked, "dry_run": "true"}, {}) == [
        {"index": "column_stats", "instant": None, "planned": "", "built": "column_stats, files"}
    ]
    assert table.indexes() == []
    (planned,) = run_on_table(table, "index", {**asked, "op": "schedule"}, {})
    assert (planned["planned"], planned["built"]) == ("column_stats", "")
    assert run_on_table(table, "index", {**asked, "op": "run"}, {}) == [{**planned, "planned": "", "built": "column_stats, files"}]
    assert table.indexes()[0].columns[3:] == ("id", "v")
    assert run_on_table(table, "index", {**asked, "if_not_exists": True}, {}) == [
        {"index": "column_stats", "instant": None, "planned": "", "built": ""}
    ]
    assert run_on_table(table, "drop_index", {"name": "column_stats"}, {}) == [{"index": "column_stats", "dropped": "column_stats"}]
    ends = {"name": "ends", "columns": "v", "type": "bloom_filters", "expression": "identity", "expression_options": {"fpp": 0.01}}
    (made,) = run_on_table(table, "index", ends, {})
    assert (made["index"], made["planned"], made["built"]) == ("ends", "", "expr_index_ends")
    assert {**{one.name: one.options for one in table.indexes()}}["ends"] == {"expr": "identity", "fpp": "0.01"}
    with pytest.raises(DbtRuntimeError, match="drop_index needs 'name'"):
        run_on_table(table, "drop_index", {}, {})
