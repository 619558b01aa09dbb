"""Keeps things up to date that follow each change of a table: a metadata table, an index, an entry in a catalog (docs/adr/0065).

A participant is called under the table's lock, before an action gets its completed file. Until that file is there, readers of the table see
nothing of the action, and a participant must not show it either: what it keeps counts once the table's timeline has the instant completed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from lakehouse_engine.commit.hbase_index import HBaseUpkeep
from lakehouse_engine.commit.metadata_table import MetadataTableUpkeep
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.outcomes import Outcome
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


class Participant(Protocol):
    """Follows the changes of a table.

    Each method may run again for the same instant, after a crash anywhere in it, and must then have the same effect. An error in it fails
    the action: a write is taken back, any other action is resumed by the next change of the table.
    """

    def join(self, state: TableState) -> TableState:
        """Prepare for an action, after dead writers are taken back; returns the state after that. A participant that cannot follow the
        table removes what it keeps here, before the action changes anything.
        """
        ...

    def follow(self, state: TableState, instant: Instant, outcome: Outcome) -> None:
        """Take in what an action did. `instant` is inflight, and every file that `outcome` names exists.

        If the process of an action died, `follow` runs again when the action is resumed; a write is not resumed but taken back.
        """
        ...

    def finish(self, state: TableState, instant: Instant) -> None:
        """Remove what only states before an action need. `instant` is completed, and `state` is the one before it.

        It may never be called for an instant, if the process died, so nothing may depend on it. An error in it is logged.
        """
        ...

    def take_back(self, state: TableState, instant_times: Sequence[str]) -> None:
        """Remove what `follow` took in of these instants, newest first. They are not, or no longer, completed, and their files may still be
        there; some may never have reached `follow`.
        """
        ...


_ALL: list[Participant] = [MetadataTableUpkeep(), HBaseUpkeep()]
"""In the order of their calls; `take_back` uses the reverse order."""


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
    """Tell every participant about an action that is about to be completed. The caller holds the table lock."""
    for participant in tuple(_ALL):
        participant.follow(state, inflight, outcome)


def finish_all(state: TableState, completed: Instant) -> None:
    """Tell every participant that an action is completed. The caller holds the table lock. Raises nothing: the action cannot fail any more.
    """
    for participant in tuple(_ALL):
        _finish(participant, state, completed)


def _finish(participant: Participant, state: TableState, completed: Instant) -> None:
    try:
        participant.finish(state, completed)
    except Exception as error:  # noqa: BLE001 - whatever it is, the action is completed
        kind = type(error).__name__
        name = state.config.name
        logger.warning("%s of %s is completed, but not all could be cleaned up behind it: %s: %s", completed, name, kind, error)


def take_back_all(state: TableState, instant_times: Sequence[str]) -> None:
    """Have every participant remove what it took in of instants that are taken back. The caller holds the table lock."""
    for participant in reversed(_ALL):
        participant.take_back(state, instant_times)
