"""A change of the table's version, crashed at every mutating storage call: the table is whole in one of the two versions at any moment, for
new readers and for those that opened it before, and the next write or the same change sees to the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pytest

from lakehouse_engine.errors import InstantCleanedError, LakehouseError
from lakehouse_engine.format.v6.table_format import FormatV6
from lakehouse_engine.format.v8.table_format import FormatV8
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.other_layout import MARK
from lakehouse_engine.verify import verify
from lakehouse_engine.view.table_state import TableState
from tests.crash.harness import at
from tests.crash.scenarios import _archived, _scheduled, batch, copy_of
from tests.support.depth import IS_FULL
from tests.support.local_table import LocalTable
from tests.support.versions import tables_of

Rows = dict[str, tuple[object, ...]]
PROBE = ("probe", 1, "x", "p")
CHANGES = [(6, 9), (9, 6), (6, 8), (8, 6)]
MAKERS = {"archived": _archived, "compaction pending": _scheduled}
SAMPLE = 1 if IS_FULL else 8
"""One of so many calls is crashed, and each of those around the replacement of the properties."""


@dataclass(frozen=True)
class Case:
    name: str
    table_type: str
    start: int
    to: int

    def __str__(self) -> str:
        return f"{self.name}, {self.table_type}, {self.start} to {self.to}"


CASES = [
    Case(name, table_type, start, to)
    for name in MAKERS
    for table_type in ("cow", "mor")
    for start, to in CHANGES
    if (name == "archived" or table_type == "mor")
]
CRASHED = CASES if IS_FULL else [case for case in CASES if {case.start, case.to} == {6, 9}]
FAULTS = [Fault.CRASH_AFTER, Fault.LOST_ACK]
FAULTS += [Fault.CRASH_BEFORE, Fault.TRANSIENT, Fault.PERSISTENT] if IS_FULL else []


def rows_of(table: pa.Table) -> Rows:
    return {row["id"]: (row["ts"], row["part"], row["v"]) for row in table.to_pylist()}


def as_of(table: LocalTable, state: TableState | None, time: str) -> Rows | None:
    """The rows as of that time; nothing where a clean took them."""
    try:
        return rows_of(table.read(state=state, as_of=time))
    except InstantCleanedError:
        return None


class Table:
    """What one case starts from, and what must be read of it."""

    def __init__(self, case: Case) -> None:
        self.case = case
        with tables_of(case.start):
            self.storage = MAKERS[case.name](case.table_type).storage

    @cached_property
    def times(self) -> list[str]:
        return LocalTable(self.storage).instants()

    def readings(self, table: LocalTable, state: TableState | None = None) -> dict[str, Rows]:
        """Now, as of each commit that there was, at the savepoint, and what changed between commits."""
        found = {"now": rows_of(table.read(state=state))}
        found |= {time: rows for time in self.times if (rows := as_of(table, state, time)) is not None}
        if self.case.name == "archived":
            found["good"] = rows_of(table.read(state=state, as_of="good"))
        found["since"] = rows_of(table.read(state=state, query="incremental", begin=self.times[-2], end=self.times[-1]))
        return found

    @cached_property
    def expected(self) -> dict[str, Rows]:
        return self.readings(LocalTable(self.storage))

    def check(self, storage: Storage) -> int:
        """Every reading is as it was; the table's version."""
        table = LocalTable(storage)
        found = self.readings(table)
        wrong = [name for name, rows in self.expected.items() if found.get(name) != rows]
        assert not wrong, f"{wrong[0]}: {found.get(wrong[0])}, not {self.expected[wrong[0]]}"
        return int(table.state.config.version)


def check_in_order(storage: Storage) -> None:
    """One timeline, no mark, and nothing that `verify` finds."""
    state = TableState.load(storage)
    other = FormatV6() if state.format.orders_by_completion else FormatV8()
    assert storage.head(MARK) is None
    assert not ActiveTimeline(storage, other).files()
    report = verify(state, quick=False)
    assert report.ok, report.findings


@pytest.fixture(scope="module")
def made() -> Callable[[Case], Table]:
    known: dict[Case, Table] = {}

    def get(case: Case) -> Table:
        return known.setdefault(case, known.get(case) or Table(case))

    return get


def calls_of(table: Table) -> list[str]:
    storage = FaultyStorage(copy_of(table.storage))
    LocalTable(storage).change_version(table.case.to)
    return storage.mutations


