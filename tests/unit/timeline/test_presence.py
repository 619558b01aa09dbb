"""A table that goes while it is used: one error says so, whatever was met first."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.commit.transaction import Transaction
from lakehouse_engine.errors import (
    CommitOutcomeUnknownError,
    IllegalTransitionError,
    LakehouseError,
    LockTimeoutError,
    MissingFileError,
    StoredFileNotFoundError,
    TableNotFoundError,
)
from lakehouse_engine.read import arrow_scan
from lakehouse_engine.storage.base import Listing, Storage
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.presence import told_if_gone
from lakehouse_engine.view.table_state import TableState
from tests.unit.timeline.locks.tables import table_in

ROWS = pa.table({"id": [1, 2], "v": [0, 0]})


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    table = Lakehouse(str(tmp_path)).create_table("s.t", schema=ROWS.schema, record_key=["id"])
    table.upsert(ROWS)
    return table


@pytest.mark.parametrize("error", [StoredFileNotFoundError("x"), MissingFileError("x"), IllegalTransitionError("x")])
def test_what_fails_because_the_table_is_gone_says_so_and_keeps_the_cause(error: LakehouseError) -> None:
    with pytest.raises(TableNotFoundError, match="dropped or renamed") as told, told_if_gone(MemoryStorage()):
        raise error
    assert told.value.__cause__ is error


@pytest.mark.parametrize("error", [CommitOutcomeUnknownError("x"), LockTimeoutError("x"), ValueError("x")])
def test_an_unknown_outcome_and_what_is_no_symptom_stay_as_they_are(error: Exception) -> None:
    with pytest.raises(type(error), match="x"), told_if_gone(MemoryStorage()):
        raise error


def test_what_fails_while_the_table_is_there_stays_as_it_is() -> None:
    storage = MemoryStorage()
    table_in(storage)
    with pytest.raises(StoredFileNotFoundError, match="x"), told_if_gone(storage):
        raise StoredFileNotFoundError("x")


def _go(table: HoodieTable) -> None:
    """As an administrator's `rm -r`, who takes no lock."""
    shutil.rmtree(table.path)


@pytest.mark.parametrize(
    "when", [(Transaction, "start"), (Transaction, "inflight"), (Transaction, "complete"), (ActiveTimeline, "complete")]
)
def test_a_write_whose_table_goes_is_told_that_it_is_gone(
    table: HoodieTable, monkeypatch: pytest.MonkeyPatch, when: tuple[type, str]
) -> None:
    owner, name = when
    real: Callable[..., object] = getattr(owner, name)

    def after_it_went(self: object, *given: object) -> object:
        _go(table)
        return real(self, *given)

    monkeypatch.setattr(owner, name, after_it_went)
    with pytest.raises(TableNotFoundError):
        table.upsert(ROWS)


@pytest.mark.parametrize(
    "act", [lambda table: table.clean(), lambda table: table.savepoint(), lambda table: table.upsert(ROWS), lambda table: table.repair()]
)
def test_whatever_a_handle_is_asked_once_its_table_is_gone_is_told_so_and_brings_nothing_back(
    table: HoodieTable, act: Callable[[HoodieTable], object]
) -> None:
    _go(table)
    with pytest.raises(TableNotFoundError):
        act(table)
    assert not Path(table.path).exists()


def test_a_reader_whose_table_goes_is_told_that_it_is_gone(table: HoodieTable, monkeypatch: pytest.MonkeyPatch) -> None:
    read = arrow_scan.read_arrow

    def after_it_went(*given: object, **named: object) -> object:
        _go(table)
        return read(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr("lakehouse_engine.table.read_arrow", after_it_went)
    with pytest.raises(TableNotFoundError):
        table.to_arrow()


@pytest.mark.parametrize("gone", [True, False])
def test_a_timeline_that_is_listed_while_the_table_goes_is_not_that_of_a_table_with_fewer_rows(
    table: HoodieTable, monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    """It was: the listing of a folder that is gone is empty, and one that meets the move may have a part."""
    listing = LocalStorage.list

    def in_part(self: Storage, path: str = "") -> Listing:
        found = listing(self, path)  # type: ignore[arg-type]
        if path != ".hoodie":
            return found
        _go(table)
        return [] if gone else [entry for entry in found if entry.name.endswith(".requested")]

    monkeypatch.setattr(LocalStorage, "list", in_part)
    with pytest.raises(TableNotFoundError):
        TableState.load(table.storage)
