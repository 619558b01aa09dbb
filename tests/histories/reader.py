"""Processes that read the table over and over while others write it: whole states only, and no failure within what is retained."""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from lakehouse_engine.errors import InstantCleanedError, LakehouseError
from lakehouse_engine.table import HoodieTable
from tests.histories.log import Json, Log
from tests.histories.plans import RETAINED, Plan
from tests.support.readers import META_COLUMNS

STOP = "stop"
"""A file in the folder of the logs: all writers are done."""
_PAUSE = 1.0
"""Most seconds between two rounds of readings."""
COMMIT_TIME = META_COLUMNS[0]


class Reader:
    def __init__(self, plan: Plan, path: str, log: Log, chance: random.Random) -> None:
        self.table = HoodieTable.open(path, options=plan.all_options)
        self._log, self._chance = log, chance
        self._checkpoint = ""

    def snapshot(self) -> None:
        began, seen = time.monotonic(), self._writes()[-1]
        rows = _rows(self.table)
        self._log.tell(reading="snapshot", began=began, seen=seen, until=self._writes()[-1], rows=rows)

    def as_of(self) -> None:
        """Of one of the last commits, not so old that it may be cleaned before it was read."""
        instant = self._chance.choice(self._writes()[-RETAINED // 2 :])
        self._within(instant, lambda: self._log.tell(reading="as_of", at=instant, rows=_rows(self.table, as_of=instant)))

    def saved(self) -> None:
        """As of a savepoint."""
        for savepoint in self.table.savepoints()[:1]:
            try:
                rows = _rows(self.table, as_of=savepoint.instant)
            except InstantCleanedError:
                if savepoint.instant in self.table.timeline.savepointed:
                    raise
                continue  # it was deleted meanwhile
            self._log.tell(reading="as_of", at=savepoint.instant, rows=rows)

    def changes(self) -> None:
        """What came since the last time."""
        writes = self._writes()
        begin, end = self._checkpoint or writes[0], writes[-1]

        def read() -> None:
            found = self.table.to_arrow(query="incremental", begin=begin, end=end, meta_columns=True)
            names = [COMMIT_TIME, *self.table.schema.names]
            rows = [list(row.values()) for row in found.select(names).to_pylist()]
            self._log.tell(reading="changes", begin=begin, end=end, rows=rows)

        self._checkpoint = end
        self._within(begin, read)

    def _writes(self) -> list[str]:
        return [instant.requested_time for instant in self.table.timeline.completed().writes()]

    def _within(self, instant: str, read: Callable[[], None]) -> None:
        """A reader that was slower than a whole retention of commits may be told so."""
        try:
            read()
        except InstantCleanedError as error:
            passed = sum(one > instant for one in self._writes())
            self._log.tell(failed="reading", cleaned=instant, passed=passed, error=str(error))


def _rows(table: HoodieTable, as_of: str | None = None) -> list[list[object]]:
    found = table.to_arrow(as_of=as_of)
    return [list(row.values()) for row in found.select(table.schema.names).to_pylist()]


def run_reader(plan: Plan, path: str, folder: str, number: int) -> None:
    log, chance = Log(Path(folder) / f"r{number}.log"), random.Random(f"{plan.seed} r{number}")
    try:
        reader = Reader(plan, path, log, chance)
        while not (Path(folder) / STOP).exists():
            for read in (reader.snapshot, reader.as_of, reader.changes, reader.saved):
                read()
            time.sleep(chance.uniform(0, _PAUSE))
        log.tell(cpu=time.process_time())
    except (LakehouseError, LookupError, ValueError, TypeError, OSError):
        log.tell(failed="reader", error=traceback.format_exc())
        raise


def as_json(reading: Json) -> str:
    """In short, for a message."""
    return ", ".join(f"{key}={value}" for key, value in reading.items() if key != "rows")
