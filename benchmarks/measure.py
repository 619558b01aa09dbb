"""Runs one contender through its cells, in its own process, and checks every answer before a time counts.

For each cell: warm-up runs, then the repeats; then the state that the last repeat left is exported by the contender as plain Parquet
and its checksum, computed here, is held against the prepared one. Scans are checked in every run by the values they return.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from benchmarks.cells import UPSERTS, Cell, Measurement, Peak, Status
from benchmarks.checksum import checksum_of
from benchmarks.client import Answer, ContenderError, ContenderProcess
from benchmarks.contenders import ContenderSpec
from benchmarks.data import SCHEMA, Prepared, read_tables
from benchmarks.tables import DataFiles, TableSpace

LOAD_CALLS = {Cell.BULK_INSERT: "bulk_insert", Cell.BULK_INSERT_ARROW: "bulk_insert_arrow"}
SCANS = {Cell.SCAN_NARROW: "narrow", Cell.SCAN_WIDE: "wide"}


class WrongResultError(Exception):
    """A contender's table or answer is not what the data says; its time does not count."""


@dataclass(frozen=True)
class Plan:
    """How often: `warmup` runs that are not timed, then `repeats` that are.

    `profiles` is a folder: each cell then has one more run, whose sampling profile goes there.
    """

    warmup: int
    repeats: int
    profiles: Path | None = None

    @property
    def runs(self) -> int:
        return self.warmup + self.repeats


class ContenderRun:
    """One contender on one prepared size."""

    def __init__(self, spec: ContenderSpec, process: ContenderProcess, prepared: Prepared, space: TableSpace, plan: Plan) -> None:
        self._spec = spec
        self._process = process
        self._prepared = prepared
        self._space = space
        self._plan = plan

    def measure(self, cell: Cell) -> Measurement:
        """The cell's measurement; an error or a wrong result is a measurement without times."""
        if not self._spec.does(cell):
            return Measurement(self._spec.name, cell, Status.ABSENT, self._spec.absent[cell])
        try:
            return self._measured(cell)
        except (ContenderError, WrongResultError) as error:
            return Measurement(self._spec.name, cell, Status.ERROR, f"{type(error).__name__}: {error}")

    def _measured(self, cell: Cell) -> Measurement:
        if cell in LOAD_CALLS:
            return self._load(cell)
        self.ensure_pristine()
        if cell in SCANS:
            return self._scan(cell)
        if cell is Cell.SCAN_INCREMENTAL:
            return self._scan_incremental()
        return self._change(cell)

    def ensure_pristine(self) -> None:
        """Load the table once, untimed, when no load cell has left it."""
        if self._space.pristine.exists():
            return
        cell = next(cell for cell in LOAD_CALLS if self._spec.does(cell))
        table = self._space.fresh()
        self._process.call(LOAD_CALLS[cell], table=str(table), source=self._prepared.source("base"))
        self._verify(table, "base")
        self._space.keep(table)

    def _load(self, cell: Cell) -> Measurement:
        source = self._prepared.source("base")
        table = Path()

        def run() -> Answer:
            nonlocal table
            table = self._space.fresh()
            return self._process.call(LOAD_CALLS[cell], table=str(table), source=source)

        answers = self._repeat(cell, run)
        self._verify(table, "base")
        if not self._space.pristine.exists():
            self._space.keep(table)
        return self._result(cell, answers, DataFiles.of(table).added_since(DataFiles({})))

    def _change(self, cell: Cell) -> Measurement:
        call = "upsert_noop" if cell is Cell.UPSERT_NOOP else "upsert"
        batch = UPSERTS.get(cell, "updates-1")
        table = Path()

        def run() -> Answer:
            nonlocal table
            table = self._space.restored()
            return self._process.call(call, table=str(table), source=self._prepared.source(batch))

        answers = self._repeat(cell, run)
        self._verify(table, "base" if cell is Cell.UPSERT_NOOP else batch)
        return self._result(cell, answers, DataFiles.of(table).added_since(DataFiles.of(self._space.pristine)))

    def _scan(self, cell: Cell) -> Measurement:
        table = str(self._space.restored())
        query = SCANS[cell]
        return self._checked_scan(cell, query, lambda: self._process.call("scan", table=table, query=query))

    def _scan_incremental(self) -> Measurement:
        table = str(self._space.restored())
        since = self._process.call("version", table=table).value
        self._process.call("upsert", table=table, source=self._prepared.source("updates-1"))
        return self._checked_scan(
            Cell.SCAN_INCREMENTAL, "updates-1", lambda: self._process.call("scan_incremental", table=table, since=since)
        )

    def _checked_scan(self, cell: Cell, query: str, run: Callable[[], Answer]) -> Measurement:
        """`query` is the name of the expected values."""
        expected = self._prepared.scans[query]
        answers = self._repeat(cell, run)
        for answer in answers:
            if answer.value != expected:
                raise WrongResultError(f"the scan returned {answer.value}, the data says {expected}")
        return self._result(cell, answers, (0, 0))

    def _repeat(self, cell: Cell, run: Callable[[], Answer]) -> list[Answer]:
        """The timed answers."""
        answers = [run() for _ in range(self._plan.runs)][self._plan.warmup :]
        if self._plan.profiles is not None:
            with self._process.profiled(self._plan.profiles / f"{self._spec.name}-{self._prepared.rows}-{cell.value}.profile.txt"):
                run()
        return answers

    def _verify(self, table: Path, state: str) -> None:
        """Raises `WrongResultError` unless the table holds exactly the rows of `state`."""
        target = self._space.scratch("export")
        self._process.call("export", table=str(table), target=str(target))
        try:
            found = checksum_of(read_tables([str(path) for path in sorted(target.rglob("*.parquet"))]), SCHEMA)
        except (KeyError, pa.ArrowException) as error:
            raise WrongResultError(f"the exported table cannot be compared: {error}") from error
        shutil.rmtree(target)
        if found != self._prepared.checksums[state]:
            raise WrongResultError(f"the table has {found}, the data says {self._prepared.checksums[state]}")

    def _result(self, cell: Cell, answers: list[Answer], written: tuple[int, int]) -> Measurement:
        peak = Peak()
        for answer in answers:
            peak = peak.merge(answer.peak)
        seconds = tuple(round(answer.seconds, 4) for answer in answers)
        return Measurement(self._spec.name, cell, Status.OK, "", seconds, peak, answers[-1].jobs, *written)
