"""The interface of a table service to the executor."""

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
    """Kind of service: the action of its pending instants, the operation of its commits, and its name and error class for messages.

    `needs_all_files`: it runs only if every file of the table is there as it was written; otherwise `fit` checks what it needs.
    """

    action: Action
    operation: WriteOperationType
    name: str
    error: type[LakehouseError]
    needs_all_files: bool = True


@dataclass(frozen=True, slots=True)
class Lease:
    """Allows a service to run without the table lock: its executor locks only the one plan.

    Other programs have no such lock. A plan that one of them began is left alone for `seconds`, the value of the option named `option`.
    """

    seconds: int
    option: str


@dataclass(frozen=True, slots=True)
class Job(Generic[Plan, Task]):
    """One run: a plan that fits the table `state`, and its tasks. `requested` is later than the planned instant if the plan was made again.
    """

    state: TableState
    requested: Instant
    plan: Plan
    tasks: Sequence[Task]


class Service(Protocol[Plan, Task]):
    """A kind of plan: how to make it and how to carry it out."""

    @property
    def kind(self) -> Kind: ...

    @property
    def lease(self) -> Lease | None:
        """None if the service runs alone, holding the table lock from begin to completion, with no Hudi writer at work."""
        ...

    def plan(self, state: TableState) -> Plan | None:
        """The plan to schedule; None if there is nothing to do."""
        ...

    def fit(self, state: TableState, requested: Instant) -> Job[Plan, Task] | None:
        """The job of a pending plan, after changing the plan on the timeline if needed; None if the plan was dropped.

        Called under the table lock, after what an earlier run left was removed.
        """
        ...

    def run(self, job: Job[Plan, Task], runner: TaskRunner) -> HoodieCommitMetadata:
        """Run the tasks; returns the metadata of their commit."""
        ...

    def settle(self, job: Job[Plan, Task], metadata: HoodieCommitMetadata, state: TableState) -> HoodieCommitMetadata:
        """The part of the `metadata` from `run` that may be published. `state` is the locked table; files that no write stat names are
        removed.

        Raises the kind's error if nothing may be published.
        """
        ...
