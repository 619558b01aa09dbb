"""Rows are read once, before the table is locked, and written by what the table is by then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.commit.expected import ExpectedState
from lakehouse_engine.commit.staging import StagingArea
from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import ChangedSinceReadError, CommitConflictError, RecordKeyError, SchemaIncompatibleError
from lakehouse_engine.format.file_names import TEMP_FOLDER
from lakehouse_engine.model.write_stats import WriteOperationType as Op
from lakehouse_engine.model.write_stats import WriteResult
from lakehouse_engine.options import LOCK_TIMEOUT_MS, WriteOptions
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.timeline.processes import begin_work, end_work
from lakehouse_engine.write.alter import evolve_schema
from lakehouse_engine.write.operation import execute_write
from lakehouse_engine.write.request import WriteRequest
from tests.support.staged_rows import StagedRows

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string()), ("p", pa.string())])
FILLED = {"hoodie.datasource.write.reconcile.schema": "true"}
AT_ONCE = {LOCK_TIMEOUT_MS.key: "0"}


def rows(ids: str, value: str, partition: str = "x") -> pa.Table:
    numbers = [int(one) for one in ids.split()]
    return pa.table({"id": numbers, "v": [value] * len(numbers), "p": [partition] * len(numbers)}, schema=SCHEMA)


def write(table: HoodieTable, operation: Op, query: StagedRows, options: dict[str, str] | None = None, **given: Any) -> WriteResult:
    request = WriteRequest(operation, query, WriteOptions.read({**table.config.properties, **(options or {})}), **given)
    return execute_write(table.storage, request, LocalRunner(1))


@pytest.fixture(params=["cow", "mor"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HoodieTable:
    made = Lakehouse(str(tmp_path)).create_table(
        "s.t", schema=SCHEMA, record_key=["id"], partition_by=["p"], table_type=request.param
    )
    made.insert(rows("1 2", "old"))
    return made


def values(table: HoodieTable) -> dict[int, str]:
    read = table.to_arrow(["id", "v"])
    assert len(set(read["id"].to_pylist())) == read.num_rows
    return dict(zip(read["id"].to_pylist(), read["v"].to_pylist(), strict=True))


def staged(table: HoodieTable) -> list[str]:
    return [entry.name for entry in table.storage.list(TEMP_FOLDER) if entry.name.startswith("staged-")]


OPERATIONS: dict[str, tuple[Op, dict[str, str], dict[int, str]]] = {
    "upsert": (Op.UPSERT, {}, {1: "theirs", 2: "mine", 3: "mine", 9: "theirs"}),
    "insert": (Op.INSERT, {}, {1: "theirs", 2: "mine", 3: "mine", 9: "theirs"}),
    "delete": (Op.DELETE, {}, {1: "theirs", 9: "theirs"}),
    "bulk insert": (Op.BULK_INSERT, {}, {1: "theirs", 2: "mine", 3: "mine", 9: "theirs"}),
    "bulk insert of single keys": (
        Op.BULK_INSERT,
        {"hoodie.combine.before.insert": "true"},
        {1: "theirs", 2: "mine", 3: "mine", 9: "theirs"},
    ),
    "overwrite without a look at keys": (Op.INSERT_OVERWRITE, {"hoodie.combine.before.insert": "false"}, {2: "mine", 3: "mine"}),
    "overwrite": (Op.INSERT_OVERWRITE, {"hoodie.combine.before.insert": "true"}, {2: "mine", 3: "mine"}),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_others_commit_while_the_rows_are_read_and_both_writes_count(table: HoodieTable, name: str) -> None:
    operation, options, expected = OPERATIONS[name]
    if operation in (Op.INSERT, Op.BULK_INSERT):
        table.delete(rows("2", "").select(["id", "p"]))
    query = StagedRows(rows("2 3", "mine"), lambda: table.upsert(rows("1 9", "theirs"), options=AT_ONCE))
    write(table, operation, query, options)
    assert values(table) == expected
    assert query.times == 1
    assert staged(table) == []


def test_two_queries_that_wait_for_each_other_both_end(table: HoodieTable) -> None:
    inner = StagedRows(rows("1", "inner"))
    outer = StagedRows(rows("2", "outer"), lambda: write(table, Op.UPSERT, inner, AT_ONCE))
    write(table, Op.UPSERT, outer, AT_ONCE)
    assert values(table) == {1: "inner", 2: "outer"}
    assert (inner.times, outer.times) == (1, 1)


def test_rows_are_keyed_again_where_the_table_has_got_columns_meanwhile(table: HoodieTable) -> None:
    wider = pa.schema([*SCHEMA, pa.field("extra", pa.string())])

    def widen() -> None:
        evolve_schema(table.storage, wider, lock_timeout_ms=0)
        table.upsert(rows("1", "theirs").append_column("extra", pa.array(["said"])))

    query = StagedRows(rows("2 3", "mine"), widen)
    write(table, Op.UPSERT, query, FILLED)
    read = table.to_arrow(["id", "v", "extra"]).sort_by("id")
    assert read.to_pydict() == {"id": [1, 2, 3], "v": ["theirs", "mine", "mine"], "extra": ["said", None, None]}
    assert query.times == 1


def test_keys_to_delete_are_keyed_again_as_well(table: HoodieTable) -> None:
    wider = pa.schema([*SCHEMA, pa.field("extra", pa.string())])
    query = StagedRows(rows("3", "mine"), lambda: evolve_schema(table.storage, wider, lock_timeout_ms=0))
    write(table, Op.UPSERT, query, FILLED, delete_keys=StagedRows(rows("1", "").select(["id", "p"])))
    assert values(table) == {2: "old", 3: "mine"}


def test_rows_that_the_changed_table_cannot_hold_are_refused(table: HoodieTable) -> None:
    other = pa.schema([("id", pa.int64()), ("v", pa.int64()), ("p", pa.string())])
    fresh = pa.table({"id": [7], "v": [7], "p": ["x"]}, schema=other)
    query = StagedRows(rows("2", "mine"), lambda: table.insert_overwrite_table(fresh, replace_schema=True))
    with pytest.raises(SchemaIncompatibleError):
        write(table, Op.UPSERT, query)
    assert table.to_arrow(["id", "v"]).to_pydict() == {"id": [7], "v": [7]}
    assert staged(table) == []


def test_generated_keys_are_of_the_commits_instant_and_differ(tmp_path: Path) -> None:
    table = Lakehouse(str(tmp_path)).create_table("s.t", schema=SCHEMA)
    query = StagedRows(rows("1 2", "mine"), lambda: table.insert(rows("3 4", "theirs")))
    done = write(table, Op.INSERT, query)
    read = table.to_arrow(meta_columns=True)
    keys = read["_hoodie_record_key"].to_pylist()
    mine = {key for key, value in zip(keys, read["v"].to_pylist(), strict=True) if value == "mine"}
    assert mine == {f"{done.instant}_0_0", f"{done.instant}_0_1"}
    assert len(set(keys)) == 4


def test_rows_that_cannot_be_held_are_refused_before_the_lock_is_asked_for(table: HoodieTable) -> None:
    query = StagedRows(pa.table({"id": [None], "v": ["mine"], "p": ["x"]}, schema=SCHEMA))
    with TableLock(table.storage), pytest.raises(RecordKeyError), ThreadPoolExecutor(1) as pool:
        pool.submit(write, table, Op.UPSERT, query, AT_ONCE).result()
    assert staged(table) == []


def test_a_query_that_fails_leaves_nothing(table: HoodieTable) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    before = table.timeline.instants
    with pytest.raises(ZeroDivisionError):
        write(table, Op.UPSERT, StagedRows(rows("1", "mine"), fail))
    assert table.timeline.instants == before
    assert staged(table) == []


def test_a_query_that_fails_for_others_have_changed_what_it_reads_is_told_so(table: HoodieTable) -> None:
    def overtaken() -> None:
        table.upsert(rows("1", "theirs"))
        raise FileNotFoundError("cleaned")

    with pytest.raises(ChangedSinceReadError):
        write(table, Op.UPSERT, StagedRows(rows("1", "mine"), overtaken), expected=ExpectedState.of(table.state))
    assert values(table) == {1: "theirs", 2: "old"}
    assert staged(table) == []


def test_rows_for_a_table_that_was_replaced_meanwhile_do_not_go_into_the_other_one(table: HoodieTable) -> None:
    def replace() -> None:
        other = Lakehouse(str(Path(table.path).parents[1])).create_table("s.other", schema=SCHEMA, record_key=["id"], partition_by=["p"])
        other.insert(rows("5", "other"))
        for source, target in ((table.path, f"{table.path}.old"), (other.path, table.path)):
            Path(source).rename(target)

    with pytest.raises(CommitConflictError, match="put in the place"):
        write(table, Op.UPSERT, StagedRows(rows("1", "mine"), replace))
    assert values(HoodieTable.open(table.path)) == {5: "other"}


DIES = """
import os, sys
from lakehouse_engine.commit.expected import ExpectedState
from lakehouse_engine.commit.staging import StagingArea
from lakehouse_engine.storage.local import LocalStorage
storage = LocalStorage(sys.argv[1])
with storage.open_output(f"{StagingArea(storage).folder()}/0.arrow") as sink:
    sink.write(b"rows")
