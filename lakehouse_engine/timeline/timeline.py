"""The sequence of instants of a table, immutable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from lakehouse_engine.compat import cached_property
from lakehouse_engine.model.instant import Action, Instant, InstantRange, State
from lakehouse_engine.model.order import NEVER, Order, in_time_order, is_later, latest

_ACTION_ORDER = {action: number for number, action in enumerate(Action)}


# Without slots, so that what is derived can be cached on the instance.
@dataclass(frozen=True)
class Timeline:
    """Instants in order of time, each (time, family of action) once, at the highest state that it reached.

    A compaction is of the family of `commit`, a log compaction of `deltacommit` (they complete as those). A savepoint has the
    time of the commit that it pins; both are entries. `start` and `is_committed` are asked of a timeline as loaded, not of a
    filtered one.
    """

    instants: tuple[Instant, ...] = ()
    restored_to: str | None = None
    """Set while a restore to that instant is not finished: later writes are left out, whether or not their files are gone yet."""
    order: Order = field(default_factory=Order.by_request, compare=False, repr=False)

    @classmethod
    def of_states(
        cls,
        states: Iterable[Instant],
        *,
        by_completion: bool = False,
        archived: Callable[[], Mapping[str, str]] = dict,
        logs_by_writer: str = "",
    ) -> Timeline:
        """Group state files (each given as an instant, in any order) to the highest state of each. `archived` as `Order.by_completion`
        takes it, `logs_by_writer` as `Order.by_request`.
        """
        highest: dict[tuple[str, Action], Instant] = {}
        given = tuple(states)
        for instant in given:
            key = (instant.requested_time, instant.action.completes_as)
            known = highest.get(key)
            if known is None or instant.state.rank > known.state.rank:
                highest[key] = instant
        order = Order.by_completion(moments_of(given), archived) if by_completion else Order.by_request(logs_by_writer)
        return cls(tuple(sorted(highest.values(), key=lambda one: (order.place(one.requested_time), _order(one)))), order=order)

    def as_restored(self, target: str) -> Timeline:
        """The timeline as it will be when a restore to `target` is done."""
        order = self.order
        kept = tuple(one for one in self.instants if not (one.action.is_write and order.is_after(one.requested_time, target)))
        return replace(self, instants=kept, restored_to=target)

    def __iter__(self) -> Iterator[Instant]:
        return iter(self.instants)

    def __len__(self) -> int:
        return len(self.instants)

    def filter(self, predicate: Callable[[Instant], bool]) -> Timeline:
        return Timeline(tuple(instant for instant in self.instants if predicate(instant)), order=self.order)

    def completed(self) -> Timeline:
        return self.filter(lambda instant: instant.is_completed)

    def pending(self) -> Timeline:
        """Requested and inflight instants."""
        return self.filter(lambda instant: not instant.is_completed)

    def writes(self) -> Timeline:
        """Instants that add data files: commits, delta commits, replace commits and compactions, in any state."""
        return self.filter(lambda instant: instant.action.is_write)

    def up_to(self, moment: str | None) -> Timeline:
        """Instants that show at `moment` (None: now)."""
        return self if moment is None else self.filter(lambda instant: self.order.is_visible(instant.requested_time, moment))

    def after(self, moment: str) -> Timeline:
        """Instants that do not show at `moment` yet."""
        return self.filter(lambda instant: not self.order.is_visible(instant.requested_time, moment))

    def newer_than(self, instant_time: str) -> Timeline:
        """Instants that come after that of `instant_time`."""
        return self.filter(lambda instant: self.order.is_after(instant.requested_time, instant_time))

    def older_than(self, instant_time: str) -> Timeline:
        """Instants that come before that of `instant_time`."""
        return self.filter(lambda instant: self.order.is_after(instant_time, instant.requested_time))

    def first(self) -> Instant | None:
        return self.instants[0] if self.instants else None

    def last(self) -> Instant | None:
        return self.instants[-1] if self.instants else None

    @property
    def newest_time(self) -> str:
        """The last time on the timeline, at which something was requested or completed; "" of an empty one."""
        if not self.order.goes_by_completion:
            return self.instants[-1].requested_time if self.instants else ""
        return latest(time for one in self.instants for time in (one.requested_time, one.completed_at) if time is not None)

    def find(self, requested_time: str) -> Instant | None:
        """The instant of that time; of several the write, rather than the savepoint on it."""
        found = self._by_time.get(requested_time)
        return found[0] if found else None

    def contains(self, time: str) -> bool:
        return time in self._by_time

    def savepoint_at(self, moment: str) -> str | None:
        """The savepointed write that shows at exactly this moment; None where there is none."""
        return next((time for time in self.savepointed if self.order.moment(time) == moment), None)

    def within(self, window: InstantRange) -> InstantRange:
        """The range, with the instants of this timeline that show in it where their times do not tell."""
        if not self.order.goes_by_completion:
            return window
        times = frozenset(one.requested_time for one in self.writes() if self.order.is_within(one.requested_time, window))
        return replace(window, times=times, start=None if self.start is None else self.start.requested_time)

    @property
    def start(self) -> Instant | None:
        """The first write whose time is not savepointed: what is older was archived, and counts as committed.

        A savepointed commit stays when those after it are archived, so it does not mark the start unless there is no other
        (hudi-format 2.2; Hudi `HoodieDefaultTimeline.getFirstNonSavepointCommit`). A pending write marks it too, so that its files
        never count as archived.
        """
        return self._start

    @property
    def savepointed(self) -> frozenset[str]:
        """Times of completed savepoints."""
        return self._savepointed

    def is_committed(self, instant_time: str) -> bool:
        """Whether files of that instant are part of the table: it is a completed write, or older than the timeline's start."""
        if instant_time in self._completed_writes:
            return True
        return self.is_before_start(instant_time) and instant_time not in self._pending_writes

    def is_before_start(self, instant_time: str) -> bool:
        """Whether an instant was requested before the timeline's start: one that is not on the timeline is archived then."""
        return self._start is not None and is_later(self._start.requested_time, instant_time)

    @cached_property
    def _by_time(self) -> dict[str, list[Instant]]:
        by_time: dict[str, list[Instant]] = {}
        for instant in self.instants:
            by_time.setdefault(instant.requested_time, []).append(instant)
        return by_time

    @cached_property
    def _completed_writes(self) -> frozenset[str]:
        return frozenset(instant.requested_time for instant in self.instants if instant.is_completed and instant.action.is_write)

    @cached_property
    def _pending_writes(self) -> frozenset[str]:
        return frozenset(instant.requested_time for instant in self.instants if not instant.is_completed and instant.action.is_write)

    @property
    def pending_compactions(self) -> frozenset[str]:
        """Times of compactions that are scheduled and not completed."""
        return self._pending_compactions

    @cached_property
    def _pending_compactions(self) -> frozenset[str]:
        return frozenset(one.requested_time for one in self.instants if one.action is Action.COMPACTION and not one.is_completed)

    @cached_property
    def _savepointed(self) -> frozenset[str]:
        return frozenset(instant.requested_time for instant in self.instants if instant.is_completed and instant.action is Action.SAVEPOINT)

    @cached_property
    def _start(self) -> Instant | None:
        if self.restored_to is not None:
            # Everything up to the target is part of the table, on the timeline or archived: it begins right behind it.
            return Instant(f"{self.restored_to}0", Action.RESTORE, State.REQUESTED)
        # By requested times in every version: archived instants are told by those.
        writes = in_time_order((one for one in self.instants if one.action.is_write), lambda one: one.requested_time)
        return next((instant for instant in writes if instant.requested_time not in self._savepointed), writes[0] if writes else None)


def moments_of(states: Iterable[Instant]) -> dict[str, str]:
    """When instants show, by requested times, as state files of versions 8 and 9 tell it: when they were completed.

    A compaction or log compaction shows when it was planned: until then it has what is in its files, and rows are the same after it.
    """
    moments: dict[str, str] = {}
    planned: set[str] = set()
    for one in states:
        if one.action in (Action.COMPACTION, Action.LOG_COMPACTION):
            planned.add(one.requested_time)
        if one.action is not Action.SAVEPOINT:
            moments[one.requested_time] = one.completed_at or moments.get(one.requested_time, NEVER)
    return {**moments, **{time: time for time in planned}}


def _order(instant: Instant) -> tuple[str, int]:
    return instant.requested_time, _ACTION_ORDER[instant.action]
