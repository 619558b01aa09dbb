"""Incremental readers who had read what a rollback took back are told, as behind a restore."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from lakehouse_engine.errors import CorruptInstantError, RollbackUnfinishedError, StorageError, TimelineRestoredError
from lakehouse_engine.format.v6.metadata_avro import decode_note
from lakehouse_engine.format.v6.plans_codec import decode_plan, encode_plan
from lakehouse_engine.model.instant import Action, State
from lakehouse_engine.model.plans import HoodieInstantInfo, HoodieRollbackMetadata, HoodieRollbackPlan
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.repair import repair
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.restores import WAS_PUBLISHED
from lakehouse_engine.undo import rollback as undo
from lakehouse_engine.verify import verify
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.local_table import LocalTable
from tests.support.versions import state_path, version_of_new_tables

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])


def batch(*pairs: tuple[int, int]) -> pa.Table:
    return pa.table({"id": [key for key, _ in pairs], "v": [v for _, v in pairs]}, schema=SCHEMA)


class Read:
    """A table of one commit, and a second that somebody had read up to."""

    def __init__(self, table_type: str = "cow") -> None:
        self.storage = MemoryStorage()
        create_table(self.storage, TableSpec("t", SCHEMA, ["id"], ["v"], [], table_type, version=version_of_new_tables()))
        self.table = LocalTable(self.storage)
        self.moments: dict[str, str] = {}
        self.first = self.upsert((1, 1), (2, 1))
        self.read = self.upsert((1, 666), (3, 666))

    def upsert(self, *pairs: tuple[int, int]) -> str:
        made = str(self.table.upsert(batch(*pairs)).instant)
        self.moments[made] = self.table.state.order.moment(made)
        return made

    def changes(self, begin: str, **more: Any) -> list[tuple[int, int]]:
        """What changed since an instant, for somebody who had read up to when it was completed."""
        found = self.table.read(["id", "v"], query="incremental", begin=self.moments.get(begin, begin), **more)
        return sorted(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))


@pytest.fixture(params=["cow", "mor"])
def made(request: pytest.FixtureRequest) -> Read:
    return Read(request.param)


def test_a_reader_behind_a_rollback_is_told(made: Read) -> None:
    rolled = made.table.rollback()
    made.upsert((2, 2))
    with pytest.raises(TimelineRestoredError, match="a write of the table was rolled back") as raised:
        made.changes(made.read)
    context = raised.value.context
    assert (context["restore"], context["target"], context["rolled_back"]) == (rolled.instant, made.first, made.read)
    assert made.changes(made.read, on_restore="resync") == [(1, 1), (2, 2)]
    assert made.changes(made.read, on_restore="rewind") == [(2, 2)]


def test_who_had_not_read_it_or_read_later_goes_on(made: Read) -> None:
    made.table.rollback()
    after = made.upsert((2, 2))
    assert made.changes(made.first) == [(2, 2)]
    assert made.changes(after) == []
    assert made.changes("earliest") == [(1, 1), (2, 2)]


def test_of_several_rollbacks_the_one_that_went_furthest_back_counts(made: Read) -> None:
    third = made.upsert((1, 777))
    made.table.rollback()
    made.table.rollback()
    made.upsert((2, 2))
    with pytest.raises(TimelineRestoredError) as raised:
        made.changes(third)
    assert raised.value.context["target"] == made.first
    assert made.changes(third, on_restore="rewind") == [(2, 2)]


def test_the_first_write_of_a_table_is_rolled_back() -> None:
    storage = MemoryStorage()
    create_table(storage, TableSpec("t", SCHEMA, ["id"], [], [], "cow", version=version_of_new_tables()))
    table = LocalTable(storage)
    only = table.upsert(batch((1, 1))).instant
    table.rollback()
    assert only is not None
    with pytest.raises(TimelineRestoredError):
        table.read(query="incremental", begin=only)
    table.upsert(batch((2, 2)))
    assert table.read(["id"], query="incremental", begin=only, on_restore="rewind")["id"].to_pylist() == [2]


def test_a_dead_write_was_read_by_nobody(made: Read) -> None:
    dead = made.upsert((9, 9))
    made.storage.delete(next(entry.path for entry in made.storage.walk(".hoodie") if dead in entry.name and entry.name.endswith("commit")))
    made.upsert((2, 2))
    assert [one.action for one in made.table.state.timeline if one.action is Action.ROLLBACK]
    assert made.changes(dead) == [(2, 2)]


def test_a_rolled_back_service_took_no_row() -> None:
    made = Read("mor")
    read = made.upsert((1, 777))
    compacted = made.table.compact().instant
    assert compacted is not None
    assert made.table.rollback().rolled_back == compacted
    assert made.changes(compacted) == made.changes(read) == []


def test_a_rollback_without_a_note_counts_as_before(made: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo, "_changed_rows", lambda state, instant: False)
    made.table.rollback()
    assert made.changes(made.read) == []


@pytest.mark.table_versions(6)
def test_it_stays_on_the_active_timeline_when_others_are_archived(made: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    rolled = made.table.rollback().instant
    monkeypatch.setattr(undo, "_changed_rows", lambda state, instant: False)
    plain = []
    for v in range(2, 8):
        made.upsert((2, v))
        plain.append(str(made.table.rollback().instant))
        made.upsert((2, v))
    if made.table.state.config.table_type is TableType.MERGE_ON_READ:
        made.table.compact()
    made.table.clean(1)
    made.table.archive(2, 3)
    kept = [one.requested_time for one in made.table.state.timeline if one.action is Action.ROLLBACK]
    assert kept[0] == rolled
    assert plain[0] not in kept
    with pytest.raises(TimelineRestoredError):
        made.changes(made.read)
    assert verify(made.table.state).ok


def test_it_stays_when_the_table_is_restored_to_before_it(made: Read) -> None:
    made.table.rollback()
    made.upsert((2, 2))
    made.table.restore(to=made.first)
    with pytest.raises(TimelineRestoredError):
        made.changes(made.read)
    assert verify(made.table.state).ok


def test_one_that_is_cut_off_tells_when_it_is_finished(made: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*arguments: object) -> None:
        raise StorageError("here")

    monkeypatch.setattr(undo, "execute_rollback", stop)
    with pytest.raises(RollbackUnfinishedError):
        made.table.rollback()
    monkeypatch.undo()
    with pytest.raises(TimelineRestoredError):
        made.changes(made.read)
    made.upsert((2, 2))
    with pytest.raises(TimelineRestoredError):
        made.changes(made.read)


@pytest.mark.parametrize("state", [State.REQUESTED, State.COMPLETED])
def test_either_file_tells_and_a_repair_keeps_it(made: Read, state: State) -> None:
    made.table.rollback()
    table_format, (rolled,) = made.table.state.format, [one for one in made.table.state.timeline if one.action is Action.ROLLBACK]
    paths = {one: f"{table_format.timeline_folder}/{table_format.file_name(rolled.at(one))}" for one in (State.REQUESTED, State.COMPLETED)}
    whole = made.storage.read(paths[state])
    made.storage.overwrite(paths[state], whole[:-3])
    with pytest.raises(TimelineRestoredError):
        made.changes(made.read)
    repair(made.storage, lock_timeout_ms=1000)
    assert decode_note("HoodieRollbackPlan" if state is State.REQUESTED else "HoodieRollbackMetadata", made.storage.read(paths[state]))
    for path in paths.values():
        made.storage.overwrite(path, b"Obj\x01")
    with pytest.raises(CorruptInstantError):
        made.changes(made.read)


def test_it_is_told_of_where_hudi_finished_it(made: Read) -> None:
    """From our plan, after our process had died; Hudi's outcome has no note."""
    rolled = made.table.rollback().instant
    path = state_path(made.storage, f"{rolled}.rollback")
    made.storage.overwrite(path, encode_plan(decode_plan(HoodieRollbackMetadata, made.storage.read(path)), sealed=False))
    with pytest.raises(TimelineRestoredError):
        made.changes(made.read)


