"""Converts state files and archived instants from one timeline layout to another.

An instant without a completion time gets its requested time as one: version 6 orders instants by requested times, so queries as of a
moment, or since one, give the same answer as before. (Hudi takes modification times, which copying a table changes.) The completion time
that an instant loses on the way back is kept in its commit's extra metadata, under `COMPLETED_AT`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace

from lakehouse_engine.errors import FormatError, MetadataError
from lakehouse_engine.format.table_format import TableFormat
from lakehouse_engine.format.v6.archived_record import archived_commit, archived_entry
from lakehouse_engine.format.v6.metadata_avro import decode_record, encode_record, record_name
from lakehouse_engine.format.v8.history import HistoryEntry
from lakehouse_engine.model.archived import ArchivedEntry
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.order import age, in_time_order

COMPLETED_AT = "lakehouse.completed.at"
_COMMITS = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT, Action.CLUSTERING)
_REPLACE_PLAN = "HoodieRequestedReplaceMetadata"
_OUTCOMES = {
    Action.CLEAN: ("hoodieCleanMetadata", "HoodieCleanMetadata"),
    Action.ROLLBACK: ("hoodieRollbackMetadata", "HoodieRollbackMetadata"),
    Action.SAVEPOINT: ("hoodieSavePointMetadata", "HoodieSavepointMetadata"),
}
_PLANS = {
    Action.CLEAN: ("hoodieCleanerPlan", "HoodieCleanerPlan"),
    Action.COMPACTION: ("hoodieCompactionPlan", "HoodieCompactionPlan"),
    Action.LOG_COMPACTION: ("hoodieCompactionPlan", "HoodieCompactionPlan"),
    Action.REPLACE_COMMIT: ("hoodieRequestedReplaceMetadata", _REPLACE_PLAN),
}
"""Members of an archived entry, and the schemas of their values."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """A conversion from one layout to another. `clusterings` are the times of instants that were planned as clusterings."""

    source: TableFormat
    target: TableFormat
    clusterings: Container[str] = ()

    def state(self, instant: Instant, data: bytes) -> tuple[Instant, bytes]:
        """Convert the instant and content of one state file. Raises `CorruptInstantError` and `MetadataError` if a completed commit does
        not decode. An inflight file that does not decode becomes empty: what a completed instant had planned is only history.
        """
        if instant.is_completed:
            return self._completed(instant, data)
        planned = replace(instant, action=self._action(instant))
        if instant.state is not State.INFLIGHT or instant.action not in _COMMITS or not data:
            return planned, data
        try:
            return planned, self.target.encode_commit(self.source.decode_commit(data))
        except FormatError:
            return planned, b""

    def _completed(self, instant: Instant, data: bytes) -> tuple[Instant, bytes]:
        if instant.action.completes_as not in _COMMITS:
            return replace(instant, completed_at=self._completed_at(instant, None)), data
        metadata = self.source.decode_commit(data)
        completed = replace(instant, completed_at=self._completed_at(instant, metadata.extra_metadata.get(COMPLETED_AT)))
        return completed, self.target.encode_commit(self._noted(instant, metadata))

    def _completed_at(self, instant: Instant, noted: str | None) -> str | None:
        if not self.target.completes_with_time:
            return None
        return noted or instant.completed_at or instant.requested_time

    def _noted(self, instant: Instant, metadata: HoodieCommitMetadata) -> HoodieCommitMetadata:
        extra = {key: value for key, value in metadata.extra_metadata.items() if key != COMPLETED_AT}
        if not self.target.completes_with_time and instant.completed_at not in (None, instant.requested_time):
            extra[COMPLETED_AT] = str(instant.completed_at)
        return replace(metadata, extra_metadata=extra)

    def _action(self, instant: Instant) -> Action:
        is_clustering = instant.action is Action.REPLACE_COMMIT and instant.requested_time in self.clusterings
        return self.target.clustering_action if is_clustering else instant.action

    def history(self, entries: Iterable[ArchivedEntry]) -> list[HistoryEntry]:
        """Archived states of version 6 as the history of a later version, in order of requested times. States of instants that never
        completed are left out, as the history has none.
        """
        instants: dict[tuple[str, Action], dict[State, ArchivedEntry]] = {}
        for entry in entries:
            key = (entry.instant.requested_time, entry.instant.action.completes_as)
            instants.setdefault(key, {}).setdefault(entry.instant.state, entry)
        found = [self._history_entry(states) for states in instants.values() if State.COMPLETED in states]
        return in_time_order(found, lambda entry: age(entry.instant.requested_time))

    def _history_entry(self, states: dict[State, ArchivedEntry]) -> HistoryEntry:
        completed = states[State.COMPLETED]
        instant = completed.instant
        requested = states.get(State.REQUESTED)
        plan = None if requested is None else _member(requested, *_PLANS.get(requested.instant.action, ("", "")))
        if instant.action.completes_as not in _COMMITS:
            known = replace(instant, completed_at=self._completed_at(instant, None))
            return HistoryEntry(known, _member(completed, *_OUTCOMES.get(instant.action, ("", ""))), plan)
        metadata = archived_commit(completed)
        if metadata is None:
            raise MetadataError(f"the archive has {instant} without what it wrote", instant=instant.requested_time)
        noted = metadata.extra_metadata.get(COMPLETED_AT)
        known = replace(instant, action=instant.action.completes_as, completed_at=self._completed_at(instant, noted))
        return HistoryEntry(known, self.target.encode_commit(self._noted(instant, metadata)), plan)

    def archived(self, entry: HistoryEntry) -> list[ArchivedEntry]:
        """An entry of the history as the archived states of version 6."""
        completed, content = self.state(entry.instant, entry.metadata or b"") if entry.metadata else (entry.instant, b"")
        time = entry.instant.completed_at or entry.instant.requested_time
        states = [*self._pending(entry), (replace(completed, completed_at=None), content)]
        return [archived_entry(self.target, instant, data, time) for instant, data in states]

    def _pending(self, entry: HistoryEntry) -> Iterator[tuple[Instant, bytes]]:
        instant, plan = entry.instant, entry.plan or b""
        action = _pending_action(instant.action, plan)
        if action is Action.REPLACE_COMMIT and plan and record_name(_REPLACE_PLAN, plan) != _REPLACE_PLAN:
            yield Instant(instant.requested_time, action, State.REQUESTED), b""
            yield self.state(Instant(instant.requested_time, action, State.INFLIGHT), plan)
            return
        yield Instant(instant.requested_time, action, State.REQUESTED), plan
        yield Instant(instant.requested_time, action, State.INFLIGHT), plan if action is Action.CLEAN else b""


def is_clustering_plan(data: bytes) -> bool:
    """True if the requested file of a replace commit plans a clustering. Raises as `decode_record`."""
    return bool(data) and decode_record(_REPLACE_PLAN, data)["clusteringPlan"] is not None


def _pending_action(action: Action, plan: bytes) -> Action:
    """Action of the instant while it was pending: with a plan, a commit was a compaction and a delta commit a log compaction."""
    services = {Action.COMMIT: Action.COMPACTION, Action.DELTA_COMMIT: Action.LOG_COMPACTION}
    return services.get(action, action) if plan else action


def _member(entry: ArchivedEntry, name: str, schema: str) -> bytes | None:
    record = entry.record.get(name)
    return None if record is None else encode_record(schema, record)
