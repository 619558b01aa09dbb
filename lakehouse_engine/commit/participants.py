"""What is kept beside a table's files and follows each of its changes: a metadata table, an index, an entry in a catalog (docs/adr/0065).

A participant is called under the table's lock, before an action gets its completed file. Until that is there, readers of the table see
nothing of the action, and a participant must not show it either: what it keeps counts once the table's timeline has the instant
completed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeAlias

from lakehouse_engine.commit.metadata_table import drop_metadata_table
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.plans import HoodieCleanMetadata, HoodieRestoreMetadata, HoodieRollbackMetadata
from lakehouse_engine.model.savepoint import HoodieSavepointMetadata
from lakehouse_engine.view.table_state import TableState

Outcome: TypeAlias = (
    HoodieCommitMetadata | HoodieCleanMetadata | HoodieRollbackMetadata | HoodieRestoreMetadata | HoodieSavepointMetadata
)
"""What an action did, as its completed file says it. A compaction, log compaction or clustering has commit metadata."""


class Participant(Protocol):
    """Follows the changes of a table. Each method may run again for the same instant, after a crash anywhere in it, and must then end the
    same. What one raises fails the action, which is taken back if it is a write, and resumed by the next change of the table otherwise.
    """

    def join(self, state: TableState) -> TableState:
        """Prepare for an action, once dead writers are taken back; returns the state after that. A participant that cannot follow the
        table goes here, before the action has changed anything.
        """
        ...

    def follow(self, state: TableState, instant: Instant, outcome: Outcome) -> None:
        """Take in what an action did. `instant` is inflight, and every file that `outcome` names is there.

        For an action whose process died, `follow` runs again when it is resumed; a write is not resumed but taken back.
        """
        ...

    def take_back(self, state: TableState, instant_times: Sequence[str]) -> None:
        """Remove what `follow` took in of these instants, newest first. They are not completed (any more), and their files may still be
        there; instants that never came to `follow` are among them.
        """
        ...


class MetadataTableDrop:
    """Hudi's metadata table goes when the table is changed, since this engine does not keep it up."""

    def join(self, state: TableState) -> TableState:
        return drop_metadata_table(state)

    def follow(self, state: TableState, instant: Instant, outcome: Outcome) -> None:
        """Nothing: it is gone since `join`."""

    def take_back(self, state: TableState, instant_times: Sequence[str]) -> None:
        """Nothing: a metadata table that is still there goes with `join`, before the action that takes back ends its recovery."""


_ALL: list[Participant] = [MetadataTableDrop()]
"""In the order in which they are called; `take_back` goes the other way."""


@contextmanager
def taking_part(participant: Participant) -> Iterator[None]:
    """Let a participant follow every table that this process changes meanwhile."""
    _ALL.append(participant)
    try:
        yield
    finally:
        _ALL.remove(participant)


def join_all(state: TableState) -> TableState:
    """The state after every participant has joined."""
    for participant in tuple(_ALL):
        state = participant.join(state)
    return state


def follow_all(state: TableState, inflight: Instant, outcome: Outcome) -> None:
    """Tell every participant of an action that is about to be completed. The table lock is held."""
    for participant in tuple(_ALL):
        participant.follow(state, inflight, outcome)


def take_back_all(state: TableState, instant_times: Sequence[str]) -> None:
    """Have every participant remove what it took in of instants that are taken back. The table lock is held."""
    for participant in reversed(_ALL):
        participant.take_back(state, instant_times)
