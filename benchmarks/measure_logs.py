"""The cells of tables with logs: what a contender leaves beside its base files, read, compacted and added to.

All start from five upserts of 1 %. That these are beside the base files, and are gone after a compaction, is looked at too.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.cells import LOGGED, LOGGED_UPSERTS, SERIES_UPSERTS, SNAPSHOTS, Cell, Measurement
from benchmarks.client import Answer, ContenderError
from benchmarks.measure import ContenderRun, WrongResultError
from benchmarks.series import batch_name
from benchmarks.tables import DataFiles

STATE = "logged"
_COLD = (Cell.SNAPSHOT_NARROW_COLD, Cell.SNAPSHOT_WIDE_COLD)
_AFTER = batch_name(LOGGED_UPSERTS)


class LogsRun(ContenderRun):
    """One contender on one prepared size, the cells with logs included."""

    _unlogged: str | None = None

    def _measured(self, cell: Cell) -> Measurement:
        if cell is Cell.UPSERT_SERIES:
            self.ensure_pristine()
            return self._series()
        if cell not in LOGGED:
            return super()._measured(cell)
        self.ensure_logged()
        if cell is Cell.COMPACTION:
            return self._compaction()
        if cell is Cell.READ_OPTIMIZED:
            return self._read_optimized()
        return self._snapshot(cell)

    def ensure_logged(self) -> None:
        """Make the table with logs once, untimed. What failed once is not tried again for the next cell."""
        if self._space.state(STATE).exists():
            return
        if self._unlogged is None:
            try:
                self._make_logged()
            except (ContenderError, WrongResultError) as error:
                self._unlogged = str(error)
        if self._unlogged is not None:
            raise WrongResultError(f"no table with logs: {self._unlogged}")

    def _make_logged(self) -> None:
        self.ensure_pristine()
        table = self._space.restored()
        for number in range(1, LOGGED_UPSERTS + 1):
            self._upsert(table, number)
        self._verify(table, _AFTER)
        if self._deltas(table) == 0:
            raise WrongResultError("the upserts left nothing beside the base files: something compacted, or nothing was logged")
        self._space.keep(table, STATE)

    def _snapshot(self, cell: Cell) -> Measurement:
        """A cold run reads a copy that the session has not seen; warm runs read one copy again and again."""
        query, table = SNAPSHOTS[cell], self._space.restored(STATE)

        def run() -> Answer:
            at = self._space.restored(STATE) if cell in _COLD else table
            return self._process.call("scan", table=str(at), query=query)

        return self._checked_scan(cell, f"{query} after {_AFTER}", run)

    def _read_optimized(self) -> Measurement:
        """New keys none, so the base files say what they said before the upserts."""
        table = str(self._space.restored(STATE))
        return self._checked_scan(
            Cell.READ_OPTIMIZED, "narrow", lambda: self._process.call("scan_read_optimized", table=table, query="narrow")
        )

    def _compaction(self) -> Measurement:
        table = Path()

        def run() -> Answer:
            nonlocal table
            table = self._space.restored(STATE)
            return self._process.call("compact", table=str(table))

        answers = self._repeat(Cell.COMPACTION, run)
        left = self._deltas(table)
        if left:
            raise WrongResultError(f"{left} logs, delete files or deletion vectors are left after the compaction")
        self._verify(table, _AFTER)
        return self._result(Cell.COMPACTION, answers, DataFiles.of(table).added_since(DataFiles.of(self._space.state(STATE))))

    def _series(self) -> Measurement:
        """Twenty upserts in a row on one table, each timed once: later ones meet the logs of earlier ones."""
        table = self._space.restored()
        answers = [self._upsert(table, number) for number in range(1, SERIES_UPSERTS + 1)]
        self._verify(table, batch_name(SERIES_UPSERTS))
        return self._result(Cell.UPSERT_SERIES, answers, DataFiles.of(table).added_since(DataFiles.of(self._space.pristine)))

    def _upsert(self, table: Path, number: int) -> Answer:
        return self._process.call("upsert", table=str(table), source=self._prepared.source(batch_name(number)))

    def _deltas(self, table: Path) -> int:
        return int(self._process.call("deltas", table=str(table)).value)