os.kill(os.getpid(), 9)
"""


def test_what_a_killed_process_staged_goes_with_the_next_write_and_what_a_living_one_did_stays(table: HoodieTable) -> None:
    assert subprocess.run([sys.executable, "-c", DIES, table.path], check=False).returncode == -9
    (dead, *_) = staged(table)
    assert dead in " ".join(disorder.what for disorder in table.repair(dry_run=True).repaired)
    living = StagingArea(table.storage)
    with table.storage.open_output(f"{living.folder()}/0.arrow") as sink:
        sink.write(b"rows")
    table.upsert(rows("1", "new"))
    assert {name.removesuffix(".owner") for name in staged(table)} == {living.folder().rpartition("/")[2]}
    living.remove()
    assert staged(table) == []


def test_what_another_machine_staged_goes_after_a_day(table: HoodieTable) -> None:
    known = json.loads(begin_work("other"))
    end_work("other")
    path = f"{TEMP_FOLDER}/staged-other"
    table.storage.create(f"{path}.owner", json.dumps({**known, "host": "elsewhere"}).encode())
    table.upsert(rows("1", "new"))
    assert staged(table) == ["staged-other.owner"]
    old = os.stat(f"{table.path}/{path}.owner").st_mtime - 25 * 3600
    os.utime(f"{table.path}/{path}.owner", (old, old))
    table.upsert(rows("1", "newer"))
    assert staged(table) == []
