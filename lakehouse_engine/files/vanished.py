"""Explains a file that disappears during a read: which action took it, and what the reader can do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lakehouse_engine.errors import LakehouseError, MissingFileError, TimelineRestoredError
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.timeline.restores import restores
from lakehouse_engine.view.table_state import TableState

_TAKERS = (Action.RESTORE, Action.ROLLBACK, Action.CLEAN)


@contextmanager
def told_of_crossing(state: TableState) -> Iterator[None]:
    """Wraps a read planned from `state`: explains a file that is missing because the table changed meanwhile.

    Raises `TimelineRestoredError` if the table was restored; else the `MissingFileError`, naming the clean or rollback that came between,
    if one did.
    """
    try:
        yield
    except MissingFileError as error:
        raise _explained(state, error) from error


def _explained(state: TableState, error: MissingFileError) -> LakehouseError:
    newer = state.refresh()
    known = {(instant.requested_time, instant.action, instant.state) for instant in state.timeline}
    news = [one for one in newer.timeline if one.action in _TAKERS and (one.requested_time, one.action, one.state) not in known]
    path = error.context.get("path")
    for record in reversed(restores(newer.active, newer.timeline)):
        if record.instant in news:
            return TimelineRestoredError(
                f"the table was restored to {record.target} by {record.instant.requested_time} while it was read, and the file {path!r} was"
                " taken back; read the table anew",
                path=path,
                table=state.config.name,
                restore=record.instant.requested_time,
                target=record.target,
                rolled_back=",".join(record.rolled_back),
            )
    return MissingFileError(_taken(path, news[-1]), **{**error.context, "table": state.config.name}) if news else error


def _taken(path: str | None, taker: Instant) -> str:
    hint = "read the table anew" + ("; options of the clean keep files for longer reads" if taker.action is Action.CLEAN else "")
    return f"the file {path!r} went while it was read, at which time the {taker.action} {taker.requested_time} was at work: {hint}"
