"""Actions on tables with a whole metadata table, crashed at every call: after the next write it says what the table has, or is gone."""

from __future__ import annotations

from contextlib import suppress

import pytest

from lakehouse_engine.errors import CommitOutcomeUnknownError, LakehouseError
from lakehouse_engine.model.instant import Action, State
from lakehouse_engine.services.metadata.building import build
from lakehouse_engine.services.metadata.indexes import create
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.view.table_state import TableState
from tests.crash.checker import check_rows, look
from tests.crash.harness import at
from tests.crash.scenarios import CASES, CASES_OF_9, COLUMNS, PROBES, Case, batch, by_key, copy_of, open_table
from tests.support.metadata_checks import buildable, check_metadata

_NAMES = ("upsert", "delete", "insert overwrite", "delete partitions", "compaction run", "clustering run", "rollback", "restore", "clean")
FOLLOWED = [case for case in (*CASES, *CASES_OF_9) if case.scenario.name in _NAMES or case.scenario.name.startswith("rollback of")]


def with_metadata_table(case: Case) -> MemoryStorage:
    """The scenario's table with every partition of a metadata table; as it is, if something is pending there."""
    storage = copy_of(case.setup().storage)
    try:
        build(storage, buildable(TableState.load(storage)), lock_timeout_ms=1000)
    except LakehouseError:
        pytest.skip("a plan is pending, which a build waits for")
    return storage


def check(storage: Storage, *, may_be_gone: bool) -> bool:
    """Whether there is a metadata table; nothing is wrong with it."""
    found = check_metadata(storage)
    assert found or may_be_gone, "the metadata table is gone"
    return found


@pytest.mark.parametrize("case", FOLLOWED, ids=str)
@pytest.mark.parametrize("fault", [Fault.CRASH_AFTER, Fault.LOST_ACK], ids=str)
def test_the_metadata_table_is_right_after_a_fault_at_every_call(case: Case, fault: Fault) -> None:
    start = with_metadata_table(case)
    trial = FaultyStorage(copy_of(start))
    case.act(open_table(trial))
    goes_back = case.scenario.goes_back is not None
    assert check(trial, may_be_gone=goes_back) or goes_back
    for call, name in enumerate(trial.mutations, 1):
        with at(f"{fault} at call {call} of {len(trial.mutations)}, {name}"):
            storage = copy_of(start)
            with suppress(SimulatedCrash, CommitOutcomeUnknownError, LakehouseError):
                case.act(open_table(FaultyStorage(storage, call, fault)))
            open_table(storage).upsert(batch(PROBES))
            open_table(storage).clean(retain=10)  # files of one that died are listed until it is finished
            check(storage, may_be_gone=goes_back)
            found = look(storage, COLUMNS)
            check_rows(found, {**found.rows, **by_key(*PROBES)})


@pytest.mark.parametrize("case", [case for case in (*CASES, *CASES_OF_9) if case.scenario.name == "upsert"], ids=str)
@pytest.mark.parametrize("fault", [Fault.CRASH_AFTER, Fault.LOST_ACK], ids=str)
def test_an_index_build_that_dies_at_any_call_is_settled_by_a_write_and_taken_up(case: Case, fault: Fault) -> None:
    """The next write finds it out, whatever it left; a second build has the rows of all."""
    start = copy_of(case.setup().storage)
    build(start, ["files"], lock_timeout_ms=1000)
    name = "by_v" if case.version != 6 else "record_index"
    columns = ["v"] if case.version != 6 else None
    trial = FaultyStorage(copy_of(start))
    create(trial, name, columns=columns, lock_timeout_ms=1000)
    for call, mutation in enumerate(trial.mutations, 1):
        with at(f"{fault} at call {call} of {len(trial.mutations)}, {mutation}"):
            storage = copy_of(start)
            with suppress(SimulatedCrash, CommitOutcomeUnknownError, LakehouseError):
                create(FaultyStorage(storage, call, fault), name, columns=columns, lock_timeout_ms=1000)
            open_table(storage).upsert(batch(PROBES))
            assert check(storage, may_be_gone=False)
            state = TableState.load(storage)
            assert not state.config.metadata_partitions_being_built
            assert all(one.state is State.REQUESTED for one in state.timeline.pending() if one.action is Action.INDEXING)
            create(storage, name, columns=columns, if_not_exists=True, lock_timeout_ms=1000)
            assert check(storage, may_be_gone=False)
            state = TableState.load(storage)
            assert "record_index" in state.config.metadata_partitions
            assert not [one for one in state.timeline.pending() if one.action is Action.INDEXING]
