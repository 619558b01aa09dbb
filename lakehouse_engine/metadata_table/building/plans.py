"""Plans of index builds, which wait on the timeline of the data table (Hudi `ScheduleIndexActionExecutor`, `HoodieIndexPlan`)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from lakehouse_engine.errors import InstantNotFoundError, MetadataError
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.order import is_later, latest
from lakehouse_engine.model.plans import HoodieIndexPartitionInfo, HoodieIndexPlan
from lakehouse_engine.view.table_state import TableState

_MADE_AT = "lakehouse.metadata.instant"
"""Extra metadata of a running plan: the instant of the delta commit that it makes in the metadata table."""
NO_INSTANT = "0" * 14
"""Stands for the newest instant of a new table (Hudi `HoodieTimeline.INIT_INSTANT_TS`)."""


def plan_of(partitions: Iterable[str], upto: str, made_at: str | None = None) -> HoodieIndexPlan:
    """Plan to build partitions with all that the table has at the instant `upto`."""
    extra = None if made_at is None else {_MADE_AT: made_at}
    infos = (HoodieIndexPartitionInfo(metadata_partition_path=name, index_upto_instant=upto, extra_metadata=extra) for name in partitions)
    return HoodieIndexPlan(index_partition_infos=tuple(infos))


def newest_contiguous(data: TableState) -> str:
    """The newest completed write with no pending one before it (Hudi `getContiguousCompletedWriteTimeline`)."""
    pending = data.timeline.pending().writes().first()
    times = (one.requested_time for one in data.timeline.completed().writes())
    return latest(time for time in times if pending is None or is_later(pending.requested_time, time)) or NO_INSTANT


def pending_builds(data: TableState) -> list[Instant]:
    """Index builds that are planned or running, oldest first."""
    return [one for one in data.timeline.pending() if one.action is Action.INDEXING]


def partitions_of(data: TableState, build: Instant) -> tuple[str, ...]:
    """Partitions that a pending build is planned for; none for a plan that is damaged or gone, which no program runs."""
    with suppress(MetadataError, InstantNotFoundError):
        plan = data.active.plan(HoodieIndexPlan, build.at(State.REQUESTED))
        return tuple(one.metadata_partition_path or "" for one in plan.index_partition_infos or ())
    return ()


def build_of(data: TableState, partition: str) -> Instant | None:
    """The pending build that a partition is planned in; None without one."""
    return next((one for one in pending_builds(data) if partition in partitions_of(data, one)), None)


def made_at(data: TableState, build: Instant) -> str | None:
    """Instant, in the metadata table, of a running build; None for a build of Hudi, and for one that does not run."""
    if build.state is not State.INFLIGHT or is_foreign(data, build):
        return None
    plan = data.active.plan(HoodieIndexPlan, build)
    return next((found for one in plan.index_partition_infos or () if (found := (one.extra_metadata or {}).get(_MADE_AT))), None)


def is_foreign(data: TableState, build: Instant) -> bool:
    """True if another program began the build: Hudi leaves its inflight file empty."""
    return build.state is State.INFLIGHT and not data.active.read(build)


def is_built_elsewhere(data: TableState) -> bool:
    """True if the timeline has an index build that another program ran, or one that does not say who did."""
    return any(_ran_elsewhere(data, one) for one in data.timeline if one.action is Action.INDEXING)


def _ran_elsewhere(data: TableState, build: Instant) -> bool:
    if build.state is State.REQUESTED:
        return False
    with suppress(InstantNotFoundError):
        return is_foreign(data, build.at(State.INFLIGHT))
    return True


def running(plan_partitions: Iterable[str], upto: str, instant: str) -> bytes:
    """Content of the inflight file of a build."""
    return encode_plan(plan_of(plan_partitions, upto, instant))
