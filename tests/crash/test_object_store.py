"""Every request of every action to an object store that changes something, met by everything that stores and networks do to requests."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import obstore
import pytest

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import CommitOutcomeUnknownError, CommitRuledOutError, LakehouseError, StorageError, TableExistsError
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.services.executor import execution
from lakehouse_engine.services.executor.scheduling import choose, schedule
from lakehouse_engine.services.metadata.building import build
from lakehouse_engine.storage.faults import SimulatedCrash
from lakehouse_engine.verify import verify
from lakehouse_engine.view.table_state import TableState
from tests.crash.checker import check_recovered, check_rows, look
from tests.crash.harness import at
from tests.crash.object_harness import ObjectHarness
from tests.crash.requests import FAULTS, Bucket, Fault, Meet, Moment, Process, buckets
from tests.crash.scenarios import CASES, CASES_OF_9, COLUMNS, PROBES, START, Case, batch, by_key, create, open_table
from tests.crash.test_crash_points import tell
from tests.support.local_table import LocalTable
from tests.support.metadata_checks import buildable, check_metadata
from tests.support.versions import tables_of
from tests.unit.services.executor.clustering import ROWS, Clustering, rows, two_files
from tests.unit.services.executor.clustering import batch as clustered_batch

BY_NAME = {str(case): case for case in [*CASES, *CASES_OF_9]}


@pytest.mark.parametrize("fault", FAULTS, ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_action_survives_a_fault_at_every_request(case: Case, fault: Fault) -> None:
    harness, began = ObjectHarness(case), time.perf_counter()
    calls = harness.calls()
    for call, name in enumerate(calls, 1):
        if not harness.is_excepted(name, fault):
            with at(f"{fault}: request {call} of {len(calls)}, {name}"):
                harness.check_request(call, fault)
    assert calls
    tell(harness, f"{len(calls)} requests", began)


@pytest.mark.parametrize("case", CASES_OF_9, ids=str)
def test_action_on_a_later_version_survives_a_death_at_every_request(case: Case) -> None:
    test_action_survives_a_fault_at_every_request(case, Fault(Meet.DIES_LATE, Moment.LATER))


def request(harness: ObjectHarness, ending: str) -> int:
    """The number of the first request whose name ends so."""
    return next(number for number, name in enumerate(harness.calls(), 1) if name.endswith(ending))


LATE = ("upsert, cow", "upsert, mor", "insert overwrite, cow", "compaction run, mor")
LATE_COMMITS = [Fault(Meet.ABANDONED, moment) for moment in Moment] + [Fault(Meet.DIES_LATE, Moment.LATER)]


@pytest.mark.parametrize("fault", LATE_COMMITS, ids=str)
@pytest.mark.parametrize("name", [*LATE, "upsert, cow, v9", "upsert, mor, v9", "insert overwrite, cow, v9", "compaction run, mor, v9"])
def test_a_commit_that_arrives_when_nobody_waits_for_it_names_no_file_that_is_gone(name: str, fault: Fault) -> None:
    harness = ObjectHarness(BY_NAME[name])
    harness.check_request(request(harness, "commit"), fault)


@pytest.mark.parametrize("fault", [Fault(Meet.ABANDONED, Moment.LATER), Fault(Meet.DIES_LATE, Moment.LATER)], ids=str)
@pytest.mark.parametrize("name", ["rollback, cow", "restore, cow", "restore, mor"])
def test_a_plan_to_go_back_that_arrives_after_later_writes_is_dropped(name: str, fault: Fault) -> None:
    harness = ObjectHarness(BY_NAME[name])
    harness.check_request(request(harness, f"{name.partition(',')[0]}.requested"), fault)


@pytest.mark.parametrize("name", ["rollback, cow", "restore, cow"])
def test_going_back_whose_plan_is_not_answered_is_not_said_to_have_failed(name: str) -> None:
    """For it may come yet, and is carried out then."""
    case = BY_NAME[name]
    call = request(ObjectHarness(case), f"{name.partition(',')[0]}.requested")
    with buckets():
        bucket = Bucket(case.setup().storage)
        process = Process(bucket.store, call, Fault(Meet.ABANDONED, Moment.LATER))
        with pytest.raises(CommitOutcomeUnknownError):
            case.act(open_table(bucket.process(process)))
        check_rows(look(bucket.storage, COLUMNS), case.setup().rows)
        process.arrive()
        open_table(bucket.storage).upsert(batch(PROBES))
        check_rows(look(bucket.storage, COLUMNS), {**case.after(), **by_key(*PROBES)})


def test_what_a_write_says_whose_commit_is_not_answered() -> None:
    """Ruled out, it is safe to make it again; where the store takes nothing more, it is not known."""
    case = BY_NAME["upsert, cow"]
    call = request(ObjectHarness(case), "commit")
    for meet, error in ((Meet.ABANDONED, CommitRuledOutError), (Meet.UNREACHABLE, CommitOutcomeUnknownError)):
        with buckets():
            bucket = Bucket(case.setup().storage)
            process = _Once(bucket.store, call, Fault(meet, Moment.END if meet is Meet.ABANDONED else None))
            with pytest.raises(error):
                case.act(open_table(bucket.process(process)))
            case.act(open_table(bucket.storage))
            found = look(bucket.storage, COLUMNS)
            check_rows(found, case.after())
            check_recovered(bucket.storage, found)


class _Once(Process):
    """The commit's own requests are lost, and the empty one's is not."""

    def ask(self, what: str, key: str, send: Callable[[], Any], *, changes: bool = False) -> Any:
        is_other = self.changes.count(what) >= 4 and self.fault is not None and self.fault.meet is Meet.ABANDONED
        return send() if is_other else super().ask(what, key, send, changes=changes)


def test_a_compaction_that_is_run_again_leaves_the_files_of_a_run_that_may_be_completed_yet() -> None:
    case = BY_NAME["compaction run, mor"]
    call = request(ObjectHarness(case), ".commit")
    with buckets():
        bucket = Bucket(case.setup().storage)
        first = Process(bucket.store, call, Fault(Meet.ABANDONED, Moment.LATER))
        with pytest.raises(CommitOutcomeUnknownError):
            case.act(open_table(bucket.process(first)))
        again = _Beside(bucket.store)
        again.first = first
        with pytest.raises(LakehouseError):
            case.act(open_table(bucket.process(again)))
        assert not first.late
        check_rows(look(bucket.storage, COLUMNS), case.after())
        open_table(bucket.storage).upsert(batch(PROBES))
        found = look(bucket.storage, COLUMNS)
        check_rows(found, {**case.after(), **by_key(*PROBES)})
        check_recovered(bucket.storage, found, services=())


@pytest.mark.parametrize("arrives", ["before the next run completes it", "when the next run has ended"])
def test_a_log_compaction_that_may_be_completed_yet_is_ruled_out(arrives: str) -> None:
    """Its log would be deleted for the next run, and named by the commit that comes."""
    case = BY_NAME["log compaction run, mor"]
    call = request(ObjectHarness(case), ".deltacommit")
    with buckets():
        bucket = Bucket(case.setup().storage)
        first = Process(bucket.store, call, Fault(Meet.ABANDONED, Moment.LATER))
        with pytest.raises(CommitOutcomeUnknownError):
            case.act(open_table(bucket.process(first)))
        again = _Before(bucket.store, first if arrives.startswith("before") else None)
        case.act(open_table(bucket.process(again)))
        first.arrive()
        assert not first.late
        check_rows(look(bucket.storage, COLUMNS), case.after())
        table = open_table(bucket.storage)
        table.upsert(batch(PROBES))
        assert table.schedule_compaction(log_compaction=True).instant is not None
        assert table.run_compaction(log_compaction=True).state == "completed"
        found = look(bucket.storage, COLUMNS)
        check_rows(found, {**case.after(), **by_key(*PROBES)})
        check_recovered(bucket.storage, found, services=())


@pytest.mark.parametrize("arrives", ["before the next run", "when the next run has ended"])
def test_a_clustering_that_may_be_completed_yet_is_ruled_out(arrives: str) -> None:
    service = Clustering()
    with buckets():
        counted = Process((bucket := Bucket()).store)
        plan_and_run(service, bucket, counted)
        call = next(number for number, name in enumerate(counted.changes, 1) if name.endswith(".replacecommit"))
        first = Process((bucket := Bucket()).store, call, Fault(Meet.ABANDONED, Moment.LATER))
        with pytest.raises(CommitOutcomeUnknownError):
            plan_and_run(service, bucket, first)
        if arrives.startswith("before"):
            first.arrive()
        table = LocalTable(bucket.storage)
        pending = choose(service.kind, table.state, None)
        assert (pending is None) is arrives.startswith("before")
        if pending is not None:
            assert execution.run(service, table.state, pending, LocalRunner(), lock_timeout_ms=1000, wait=True) is None
            first.arrive()
        assert not first.late
        assert rows(table) == ROWS
        table.insert(clustered_batch(5))
        assert rows(table) == {**ROWS, 5: 0}
        assert verify(table.state).ok
        assert any(entry.name.startswith("sorted-") for entry in table.storage.walk()) is (pending is None)


def plan_and_run(service: Clustering, bucket: Bucket, process: Process) -> None:
    two_files(bucket.storage)
    scheduled = schedule(service, bucket.storage, lock_timeout_ms=1000, alone_ms=1000)
    assert scheduled is not None
    state = TableState.load(bucket.process(process))
    execution.run(service, state, scheduled[0], LocalRunner(), lock_timeout_ms=1000, wait=True)


@pytest.mark.parametrize("version", [TableVersion.SIX, TableVersion.NINE])
def test_the_metadata_table_has_nothing_of_a_clustering_that_died_while_it_was_published(version: TableVersion) -> None:
    """A write changes its groups a moment later, while the lock of the dead run still counts."""
    with buckets():
        time, counted = _plan_with_metadata(bucket := Bucket(), version), Process(bucket.store)
        LocalTable(bucket.process(counted)).run_clustering(time)
        published = next(number for number, what in enumerate(counted.changes, 1) if what.endswith(".replacecommit"))
        told = next(number for number, what in enumerate(counted.changes, 1) if ".hoodie/metadata/" in what)
        assert told < published
        for call in range(told, published + 1):
            time = _plan_with_metadata(bucket := Bucket(), version)
            died = Process(bucket.store, call, Fault(Meet.DIES_LATE, Moment.LATER))
            with pytest.raises(SimulatedCrash):
                LocalTable(bucket.process(died)).run_clustering(time)
            table = LocalTable(bucket.storage)
            table.upsert(batch([("a", 3, "x", "later"), ("c", 3, "y", "later")]))
            died.arrive()
            found = by_key(*(tuple(row.values()) for row in table.read(["id", *COLUMNS]).to_pylist()))
            assert found == {**by_key(*START), **by_key(("a", 3, "x", "later"), ("c", 3, "y", "later"))}
            assert check_metadata(bucket.storage)


def _plan_with_metadata(bucket: Bucket, version: TableVersion) -> str:
    """A clustering of all rows is planned; the metadata table knows their places."""
    with tables_of(version):
        create(bucket.storage, "cow")
    table = LocalTable(bucket.storage)
    table.upsert(batch(START))
    build(bucket.storage, buildable(table.state), lock_timeout_ms=1000)
    time = table.schedule_clustering("v").instant
    assert time is not None
    return time


class _Before(Process):
    """What the first process sent arrives before this one creates the completed file."""

    def __init__(self, store: Any, first: Process | None) -> None:
        super().__init__(store)
        self.first = first

    def ask(self, what: str, key: str, send: Callable[[], Any], *, changes: bool = False) -> Any:
        if self.first is not None and what.startswith("put ") and key.endswith(".deltacommit"):
            self.first.arrive()
        return super().ask(what, key, send, changes=changes)


class _Beside(Process):
    """What the first process sent arrives while this one writes its first file."""

    first: Process

    def ask(self, what: str, key: str, send: Callable[[], Any], *, changes: bool = False) -> Any:
        if what.startswith("complete "):
            self.first.arrive()
        return super().ask(what, key, send, changes=changes)


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_last_request_of_an_upload_without_an_answer_is_found_out(table_type: str) -> None:
    case = BY_NAME[f"bulk insert, {table_type}"]
    harness = ObjectHarness(case)
    call = next(number for number, name in enumerate(harness.calls(), 1) if name.startswith("complete "))
    with buckets():
        bucket = Bucket(case.setup().storage)
        case.act(open_table(bucket.process(Process(bucket.store, call, Fault(Meet.ANSWER_LOST)))))
        check_rows(look(bucket.storage, COLUMNS), case.after())


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.moment is None], ids=str)
def test_create_table_is_there_or_not(fault: Fault) -> None:
    with buckets():
        trial = Bucket()
        process = Process(trial.store)
        create(trial.process(process), "mor")
        assert process.changes
        for call in range(1, len(process.changes) + 1):
            bucket = Bucket()
            for storage in (bucket.process(Process(bucket.store, call, fault)), bucket.storage):
                with suppress(SimulatedCrash, StorageError, TableExistsError):
                    create(storage, "mor")
            check_rows(look(bucket.storage, COLUMNS), {})
            open_table(bucket.storage).insert(batch(START))
            check_rows(look(bucket.storage, COLUMNS), by_key(*START))


def test_the_bucket_keeps_conditions() -> None:
    """What all of this rests on."""
    with buckets():
        store = Bucket().store
        first = obstore.put(store, "a", b"1", mode="create")
        with pytest.raises(obstore.exceptions.AlreadyExistsError):
            obstore.put(store, "a", b"2", mode="create")
        obstore.put(store, "a", b"2", mode={"e_tag": first["e_tag"]})
        with pytest.raises(obstore.exceptions.PreconditionError):
            obstore.put(store, "a", b"3", mode={"e_tag": first["e_tag"]})