def chosen(calls: list[str]) -> list[int]:
    switch = next(number for number, call in enumerate(calls, 1) if call == "overwrite .hoodie/hoodie.properties")
    near = range(max(1, switch - 3), min(len(calls), switch + 4) + 1)
    return sorted({*range(1, len(calls) + 1, SAMPLE), *near, len(calls)})


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_table_is_the_same_in_its_new_version(case: Case, made: Callable[[Case], Table]) -> None:
    table = made(case)
    storage = copy_of(table.storage)
    LocalTable(storage).change_version(case.to)
    assert table.check(storage) == case.to
    check_in_order(storage)
    LocalTable(storage).change_version(case.start)
    assert table.check(storage) == case.start
    check_in_order(storage)
    if case.name == "archived":
        LocalTable(storage).restore("good")
        assert rows_of(LocalTable(storage).read()) == table.expected["good"]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
@pytest.mark.parametrize("case", CRASHED, ids=str)
def test_a_fault_at_every_call_leaves_a_whole_table(case: Case, fault: Fault, made: Callable[[Case], Table]) -> None:
    table = made(case)
    calls = calls_of(table)
    for call in chosen(calls):
        storage = copy_of(table.storage)
        with at(f"{fault} at call {call} of {len(calls)}, {calls[call - 1]}"):
            before = TableState.load(storage)
            with suppress(SimulatedCrash, LakehouseError):
                LocalTable(FaultyStorage(storage, call, fault)).change_version(case.to)
            assert table.check(storage) in (case.start, case.to)
            assert rows_of(LocalTable(storage).read(state=before.advance())) == table.expected["now"]
            again = copy_of(storage)
            LocalTable(storage).upsert(batch([PROBE]))
            assert rows_of(LocalTable(storage).read()) == {**table.expected["now"], PROBE[0]: PROBE[1:]}
            check_in_order(storage)
            if LocalTable(again).state.config.version != case.to:
                LocalTable(again).change_version(case.to)
            else:
                LocalTable(again).upsert(batch([PROBE]))
            assert LocalTable(again).state.config.version == case.to
            check_in_order(again)


class Watched(FaultyStorage):
    """Calls `look` before each mutating call."""

    def __init__(self, inner: Storage, look: Callable[[str], None]) -> None:
        super().__init__(inner)
        self._look = look

    def _before(self, mutation: str) -> None:
        super()._before(mutation)
        self._look(mutation)


@pytest.mark.parametrize("case", [one for one in CASES if one.name == "archived"], ids=str)
def test_readers_at_any_moment_see_all_of_the_table(case: Case, made: Callable[[Case], Table]) -> None:
    table = made(case)
    storage = copy_of(table.storage)
    opened = TableState.load(storage)
    looks: list[str] = []

    def look(mutation: str) -> None:
        looks.append(mutation)
        with at(f"before {mutation}"):
            reader = LocalTable(storage)
            assert rows_of(reader.read()) == table.expected["now"]
            assert rows_of(reader.read(state=opened.advance())) == table.expected["now"]
            assert rows_of(reader.read(as_of="good")) == table.expected["good"]

    LocalTable(Watched(storage, look)).change_version(case.to)
    assert len(looks) > len(table.times)


class Late(MemoryStorage):
    """A reader's storage, in which something happens between two of its calls."""

    def __init__(self, inner: MemoryStorage, act: Callable[[], None]) -> None:
        super().__init__()
        self.__dict__.update(inner.__dict__)
        self._act: Callable[[], None] | None = act

    def read(self, path: str) -> bytes:
        found = super().read(path)
        act, self._act = self._act, None
        if act is not None and path.endswith("hoodie.properties"):
            act()
        return found


@pytest.mark.parametrize("case", [one for one in CASES if one.name == "archived"], ids=str)
def test_a_reader_that_knew_the_old_properties_does_not_take_an_empty_timeline_for_the_table(
    case: Case, made: Callable[[Case], Table]
) -> None:
    """The version changes after a reader read the properties, and before it listed the timeline."""
    table = made(case)
    storage = copy_of(table.storage)
    assert isinstance(storage, MemoryStorage)
    state = TableState.load(Late(storage, lambda: LocalTable(storage).change_version(case.to) and None))
    assert int(state.config.version) == case.to
    assert rows_of(LocalTable(storage).read(state=state)) == table.expected["now"]


@pytest.mark.parametrize("case", [one for one in CASES if one.name == "archived"], ids=str)
def test_a_writer_that_opened_the_table_before_commits_to_the_new_timeline(case: Case, made: Callable[[Case], Table]) -> None:
    table = made(case)
    storage = copy_of(table.storage)
    writer = LocalTable(storage)
    opened = writer.state
    LocalTable(storage).change_version(case.to)
    written = writer.upsert(batch([PROBE])).instant
    state = opened.advance()
    assert int(state.config.version) == case.to
    assert state.timeline.find(str(written)) is not None
    check_in_order(storage)
