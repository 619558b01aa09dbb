"""Commits of files that the driver does not see, and attempts that outlive their commit: without a rule against them the harm shows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import lakehouse_engine.commit.publish as publish
import lakehouse_engine.write.tasks.attempt as attempt
from lakehouse_engine.errors import LateAttemptError, UnseenFileError
from lakehouse_engine.format.file_names import parse_log_file
from lakehouse_engine.manifest.from_commits import FromCommits
from lakehouse_engine.manifest.named import NamedFiles
from lakehouse_engine.model.instant import format_instant_time, parse_instant_time
from lakehouse_engine.model.logged import NOT_TOLD
from lakehouse_engine.storage.memory import MemoryStorage
from tests.crash.checker import check_recovered, check_rows, expect, look
from tests.crash.scenarios import CASES, COLUMNS, START, batch, copy_of, create, open_table
from tests.support.local_table import LocalTable
from tests.support.workers import Retrying, Workers, data_file

BY_NAME = {str(case): case for case in CASES}
Patch = pytest.MonkeyPatch
WRITES = pytest.mark.parametrize("name", ["bulk insert, cow", "upsert, cow", "upsert, mor", "compaction run, mor"])


def check_private_disk(name: str) -> None:
    """Workers have the table as it was when their disk was copied: the commit fails, and the table is as it was."""
    case = BY_NAME[name]
    start = case.setup()
    storage = copy_of(start.storage)
    table = open_table(storage)
    table.runner = Workers(lambda: copy_of(storage))
    try:
        case.act(table)
    except UnseenFileError:
        check_rows(look(storage, COLUMNS), start.rows)
    else:
        check_rows(look(storage, COLUMNS), case.after())


@WRITES
def test_files_on_a_private_disk_are_not_published(name: str) -> None:
    check_private_disk(name)


@WRITES
def test_mutant_that_does_not_look_for_files_is_caught(name: str, monkeypatch: Patch) -> None:
    monkeypatch.setattr(publish, "check_seen", lambda state, time, metadata: 0)
    with pytest.raises(AssertionError):
        check_private_disk(name)


def check_late_attempt(name: str) -> None:
    """An attempt goes on after the commit of its retry, and leaves nothing."""
    case = BY_NAME[name]
    storage = copy_of(case.setup().storage)
    table = open_table(storage)
    late = table.runner = Retrying(data_file)
    case.act(table)
    outcome = late.go_on()
    found = look(storage, COLUMNS)
    check_rows(found, case.after())
    check_recovered(storage, found)
    expect(isinstance(outcome, LateAttemptError), f"the attempt reports {outcome}")


@WRITES
def test_late_attempts_leave_nothing(name: str) -> None:
    check_late_attempt(name)


@pytest.mark.parametrize("name", ["bulk insert, cow", "upsert, cow"])
def test_mutant_whose_attempts_do_not_look_again_is_caught(name: str, monkeypatch: Patch) -> None:
    monkeypatch.setattr(attempt.FileAttempt, "end", lambda self: None)
    with pytest.raises(AssertionError):
        check_late_attempt(name)


def _filled(table_type: str) -> LocalTable:
    storage = MemoryStorage()
    create(storage, table_type)
    table = open_table(storage)
    table.insert(batch(START))
    table.upsert(batch([("a", 2, "x", "a2")]))
    return table


def _rows(table: LocalTable) -> list[str]:
    return sorted(map(str, table.read(meta_columns=True).to_pylist()))


def check_late_base_file() -> None:
    """The process of an attempt is gone between its file and its last look."""
    table = _filled("cow")
    expected = _rows(table)
    base = table.state.view.latest_slices()[0].base_file
    assert base is not None
    table.storage.create(base.path.replace(base.file_id, "late-0"), table.storage.read(base.path))
    expect(_rows(table) == expected, "a file is read that no commit names")


def test_late_base_file_is_not_read() -> None:
    check_late_base_file()


def test_mutant_whose_view_takes_unnamed_files_is_caught(monkeypatch: Patch) -> None:
    monkeypatch.setattr(NamedFiles, "has", lambda self, base: True)
    with pytest.raises(AssertionError):
        check_late_base_file()


def check_late_base_file_of_nobody() -> None:
    """Files came to an object store when their writes, between all others, had been taken back; then the timeline's begin passed those."""
    table = _filled("cow")
    base = table.state.view.latest_slices()[0].base_file
    assert base is not None
    for number in range(2, 7):
        table.upsert(batch([("a", number, "x", f"a{number}")]))
    expected = _rows(table)
    for number, instant in enumerate(table.instants()):
        taken_back = format_instant_time(parse_instant_time(instant) + timedelta(milliseconds=1))
        late = base.path.replace(base.file_id, f"late-{number}").replace(base.instant_time, taken_back)
        table.storage.create(late, table.storage.read(base.path))
    expect(_rows(table) == expected, "a file of a write that is not on the timeline is read")
    table.clean(1)
    while table.archive(2, 3).archived:
        start = table.state.timeline.start
        assert start is not None
        expect(_rows(table) == expected, f"a file of a write that was taken back is read, since the timeline begins at {start}")


def test_late_base_file_of_a_write_that_was_taken_back_is_not_read() -> None:
    check_late_base_file_of_nobody()


def check_late_log() -> None:
    """As `check_late_base_file`, of a log: what it says of a row is older than what was logged since."""
    table = _filled("mor")
    log = next(piece.log_files[0] for piece in table.state.view.latest_slices() if piece.log_files)
    content = table.storage.read(log.path)
    table.upsert(batch([("a", 2, "x", "a3")]))
    expected = _rows(table)
    late = parse_log_file(log.partition_path, log.name.replace(".log.1_", ".log.9_"))
    table.storage.create(late.path, content)
    expect(_rows(table) == expected, "a log is read that no commit names")


def test_late_log_is_not_read() -> None:
    check_late_log()


def test_mutant_that_reads_unnamed_logs_is_caught(monkeypatch: Patch) -> None:
    def nothing(self: FromCommits, as_of: str | None) -> Any:
        return NOT_TOLD

    monkeypatch.setattr(FromCommits, "told", nothing)
    with pytest.raises(AssertionError):
        check_late_log()
