"""A process that changes the table, step by step, until it has made its steps or is killed."""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakehouse_engine.errors import (
    ClusteringError,
    CommitConflictError,
    CommitOutcomeUnknownError,
    CompactionError,
    InstantCleanedError,
    InstantNotFoundError,
    LakehouseError,
    LockTimeoutError,
    RollbackError,
    SavepointError,
)
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.write.tasks import copying
from tests.histories.log import Json, Log, Outcome, entries
from tests.histories.mutants import MUTANTS
from tests.histories.plans import Plan

OPERATION = "history.operation"
"""Key of a commit's metadata: which operation it is of."""
TRIES = 12
_REFUSALS = (CommitConflictError, LockTimeoutError)
_SERVICE_REFUSALS = (
    *_REFUSALS,
    ClusteringError,
    CompactionError,
    InstantCleanedError,
    InstantNotFoundError,
    RollbackError,
    SavepointError,
)
_LONGEST_PAUSE = 0.15

Rows = dict[str, Json]
Write = Callable[[Mapping[str, str]], Any]


class Writer:
    """`name` is the process's own: a process that takes the place of a killed one has another one."""

    def __init__(self, plan: Plan, path: str, log: Log, name: str, chance: random.Random) -> None:
        self.plan, self.name, self.chance = plan, name, chance
        self.table = HoodieTable.open(path, options=plan.all_options)
        self._log, self._made = log, 0

    def newest(self) -> str:
        """The newest completed write."""
        last = self.table.timeline.completed().writes().last()
        assert last is not None, "the table has its first rows"
        return last.requested_time

    def look(self) -> tuple[str, Rows]:
        """An instant, and the rows of that instant by id."""
        while True:
            instant = self.newest()
            try:
                return instant, {row["id"]: row for row in self.table.to_arrow(as_of=instant).to_pylist()}
            except InstantCleanedError as error:  # this process was paused for longer than commits are kept
                self._log.tell(service="look", outcome=Outcome.REFUSED.value, error=type(error).__name__, message=str(error))

    def pending_clusterings(self) -> list[str]:
        """Times of the clusterings that are planned and not completed, oldest first."""
        action = self.table.state.format.clustering_action
        return [one.requested_time for one in self.table.timeline.pending() if one.action is action]

    def cluster_at_last(self, column: str) -> None:
        """Where no process is beside this one, every plan is run, and all files are clustered: no clustering is kept off for good."""
        while self.table.cluster("run").instant is not None:
            pass
        while (done := self.table.cluster(order_by=[column])).instant is not None:
            assert done.groups_lost == 0, f"a clustering that nothing was beside lost groups: {done}"
        assert not self.pending_clusterings(), f"clusterings stay pending: {self.pending_clusterings()}"

    def next_name(self) -> str:
        """Of the operation to come."""
        return f"{self.name}.{self._made}"

    def batch(self, rows: list[Json]) -> pa.Table:
        return pa.Table.from_pylist(rows, schema=self.table.schema)

    def attempt(self, kind: str, what: Json, write: Write) -> bool:
        """Make one write, which is given the metadata to put into its commit. Whether it was acknowledged."""
        name = self.next_name()
        self._made += 1
        began = time.monotonic()
        # What is looked at may be old when it is told, if this process is paused: never older than its beginning.
        self._log.tell(began_operation=name, kind=kind, what=what, seen=self.newest(), at=began)
        try:
            result = write({OPERATION: name})
        except CommitOutcomeUnknownError as error:
            self._ended(name, Outcome.UNKNOWN, error=type(error).__name__, message=str(error))
            return True
        except _REFUSALS as error:
            self._ended(name, Outcome.REFUSED, error=type(error).__name__, message=str(error))
            return False
        except LakehouseError as error:
            if not self.plan.mutant:
                raise
            # As if the process had been killed: what comes of it is not told, and the history goes on.
            self._ended(name, Outcome.UNKNOWN, error=type(error).__name__, message=str(error))
            return True
        if result.instant is None:
            self._ended(name, Outcome.NOTHING, until=self.newest())
        else:
            self._ended(name, Outcome.ACKNOWLEDGED, instant=result.instant)
        for failure in result.failed_services:
            self._log.tell(service="inline", outcome=Outcome.REFUSED.value, error=failure.partition(":")[0], message=failure)
        return True

    def _ended(self, name: str, outcome: Outcome, **more: str) -> None:
        self._log.tell(operation=name, outcome=outcome.value, at=time.monotonic(), **more)

    def until_done(self, attempt: Callable[[], bool]) -> None:
        """Read and write anew while others change what was read."""
        for number in range(TRIES):
            if attempt():
                return
            time.sleep(self.chance.uniform(0, min(_LONGEST_PAUSE, 0.01 * 2**number)))
        self._log.tell(given_up=self.next_name())

    def serve(self, service: str, act: Callable[[], Any], **what: Any) -> Any:
        """Run a table service, of which nothing is expected but that it may be refused; what it answers."""
        self._log.tell(service=service, outcome="began", **what)
        try:
            answer = act()
        except _SERVICE_REFUSALS as error:
            self._log.tell(service=service, outcome=Outcome.REFUSED.value, error=type(error).__name__, message=str(error), **what)
            return None
        self._log.tell(service=service, outcome=Outcome.ACKNOWLEDGED.value, instant=getattr(answer, "instant", None), **what)
        return answer


def run_writer(plan: Plan, path: str, folder: str, slot: int, generation: int) -> None:
    """Writer number `slot`; those of lower generations were killed, and their steps are not made again."""
    from tests.histories.workloads import WORKLOADS

    name = f"w{slot}.{generation}"
    log = Log(Path(folder) / f"{name}.log")
    MUTANTS[plan.mutant]()
    if plan.seed % 2:
        copying.COPIED_FROM = 0  # rewrites copy chunks, small as the files are
    earlier = (Path(folder) / f"w{slot}.{number}.log" for number in range(generation))
    done = sum("step" in entry for one in earlier for entry in entries(one))
    chance = random.Random(f"{plan.seed} {name}")
    try:
        writer = Writer(plan, path, log, name, chance)
        for step in range(done, plan.sizes.operations):
            log.tell(step=step)
            WORKLOADS[plan.workload](plan).step(writer)
        log.tell(cpu=time.process_time())
    except (LakehouseError, AssertionError, LookupError, ValueError, TypeError, OSError):
        log.tell(failed="writer", error=traceback.format_exc())
        raise
