"""`verify` on tables that are damaged in one way each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.actions.verify import FindingKind, verify
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.view.table_state import TableState
from tests.support.fixtures import spark_fixtures, unpack_spark_fixture
from tests.support.properties import edit_properties
from tests.unit.cli.conftest import Warehouse, orders


def newest_file(warehouse: Warehouse) -> Path:
    return min(Path(warehouse.table.path).rglob(f"*_{warehouse.second}.parquet"))


def remove(warehouse: Warehouse) -> None:
    newest_file(warehouse).unlink()


def grow(warehouse: Warehouse) -> None:
    with newest_file(warehouse).open("ab") as file:
        file.write(b"more")


def overwrite(warehouse: Warehouse) -> None:
    path = newest_file(warehouse)
    path.write_bytes(b"x" * path.stat().st_size)


def tear_commit(warehouse: Warehouse) -> None:
    (Path(warehouse.table.path) / ".hoodie" / f"{warehouse.second}.commit").write_bytes(b'{"partitionTo')


def empty_commit(warehouse: Warehouse) -> None:
    (Path(warehouse.table.path) / ".hoodie" / f"{warehouse.second}.commit").write_bytes(b"")


def repeat_keys(warehouse: Warehouse) -> None:
    warehouse.table.bulk_insert(orders(range(5, 10), "again"))


def test_a_whole_table_has_no_findings(warehouse: Warehouse) -> None:
    report = verify(warehouse.table.state)
    assert report.ok
    assert (report.rows, report.files, report.instants, report.instant) == (30, 2, 2, warehouse.second)
    assert report.skipped == ()


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (remove, FindingKind.MISSING_FILE),
        (grow, FindingKind.WRONG_SIZE),
        (overwrite, FindingKind.UNREADABLE_FILE),
        (tear_commit, FindingKind.CORRUPT_INSTANT),
        (empty_commit, FindingKind.CORRUPT_INSTANT),
        (repeat_keys, FindingKind.DUPLICATE_KEY),
    ],
)
def test_damage_is_found_and_ends_the_command_with_1(warehouse: Warehouse, damage: Callable[[Warehouse], None], kind: FindingKind) -> None:
    damage(warehouse)
    report = verify(TableState.load(LocalStorage(warehouse.table.path)))
    assert kind in {finding.kind for finding in report.findings}
    result = warehouse.run("verify", "analytics.orders")
    assert result.exit_code == 1
    assert str(kind) in result.stdout


def test_duplicate_keys_are_named(warehouse: Warehouse) -> None:
    repeat_keys(warehouse)
    messages = {finding.path: finding.message for finding in verify(warehouse.table.state).findings}
    assert set(messages) == {"day=2026-01-01", "day=2026-01-02"}
    assert "'6'" in messages["day=2026-01-01"]


def test_a_key_in_two_partitions_is_a_duplicate_only_where_keys_are_unique_in_the_table(warehouse: Warehouse) -> None:
    moved = orders(range(1), "moved").set_column(5, "day", pa.array(["2026-01-02"]))
    warehouse.table.bulk_insert(moved)
    assert not verify(warehouse.table.state).ok
    edit_properties(warehouse.table.path, {"index.type=GLOBAL_SIMPLE": "index.type=SIMPLE"})
    assert verify(TableState.load(LocalStorage(warehouse.table.path))).ok


@pytest.mark.parametrize("name", spark_fixtures() or [pytest.param("", marks=pytest.mark.skip("the fixtures of Hudi are not there"))])
def test_a_table_of_hudi_itself_has_no_findings(name: str, tmp_path: Path) -> None:
    report = verify(TableState.load(LocalStorage(str(unpack_spark_fixture(name, tmp_path)))))
    assert report.findings == ()
