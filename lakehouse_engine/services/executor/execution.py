"""Run a pending plan.

 1. under the table lock: undo what a dead run left, make the plan fit the table, mark it inflight; if the commit of a dead run may still
    arrive, an empty commit takes its name, and the plan is finished (`fence_lost_commit`)
 2. run its tasks; a service with a lease releases the table lock before
 3. under the table lock, however long the wait for it: if the plan is still there, complete the instant

A failure before step 3 returns the plan to its scheduled state. The plan itself stays: logs may be named after it.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from typing import Generic

from lakehouse_engine.commit.concurrency.attempts import open_to_attempts
from lakehouse_engine.commit.fence_lost_commit import is_closed, is_run_again, may_come, rule_out
from lakehouse_engine.commit.locked import locked_table
from lakehouse_engine.commit.publish import Publication, take_back_files
from lakehouse_engine.commit.table_clock import completion_time
from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.errors import CommitOutcomeUnknownError, LakehouseError, LockTimeoutError
from lakehouse_engine.format.file_names import marker_folder
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Instant, State
from lakehouse_engine.read.complete_slices import check_complete
from lakehouse_engine.read.scan import check_readable
from lakehouse_engine.services.executor.lease import leased
from lakehouse_engine.services.executor.scheduling import pending_plans
from lakehouse_engine.services.executor.service import Job, Plan, Service, Task
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

_LEAST_PATIENCE_MS = 1_000


@dataclass(frozen=True, slots=True)
class Done(Generic[Plan, Task]):
    """A published job, and the metadata of its commit."""

    job: Job[Plan, Task]
    metadata: HoodieCommitMetadata


def run(
    service: Service[Plan, Task], state: TableState, instant: Instant, runner: TaskRunner, *, lock_timeout_ms: int, wait: bool
) -> Done[Plan, Task] | None:
    """Carry out the pending plan `instant` of `state`; None if another executor has done so, or the plan was dropped.

    Without `wait`, the run does not wait for an executor that runs the plan, nor for a Hudi writer at work. Raises as `leased`, as
    `locked_table` when it begins, and as the service does. After an error the table is as before.
    """
    execution = _Execution(service, state.storage, instant.requested_time, runner, lock_timeout_ms)
    patience = lock_timeout_ms if wait else 0
    if service.lease is None:
        return execution.run(alone_ms=patience)
    with leased(service.kind, service.lease, state, instant, patience):
        return execution.run(alone_ms=None)


@dataclass(slots=True)
class _Execution(Generic[Plan, Task]):
    """One run. Without a lease, it ends under the same lock that it began under."""

    service: Service[Plan, Task]
    storage: Storage
    time: str
    runner: TaskRunner
    lock_timeout_ms: int
    publication: Publication = field(default_factory=Publication)

    def run(self, *, alone_ms: int | None) -> Done[Plan, Task] | None:
        with ExitStack() as lock:
            state = lock.enter_context(locked_table(self.storage, lock_timeout_ms=self.lock_timeout_ms, alone_ms=alone_ms))
            job = self._begin(state)
            if job is None:
                return None
            try:
                open_to_attempts(self.storage, job.requested.requested_time)
                if self.service.lease is not None:
                    lock.close()
                return Done(job, self._carry_out(job))
            except CommitOutcomeUnknownError:
                raise
            except BaseException:
                if not self.publication.may_be_done:
                    self._give_back(job)
                raise

    def _begin(self, state: TableState) -> Job[Plan, Task] | None:
        """Set the job's instant inflight; None if another executor has done the job, or its plan is dropped or ruled out."""
        if self.time not in (instant.requested_time for instant in pending_plans(state, self.service.kind.action)):
            return None
        check_readable(state)
        if self.service.kind.needs_all_files:
            check_complete(state)
        requested = Instant(self.time, self.service.kind.action, State.REQUESTED)
        inflight = requested.at(State.INFLIGHT)
        if state.timeline.find(self.time) == inflight and may_come(state, inflight):
            rule_out(state, inflight, completion_time(state, inflight), self.service.kind.operation)
            return None
        take_back(state, requested, of_dead=True)
        job = self.service.fit(state, requested)
        if job is not None:
            state.active.to_inflight(job.requested)
        return job

    def _carry_out(self, job: Job[Plan, Task]) -> HoodieCommitMetadata:
        metadata = self.service.run(job, self.runner)
        with ExitStack() as lock:
            state = self._locked_at_last(job, lock)
            metadata = self.service.settle(job, metadata, state)
            self.publication.publish(state, job.requested.at(State.INFLIGHT), metadata)
        return metadata

    def _locked_at_last(self, job: Job[Plan, Task], lock: ExitStack) -> TableState:
        """Lock the table, however long other processes hold the lock: the tasks may have taken hours, and the others will finish."""
        while True:
            try:
                state = lock.enter_context(self._locked(job, max(self.lock_timeout_ms, _LEAST_PATIENCE_MS)))
                break
            except LockTimeoutError as error:
                logger.warning("the tasks of %s are done, and it waits on for the lock to be completed: %s", job.requested, error)
        return state

    def _locked(self, job: Job[Plan, Task], lock_timeout_ms: int) -> AbstractContextManager[TableState]:
        """The table under its lock, which a service without a lease has held since the job was made."""
        return nullcontext(job.state) if self.service.lease is None else locked_table(self.storage, lock_timeout_ms=lock_timeout_ms)

    def _give_back(self, job: Job[Plan, Task]) -> None:
        try:
            with self._locked(job, self.lock_timeout_ms) as state:
                take_back(state, job.requested)
        except LakehouseError as error:
            # The caller must see the failure that led here; the next run begins by taking back.
            logger.warning("what %s wrote could not be taken back (%s); the next run does", job.requested, error)


def take_back(state: TableState, instant: Instant, *, of_dead: bool = False) -> None:
    """Return a pending plan to its scheduled state: delete its inflight file and what its run wrote. Safe to repeat.

    The caller holds the table lock. Does nothing to a completed instant. `of_dead`: the run was an earlier one, whose commit may still
    arrive; if it is run again, its files stay until it completes (`publish`).
    """
    time, storage = instant.requested_time, state.storage
    if state.timeline.completed().writes().contains(time):
        return
    inflight = Instant(time, instant.action, State.INFLIGHT)
    is_coming = of_dead and is_run_again(storage, inflight) and state.timeline.find(time) == inflight and is_closed(state, inflight)
    state.active.delete(inflight)
    if is_coming:
        return
    take_back_files(state, time)
    storage.delete_tree(marker_folder(time))
