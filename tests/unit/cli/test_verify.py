"""`verify` on tables that are damaged in one way each."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.verify import FindingKind, verify
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
    overwrite_file(newest_file(warehouse))


def overwrite_file(path: Path) -> None:
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
    edit_properties(warehouse.table.path, {"index.type=AUTO": "index.type=SIMPLE"})
    assert verify(TableState.load(LocalStorage(warehouse.table.path))).ok


def test_what_is_not_damaged_is_looked_at_still(warehouse: Warehouse) -> None:
    tear_commit(warehouse)
    earlier = max(path for path in Path(warehouse.table.path).rglob("*.parquet") if warehouse.second not in path.name)
    overwrite_file(earlier)
    report = verify(TableState.load(LocalStorage(warehouse.table.path)))
    assert {(finding.kind, Path(finding.path).name) for finding in report.findings} == {
        (FindingKind.CORRUPT_INSTANT, f"{warehouse.second}.commit"),
        (FindingKind.UNREADABLE_FILE, earlier.name),
    }
    assert "keys" in report.skipped[0]


def test_a_quick_verification_reads_no_data_file(warehouse: Warehouse) -> None:
    overwrite(warehouse)
    assert verify(warehouse.table.state, quick=True).ok
    told = warehouse.run("verify", "analytics.orders", "--quick")
    assert (told.exit_code, "no data read" in told.stdout, "rows" in told.stdout) == (0, True, False)
    grow(warehouse)
    assert {finding.kind for finding in verify(warehouse.table.state, quick=True).findings} == {FindingKind.WRONG_SIZE}
    assert warehouse.run("verify", "analytics.orders", "--quick").exit_code == 1


def test_a_temporary_file_of_a_killed_process_is_found_and_one_of_a_living_one_is_not(warehouse: Warehouse) -> None:
    path = Path(warehouse.table.path) / ".hoodie" / ".~lakehouse-x.tmp"
    path.write_bytes(b"half")
    assert verify(warehouse.table.state).ok
    os.utime(path, (0, 0))
    (finding,) = verify(warehouse.table.state).findings
    assert (finding.kind, finding.path) == (FindingKind.LEFTOVER_FILE, f".hoodie/{path.name}")


def test_the_command_says_how_far_it_is(warehouse: Warehouse) -> None:
    told: list[tuple[str, int, int]] = []
    verify(warehouse.table.state, progress=lambda *step: told.append(step))
    assert [done for _, done, _ in told] == list(range(told[-1][2] + 1))


def test_a_table_without_usable_properties_ends_the_command_with_1(warehouse: Warehouse) -> None:
    path = Path(warehouse.table.path) / ".hoodie" / "hoodie.properties"
    path.write_bytes(path.read_bytes().replace(b"recordkey.fields=order_id", b"recordkey.fields=order_ie"))
    result = warehouse.run("verify", "analytics.orders")
    assert result.exit_code == 1
    assert "hoodie.properties" in result.stderr


@pytest.mark.parametrize("name", spark_fixtures() or [pytest.param("", marks=pytest.mark.skip("the fixtures of Hudi are not there"))])
def test_a_table_of_hudi_itself_has_no_findings(name: str, tmp_path: Path) -> None:
    report = verify(TableState.load(LocalStorage(str(unpack_spark_fixture(name, tmp_path)))))
    assert report.findings == ()
