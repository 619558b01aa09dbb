"""A table service, as the executor knows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.view.table_state import TableState

Plan = TypeVar("Plan")
Task = TypeVar("Task")


@dataclass(frozen=True, slots=True)
class Kind:
    """The action of a service's pending instants, the operation of its commits, and the name and the error of its messages."""

    action: Action
    operation: WriteOperationType
    name: str
    error: type[LakehouseError]


@dataclass(frozen=True, slots=True)
class Lease:
    """Lets a service run without the table lock: its executor holds a lock of the one plan.

    Other programs have no such lock. What one of them began is left alone for `seconds`, which the option of that name sets.
    """

    seconds: int
    option: str


@dataclass(frozen=True, slots=True)
class Job(Generic[Plan, Task]):
    """One run: a plan that fits the table `state`, and its tasks. `requested` is later than asked for where the plan was made again."""

    state: TableState
    requested: Instant
    plan: Plan
    tasks: Sequence[Task]


class Service(Protocol[Plan, Task]):
    """A kind of plan: how it is made, and what carrying it out means."""

    @property
    def kind(self) -> Kind: ...

    @property
    def lease(self) -> Lease | None:
        """None: it runs alone, with the table lock held from begin to completion and no writer of Hudi at work."""
        ...

    def plan(self, state: TableState) -> Plan | None:
        """The plan to schedule, None where there is nothing to do."""
        ...

    def fit(self, state: TableState, requested: Instant) -> Job[Plan, Task] | None:
        """The job of a pending plan, after changing the plan on the timeline if need be; None where the plan was dropped.

        Called under the table lock, when what an earlier run left was taken back.
        """
        ...

    def run(self, job: Job[Plan, Task], runner: TaskRunner) -> HoodieCommitMetadata:
        """Run the tasks; returns the metadata of the commit that they make."""
        ...

    def settle(self, job: Job[Plan, Task], metadata: HoodieCommitMetadata, state: TableState) -> HoodieCommitMetadata:
        """What of `metadata`, which `run` made, may be published. `state` is the table under its lock; what no write stat names is removed.

        Raises the error of the kind where nothing may be.
        """
        ...
