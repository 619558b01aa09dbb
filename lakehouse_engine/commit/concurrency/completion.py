"""Keeps Hudi 1.x's completion time of a commit from being before its beginning.

In version 6 Hudi takes the modification time of the completed file for it, and finds a log's slice by the completion time of its base
instant (`InstantGeneratorV1`, `HoodieFileGroup.getBaseInstantTime`). Stores report whole seconds, rounded down, by their own clock. A
merge-on-read commit that begins and ends in one second, or uses a clock that is ahead, would be completed before it began, and logs over
its base files would belong to the slice before, where readers do not look.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from datetime import datetime, timedelta

from lakehouse_engine.commit.table_clock import PROBE, table_clock
from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import TimelineError
from lakehouse_engine.format.file_names import is_log_file_name, parse_base_file, parse_log_file
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import format_instant_time, parse_instant_time
from lakehouse_engine.model.order import is_later
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import discard, in_object_store
from lakehouse_engine.timeline.clock import InstantClock
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

LONGEST = timedelta(seconds=60)
"""How far a store's clock may be behind for a commit to wait for it."""
_WORTH_A_WARNING = timedelta(seconds=2)
_SECOND = timedelta(seconds=1)


def await_store(state: TableState, instant_time: str, metadata: HoodieCommitMetadata, written_ms: int) -> None:
    """Return once the store's clock has reached the instant, if logs may be written over the commit's files.

    `written_ms` is the creation time of the newest of those files, by that clock: mostly that suffices, and the store is not asked. Raises
    `TimelineError` if the clock is further behind than `LONGEST`.
    """
    has_logs = in_object_store(state.storage) and state.config.table_type is TableType.MERGE_ON_READ
    if not has_logs or not any(_base_instant(stat) == instant_time for stat in metadata.write_stats()):
        return
    clock = table_clock(state)
    written = _digits(clock, written_ms)
    # By their order first: instants of a metadata table that was built begin with zeros, and are no moments.
    if not is_later(instant_time, format_instant_time(written)):
        return
    began = parse_instant_time(instant_time)
    behind = began - written
    # The next second of this machine, and of the store unless clocks differ.
    pause, deadline = began.replace(microsecond=0) + _SECOND - clock.wall_clock(), time.monotonic() + LONGEST.total_seconds()
    while behind > timedelta(0):
        if time.monotonic() + pause.total_seconds() > deadline:
            raise TimelineError(
                f"{instant_time} of {state.config.name} is {behind} ahead of the clock of its store: readers would not find what is logged"
                " over its files; correct the clock of this machine, or of the writer of the instant before, and try again",
                table=state.config.name,
                instant=instant_time,
            )
        if pause > _WORTH_A_WARNING:
            logger.warning("the store of %s is %s behind %s, which is completed then", state.config.name, pause, instant_time)
        time.sleep(max(pause.total_seconds(), 0.0))
        pause = behind = began - _digits(clock, _store_now(state.storage))


def _store_now(storage: Storage) -> int:
    storage.overwrite(PROBE, b"1")
    try:
        entry = storage.head(PROBE)
        return 0 if entry is None else entry.modified_ms
    finally:
        discard(storage, PROBE)


def _digits(clock: InstantClock, milliseconds: int) -> datetime:
    """A moment since the epoch as an instant of that clock."""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return replace(clock, now=lambda: moment).wall_clock()


def _base_instant(stat: HoodieWriteStat) -> str:
    folder, _, name = (stat.path or "").rpartition("/")
    return parse_log_file(folder, name).instant_time if is_log_file_name(name) else parse_base_file(folder, name).instant_time