def test_one_that_is_damaged_does_not_stop_a_restore_half_way(made: Read) -> None:
    rolled = str(made.table.rollback().instant)
    made.upsert((2, 2))
    for entry in made.storage.walk(".hoodie"):
        if entry.name.startswith(rolled):
            made.storage.overwrite(entry.path, b"Obj\x01")
    made.table.restore(to=made.first)
    assert not made.table.state.timeline.pending()
    with pytest.raises(CorruptInstantError):
        made.changes(made.read)
    repaired = repair(made.storage, lock_timeout_ms=1000).repaired
    (mended,) = (one for one in repaired if one.what.endswith(".rollback"))
    assert "has to read the table anew" in mended.message
    assert verify(made.table.state).ok


def test_a_note_is_passed_over_by_readers_that_do_not_know_it() -> None:
    plan = HoodieRollbackPlan(instant_to_rollback=HoodieInstantInfo(commit_time="1", action="commit"), rollback_requests=())
    for sealed in (True, False):
        noted, plain = encode_plan(plan, sealed=sealed, note=WAS_PUBLISHED), encode_plan(plan, sealed=sealed)
        assert list(fastavro.reader(io.BytesIO(noted))) == list(fastavro.reader(io.BytesIO(plain)))
        assert decode_plan(HoodieRollbackPlan, noted) == decode_plan(HoodieRollbackPlan, plain) == plan
        assert (decode_note("HoodieRollbackPlan", noted), decode_note("HoodieRollbackPlan", plain)) == (WAS_PUBLISHED, None)
    for place in range(len(noted := encode_plan(plan, note=WAS_PUBLISHED))):
        flipped = bytearray(noted)
        flipped[place] ^= 1
        try:
            assert decode_note("HoodieRollbackPlan", bytes(flipped)) == WAS_PUBLISHED
        except CorruptInstantError:
            continue
        except Exception as error:
            raise AssertionError(place) from error
