"""Whatever the processes were told is what the tables hold: no row is lost, doubled or half-written.

LAKEHOUSE_MINUTES   how long the processes go on; without it the test is skipped
"""

from __future__ import annotations

import collections
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine import Lakehouse
from tests.dbt.side_by_side import shop
from tests.dbt.side_by_side.ledger import Ledger
from tests.support.processes import die_with_parent
from tests.support.readers import assert_same_rows, read_with_hudi_rs

MINUTES = float(os.environ.get("LAKEHOUSE_MINUTES", "0"))
ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 600

pytestmark = [
    pytest.mark.skipif(not MINUTES, reason="three JVMs for as long as LAKEHOUSE_MINUTES says: make dbt-side-by-side"),
    pytest.mark.timeout(int(MINUTES * 60) + 3 * PATIENCE),
]


class Run:
    """What is left when the processes have stopped."""

    def __init__(self, folder: Path) -> None:
        self.lakehouse = Lakehouse(shop.warehouse(folder))
        self.folder, self.entries = folder, list(Ledger.read(folder))

    def rows(self, table: str) -> pa.Table:
        """As the engine reads them, after they were compared with what hudi-rs reads."""
        found = self.lakehouse.table(f"{shop.SCHEMA}.{table}")
        rows = found.to_arrow(meta_columns=True)
        assert_same_rows(read_with_hudi_rs(Path(found.path)), rows)
        return rows

    def done(self, table: str) -> list[dict[str, Any]]:
        return [entry for entry in self.entries if entry["table"] == table and "failed" not in entry]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("shop")
    shop.make(folder)
    # A process of its own: this one has no JVM, so that the three have its memory.
    subprocess.run(shop.command(folder, "first"), env=shop.environment(ROOT), check=True, timeout=PATIENCE)
    running = {name: _begin(folder, name) for name in (*shop.PROCESSES, "session")}
    try:
        _wait(folder, running)
        yield Run(folder)
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def _begin(folder: Path, name: str) -> subprocess.Popen[bytes]:
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            shop.command(folder, name), env=shop.environment(ROOT), cwd=folder, stdout=log, stderr=log, preexec_fn=die_with_parent
        )


def _wait(folder: Path, running: dict[str, subprocess.Popen[bytes]]) -> None:
    until = time.monotonic() + MINUTES * 60
    while time.monotonic() < until and all(process.poll() is None for process in running.values()):
        time.sleep(1)
    (folder / "stop").touch()
    for name, process in running.items():
        assert process.wait(PATIENCE) == 0, f"{name}: {(folder / f'{name}.log').read_text()[-4000:]}"


@pytest.mark.parametrize("table", shop.tables(*shop.COUNTERS))
def test_each_run_counted_once(run: Run, table: str) -> None:
    expected = dict.fromkeys(range(shop.IDS), 0)
    for entry in run.done(table):
        for identity in expected:
            expected[identity] += entry["part"] in (None, identity % shop.PARTS)
    rows = run.rows(table)
    assert sorted(zip(rows["id"].to_pylist(), rows["n"].to_pylist(), strict=True)) == sorted(expected.items())


@pytest.mark.parametrize("table", shop.tables("append"))
def test_appended_rows_are_there_once(run: Run, table: str) -> None:
    rows = run.rows(table)
    found = Counter(zip(rows["step"].to_pylist(), rows["id"].to_pylist(), strict=True))
    assert found == Counter((entry["step"], identity) for entry in run.done(table) for identity in range(5))


@pytest.mark.parametrize("table", shop.tables("microbatch"))
def test_batches_hold_rows_of_their_source_once(run: Run, table: str) -> None:
    """Those of the last look at it: a source that changes while a batch runs is read again by the next run."""
    events, rows = run.rows("events").select(["id", "at"]), run.rows(table).select(["id", "at"])
    assert rows.num_rows == len(set(rows["id"].to_pylist()))
    assert rows.join(events, ["id", "at"], join_type="left anti").num_rows == 0
    assert {0, 1, 2, 3, 4, 5, 6, 7, 8} <= set(rows["id"].to_pylist())


def test_every_event_happened_once(run: Run) -> None:
    happened = Counter(int(entry["step"]) for entry in run.done("events"))
    assert Counter(run.rows("events")["id"].to_pylist()) == happened + Counter(range(9))
    states = Counter(int(entry["step"]) % 6 for entry in run.done("states"))
    rows = run.rows("states")
    assert dict(zip(rows["id"].to_pylist(), rows["n"].to_pylist(), strict=True)) == {identity: states[identity] for identity in range(6)}


@pytest.mark.parametrize("table", shop.tables("history"))
def test_history_has_one_row_of_each_state_and_one_that_is_open(run: Run, table: str) -> None:
    rows = run.rows(table).select(["id", "n", "dbt_valid_from", "dbt_valid_to"]).sort_by([("id", "ascending"), ("n", "ascending")])
    assert pc.sum(pc.is_null(rows["dbt_valid_to"])).as_py() == 6
    of_each = collections.defaultdict(list)
    for row in rows.to_pylist():
        of_each[row["id"]].append(row)
    for states in of_each.values():
        assert len({state["n"] for state in states}) == len(states)
        ends = [state["dbt_valid_to"] for state in states]
        assert ends == [*(state["dbt_valid_from"] for state in states[1:]), None], states


def test_failures_are_conflicts_that_name_the_other_writer(run: Run) -> None:
    """And they are few: who was overtaken tries again."""
    failed = [entry for entry in run.entries if "failed" in entry]
    print(f"{len(run.entries)} writes, {len(failed)} that gave up; {dict(Counter(entry['table'] for entry in failed))}")
    strange = [entry for entry in failed if "by process" not in entry["failed"]]
    assert not strange, strange[:3]
    assert len(failed) < len(run.entries) / 10
