"""A writer and a compactor at work on one table at the same time, in threads and in processes: no row is lost, none comes back."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotDone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.options import CompactionOptions, WriteOptions
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.scan import plan_snapshot
from lakehouse_engine.services.compact import schedule_and_run
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.verify import verify
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.batch.input import ArrowInput
from lakehouse_engine.write.create import TableSpec, create_table
from lakehouse_engine.write.operation import execute_write
from lakehouse_engine.write.request import WriteRequest
from tests.support.readers import assert_same_rows, read_with_hudi_rs

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64())])
KEYS, ROUNDS, TIMEOUT_MS = 200, 12, 60_000
OPTIONS = WriteOptions(lock_timeout_ms=TIMEOUT_MS)


def key(number: int) -> tuple[str, str]:
    return f"k{number:04d}", f"p{number % 3}"


def batch(numbers: list[int], ts: int) -> pa.Table:
    ids, partitions = zip(*map(key, numbers), strict=True)
    return pa.table([list(ids), list(partitions), [ts] * len(numbers)], schema=SCHEMA)


def history() -> list[tuple[WriteOperationType, list[int], int]]:
    """What the writer does: an upsert of every third key and some new ones, then a delete of some, round after round."""
    steps = [(WriteOperationType.UPSERT, list(range(KEYS)), 0)]
    for round_ in range(1, ROUNDS):
        new = range(KEYS + 10 * round_, KEYS + 10 * round_ + 10)
        steps.append((WriteOperationType.UPSERT, [*range(round_ % 3, KEYS, 3), *new], round_))
        steps.append((WriteOperationType.DELETE, list(range(round_, KEYS, 17)), round_))
    return steps


def expected() -> dict[str, int]:
    rows: dict[str, int] = {}
    for operation, numbers, ts in history():
        for number in numbers:
            if operation is WriteOperationType.DELETE:
                rows.pop(key(number)[0], None)
            else:
                rows[key(number)[0]] = ts
    return rows


def create(folder: Path) -> None:
    spec = TableSpec("t", SCHEMA, record_key=("id",), ordering_fields=("ts",), partition_by=("p",), table_type="mor")
    create_table(LocalStorage(str(folder)), spec)


def write_all(root: str) -> None:
    for operation, numbers, ts in history():
        request = WriteRequest(operation, ArrowInput(batch(numbers, ts)), OPTIONS)
        execute_write(LocalStorage(root), request, LocalRunner())
        # Who waits for the lock looks now and then, and must find it free.
        time.sleep(0.1)


def compact_until(root: str, written: object) -> None:
    """Compact again and again until there is nothing left after the last write."""
    while True:
        done = written.is_set()  # type: ignore[attr-defined]
        result = schedule_and_run(LocalStorage(root), CompactionOptions(), OPTIONS, LocalRunner(), lock_timeout_ms=TIMEOUT_MS)
        if done and result.instant is None:
            return


def check(folder: Path) -> None:
    state = TableState.load(LocalStorage(str(folder)))
    found = read_arrow(plan_snapshot(state), meta_columns=True)
    assert dict(zip(found.column("id").to_pylist(), found.column("ts").to_pylist(), strict=True)) == expected()
    assert found.num_rows == len(expected())
    assert_same_rows(found, read_with_hudi_rs(folder))
    assert verify(state).ok
    writes = list(state.timeline.completed().writes())
    compactions = [place for place, instant in enumerate(writes) if instant.action is Action.COMMIT]
    # They did run beside each other.
    assert len(compactions) > 1
    assert compactions[0] < len(writes) - 3
    assert not any(piece.log_files for piece in state.view.latest_slices())


class Slow(LocalRunner):
    """Tells that a compaction has begun, and lets none end before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = threading.Event(), threading.Event()

    def run(self, function: Any, tasks: Sequence[Any], *, name: str) -> list[Any]:
        made = super().run(function, tasks, name=name)
        self.begun.set()
        assert self.go.wait(60)
        return made


def test_a_long_compaction_is_completed_after_all_commits_that_were_made_while_it_ran(tmp_path: Path) -> None:
    create(tmp_path)
    storage, steps, slow = LocalStorage(str(tmp_path)), history(), Slow()
    half = len(steps) // 2
    for operation, numbers, ts in steps[:half]:
        execute_write(storage, WriteRequest(operation, ArrowInput(batch(numbers, ts)), OPTIONS), LocalRunner())
    with ThreadPoolExecutor(1) as pool:
        # It does not wait for locks: what it made is not thrown away because the lock is taken when it is done.
        running = pool.submit(schedule_and_run, storage, CompactionOptions(), OPTIONS, slow, lock_timeout_ms=0)
        assert slow.begun.wait(60)
        for operation, numbers, ts in steps[half:]:
            execute_write(storage, WriteRequest(operation, ArrowInput(batch(numbers, ts)), OPTIONS), LocalRunner())
        with TableLock(storage):
            slow.go.set()
            with pytest.raises(NotDone):
                running.result(1.5)
        done = running.result(60)
    assert done.instant is not None
    state = TableState.load(storage)
    assert state.timeline.completed().writes().contains(done.instant)
    found = read_arrow(plan_snapshot(state))
    assert dict(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True)) == expected()
    assert verify(state).ok


def test_in_two_threads(tmp_path: Path) -> None:
    create(tmp_path)
    written = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        compactor = pool.submit(compact_until, str(tmp_path), written)
        writer = pool.submit(write_all, str(tmp_path))
        try:
            writer.result(300)
        finally:
            written.set()
        compactor.result(300)
    check(tmp_path)


def test_in_two_processes(tmp_path: Path) -> None:
    create(tmp_path)
    context = multiprocessing.get_context("spawn")
    written = context.Event()
    compactor = context.Process(target=compact_until, args=(str(tmp_path), written))
    writer = context.Process(target=write_all, args=(str(tmp_path),))
    compactor.start()
    writer.start()
    writer.join(300)
    written.set()
    compactor.join(300)
    assert (writer.exitcode, compactor.exitcode) == (0, 0)
    check(tmp_path)
