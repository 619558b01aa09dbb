"""What says which files of the history of version 9 count: damaged or gone it is made anew, and little rests on it until then."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.format.v8.history import VERSION_FILE, manifest_name
from lakehouse_engine.repair import repair
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.history import LsmHistory
from lakehouse_engine.verify import verify
from tests.crash.scenarios import batch, create
from tests.support.local_table import LocalTable
from tests.support.readers import assert_same_rows
from tests.support.versions import tables_of
from tests.unit.undo.bringing_back import TIMEOUT, copy_of

KINDS = ("cow", "mor")
HISTORY = ".hoodie/timeline/history"


def archived(kind: str) -> LocalTable:
    """A savepoint that archiving has passed, and manifests, some of them of merged files. On merge-on-read archived logs are live."""
    with tables_of(9):
        storage = MemoryStorage()
        create(storage, kind)
    table = LocalTable(storage, lock_timeout_ms=TIMEOUT)
    for version in range(16):
        table.upsert(batch([("a", version, "x", f"a{version}"), (f"n{version}", version, "y", "new")]))
        if version == 2:
            table.savepoint(name="old")
        if version % 2:
            table.archive(2, 3, merged=3)
    return table


WHOLE = {kind: archived(kind) for kind in KINDS}


def history(table: LocalTable) -> LsmHistory:
    found = table.state.archived_timeline
    assert isinstance(found, LsmHistory)
    return found


def newest(table: LocalTable) -> str:
    return f"{HISTORY}/{manifest_name(history(table).newest_number())}"


def _manifest_goes(table: LocalTable) -> str:
    path = newest(table)
    table.storage.delete(path)
    return path


def _manifest_is_torn(table: LocalTable) -> str:
    path = newest(table)
    table.storage.overwrite(path, table.storage.read(path)[:-3])
    return path


def _a_size_is_wrong(table: LocalTable) -> str:
    path, size = newest(table), str(history(table).current()[-1].size)
    table.storage.overwrite(path, table.storage.read(path).replace(size.encode(), f"{int(size) + 1}".encode()))
    return path


def _a_name_is_wrong(table: LocalTable) -> str:
    path, name = newest(table), history(table).current()[-1].name
    table.storage.overwrite(path, table.storage.read(path).replace(name.encode(), f"3{name[1:]}".encode()))
    return path


def _version_is_no_number(table: LocalTable) -> str:
    table.storage.overwrite(f"{HISTORY}/{VERSION_FILE}", b"!")
    return f"{HISTORY}/{VERSION_FILE}"


def _version_is_older(table: LocalTable) -> str:
    """A checkpoint counts the newest manifest."""
    table.storage.overwrite(f"{HISTORY}/{VERSION_FILE}", b"1")
    return f"{HISTORY}/{VERSION_FILE}"


DAMAGES = (_manifest_goes, _manifest_is_torn, _a_size_is_wrong, _a_name_is_wrong, _version_is_no_number, _version_is_older)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_told_and_made_anew(kind: str, damage: Callable[[LocalTable], str]) -> None:
    whole, table = WHOLE[kind], LocalTable(copy_of(WHOLE[kind].storage), lock_timeout_ms=TIMEOUT)
    instants, order = history(whole).instants(), whole.state.order
    saved = order.moment(next(iter(whole.state.timeline.savepointed)))
    path = damage(table)
    try:
        assert_same_rows(table.read(), whole.read())
    except LakehouseError as error:
        assert path in str(error)  # noqa: PT017 - or the right rows
    assert path in {one.path for one in verify(table.state).findings}
    assert [one.what for one in repair(table.storage, lock_timeout_ms=TIMEOUT, dry_run=True).repaired] == [path]
    assert path in {one.what for one in repair(table.storage, lock_timeout_ms=TIMEOUT).repaired}
    assert verify(table.state).findings == ()
    assert history(table).instants() == instants
    assert [table.state.order.moment(one.requested_time) for one in instants] == [order.moment(one.requested_time) for one in instants]
    assert_same_rows(table.read(meta_columns=True), whole.read(meta_columns=True))
    assert_same_rows(table.read(as_of=saved), whole.read(as_of=saved))
    table.upsert(batch([("q", 1, "x", "q")]))
    table.archive(2, 3)
    table.restore("old")
    assert_same_rows(table.read(), whole.read(as_of=saved))


def test_a_commit_without_logs_reads_no_file_of_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are logs, when archived ones were completed is read of the files that have them."""
    table = LocalTable(copy_of(WHOLE["cow"].storage), lock_timeout_ms=TIMEOUT)
    read: list[str] = []
    original = MemoryStorage.read

    def noting(self: Storage, path: str) -> bytes:
        read.append(path)
        return original(self, path)  # type: ignore[arg-type]

    monkeypatch.setattr(MemoryStorage, "read", noting)
    table.insert(batch([("q", 1, "new", "q")]))
    assert [path for path in read if path.startswith(HISTORY) and path.endswith(".parquet")] == []
