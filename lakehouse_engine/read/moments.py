"""Finds the instant of a table that a time-travel argument means."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import OptionError, SavepointError
from lakehouse_engine.model.instant import as_of_instant_time
from lakehouse_engine.model.order import is_later
from lakehouse_engine.model.savepoint import LATEST
from lakehouse_engine.model.write_stats import REWRITES
from lakehouse_engine.timeline.writers_zone import writers_zone
from lakehouse_engine.view.plans import oldest_overtaken
from lakehouse_engine.view.protected import damaged_savepoints, savepoint_metadata
from lakehouse_engine.view.table_state import TableState

_BACK = re.compile(r"-[0-9]{1,9}")


def moment_of(state: TableState, moment: str | date | datetime) -> str:
    """Moment for any argument of `as_of_instant_time`, a savepoint's name ("latest": the newest one), or `-N`.

    The time of an instant on the timeline means the moment at which it shows. `-1` is the commit before the newest; while a Hudi writer is
    at work on an older instant, only the commits before that one count. Compactions and clusterings do not count: they leave the rows
    unchanged. Raises `OptionError` for anything else, and `SavepointError` if it may be the name of a savepoint whose file is damaged.
    """
    if not isinstance(moment, str):
        return instant_of(state, moment)
    text = moment.strip()
    if text.isdigit():
        return state.order.moment(as_of_instant_time(text))
    named = _savepoint(state, text)
    if named is not None:
        return state.order.moment(named)
    if _BACK.fullmatch(text):
        return _back(state, int(text[1:]))
    try:
        return as_of_instant_time(text)
    except OptionError as error:
        _refuse_unknown_names(state, text)
        known = ", ".join(repr(metadata.name) for metadata in savepoint_metadata(state).values() if metadata.name) or "none"
        message = f"{error.message}, -N for the Nth commit before the newest, or the name of a savepoint (there are: {known})"
        raise OptionError(message, table=state.config.name) from error


def instant_of(state: TableState, moment: date | datetime) -> str:
    """`as_of_instant_time` in the time zone of the table's writers, if the table's zone is LOCAL.

    Applies only to a datetime with a zone; any other argument is taken as digits.
    """
    if not isinstance(moment, datetime) or moment.tzinfo is None or state.config.timeline_timezone != "LOCAL":
        return as_of_instant_time(moment)
    zone = writers_zone(state.storage, state.format, state.timeline)
    try:
        ahead = (moment.astimezone().utcoffset() or timedelta()) if zone is None else zone.offset
        return as_of_instant_time(moment.astimezone(UTC) + ahead)
    except OverflowError:  # before or after all instants in any zone
        return as_of_instant_time(moment)


def _savepoint(state: TableState, name: str) -> str | None:
    if not state.timeline.savepointed:
        return None
    if name == LATEST:
        return state.order.newest(state.timeline.savepointed)
    return next((time for time, metadata in savepoint_metadata(state).items() if metadata.name == name), None)


def _refuse_unknown_names(state: TableState, text: str) -> None:
    """Raise `SavepointError` if a savepoint is damaged: the text may be its name."""
    for time, path in damaged_savepoints(state).items():
        raise SavepointError(
            f"no savepoint that can be read has the name {text!r}, and the file {path!r} of one is damaged: if that is meant, give its"
            f" instant, {time}; `repair` leads out",
            instant=time,
            path=path,
            table=state.config.name,
        )


def _back(state: TableState, steps: int) -> str:
    commits, overtaken = 0, oldest_overtaken(state)
    for instant in reversed(state.timeline.completed().writes().instants):
        if overtaken is not None and is_later(instant.requested_time, overtaken):
            continue
        if state.commit_metadata(instant).operation_type in REWRITES:
            continue
        if commits == steps:
            return state.order.moment(instant.requested_time)
        commits += 1
    raise OptionError(f"the table has {commits} commits on its timeline; there is none {steps} before the newest", table=state.config.name)
