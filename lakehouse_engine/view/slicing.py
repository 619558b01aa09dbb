"""Builds file groups and slices from file names and a timeline. Pure; holds the visibility rules (hudi-format 6 and II.3).

1. A slice is the base file and the logs with one base instant (`slice_of`).
2. A base file counts if its instant is committed and named it. Files of pending, failed and unknown instants do not, and neither do
   those that a late task attempt left (`named`).
3. Logs count if their base instant is committed, or is a pending compaction: once it is scheduled, writers log to the slice that it
   will make. Until it completes, those logs belong on top of the slice before.
4. A group is gone from the instant at which a completed replace commit names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakehouse_engine.format.file_names import is_base_file_name, is_log_file_name, parse_base_file, parse_log_file
from lakehouse_engine.model.files import BaseFile, FileGroup, FileSlice, LogFile
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.order import Order, age, earliest, is_later, latest
from lakehouse_engine.storage.base import StoredFile
from lakehouse_engine.timeline.timeline import Timeline
from lakehouse_engine.view.planned import Planned


@dataclass(slots=True)
class _Collected:
    """Files of one base instant of one group."""

    base_file: BaseFile | None = None
    log_files: list[LogFile] = field(default_factory=list)


def _any_base(base: BaseFile) -> bool:
    return True


def build_file_groups(
    partition_path: str,
    files: Iterable[StoredFile],
    timeline: Timeline,
    is_named: Callable[[BaseFile], bool] = _any_base,
    planned: Callable[[], Planned] = dict,
) -> list[FileGroup]:
    """Groups of a partition with their visible slices, newest first; sorted by file id, without empty groups.

    `timeline` is the whole active one, as loaded. `is_named` is called for base files of committed instants, and `planned` (from
    `planned_slices`) if there are logs of versions 8 and 9. A slice on a pending compaction has logs only. CDC files and names outside of
    Hudi's grammar are skipped. Replaced groups are included, because what replaced them depends on the requested instant.
    """
    groups: dict[str, dict[str, _Collected]] = {}
    logs: dict[str, list[LogFile]] = {}
    pending = timeline.pending_compactions
    for file in files:
        if is_base_file_name(file.name):
            base = parse_base_file(partition_path, file.name, file.size)
            if timeline.is_committed(base.instant_time) and is_named(base):
                found = groups.setdefault(base.file_id, {}).setdefault(base.instant_time, _Collected())
                found.base_file = base if found.base_file is None else max(found.base_file, base, key=_attempt)
        elif is_log_file_name(file.name):
            log = parse_log_file(partition_path, file.name, file.size)
            if not log.is_cdc and (log.instant_time in pending or timeline.is_committed(log.instant_time)):
                logs.setdefault(log.file_id, []).append(log)
    for file_id, found_logs in logs.items():
        slices = groups.setdefault(file_id, {})
        opening = planned().get(FileGroupId(partition_path, file_id), ())
        for log in sorted(found_logs, key=lambda one: timeline.order.moment(one.instant_time)):
            slices.setdefault(slice_of(log, (*slices, *opening), timeline.order), _Collected()).log_files.append(log)
    return [_file_group(FileGroupId(partition_path, file_id), groups[file_id], timeline.order) for file_id in sorted(groups)]


def slice_of(log: LogFile, begun: Iterable[str], order: Order) -> str:
    """Base instant of the slice that a log belongs to. `begun` are those that the group's base files, pending compactions and older logs
    began.

    In version 6 it is in the log's name. In 8 and 9 the name has the delta commit that wrote the log: it belongs to the newest slice that
    began before that commit completed, or begins one (Hudi `HoodieFileGroup.getBaseInstantTime`). A log that was named in version 6 has its
    slice's instant, which also holds in a later version.
    """
    if not order.names_writer(log.instant_time):
        return log.instant_time
    shown = order.moment(log.instant_time)
    return latest(base for base in begun if not is_later(base, shown)) or log.instant_time


def mixes_log_names(piece: FileSlice, order: Order) -> bool:
    """Whether a slice of a table of version 6 has logs that a later version named: by its own names nothing sorts behind those, so nothing
    more may be logged to it.
    """
    if order.goes_by_completion:
        return False
    return any(log.instant_time != piece.base_instant and order.names_writer(log.instant_time) for log in piece.log_files)


def slice_as_of(group: FileGroup, pending: frozenset[str], order: Order, as_of: str | None = None) -> FileSlice | None:
    """The newest slice whose base instant is visible at the moment `as_of` (None: the newest of all); None without one.

    A slice on one of the `pending` compactions is merged into the one before it: that one's base file and logs, then its own logs (Hudi
    `AbstractTableFileSystemView.fetchMergedFileSlice`).
    """
    older = [piece for piece in group.slices if order.is_visible(piece.base_instant, as_of)]
    if not older:
        return None
    newest = older[0]
    if newest.base_instant not in pending or len(older) == 1:
        return newest
    return replace(older[1], log_files=older[1].log_files + newest.log_files)


def whole_slices(partition_path: str, files: Iterable[StoredFile]) -> list[FileSlice]:
    """One slice per group from a partition's files, all of them committed: the newest base file, and later logs.

    Those are on the base file's instant, or on compactions planned after it.
    """
    bases: dict[str, BaseFile] = {}
    logs: dict[str, list[LogFile]] = {}
    for file in files:
        if is_base_file_name(file.name):
            base = parse_base_file(partition_path, file.name, file.size)
            bases[base.file_id] = max(bases.get(base.file_id, base), base, key=_newness)
        elif is_log_file_name(file.name):
            log = parse_log_file(partition_path, file.name, file.size)
            logs.setdefault(log.file_id, []).extend([] if log.is_cdc else [log])
    slices = (_whole(FileGroupId(partition_path, one), bases.get(one), logs.get(one, ())) for one in sorted(bases.keys() | logs.keys()))
    return [piece for piece in slices if piece is not None]


def _whole(group: FileGroupId, base: BaseFile | None, logs: Sequence[LogFile]) -> FileSlice | None:
    begun = base.instant_time if base is not None else earliest(log.instant_time for log in logs)
    if begun is None:
        return None
    kept = sorted((log for log in logs if not is_later(begun, log.instant_time)), key=lambda log: (age(log.instant_time), *_log_order(log)))
    return FileSlice(group, begun, base, tuple(kept))


def is_replaced(group: FileGroupId, replaced: Mapping[FileGroupId, str], order: Order, as_of: str | None) -> bool:
    """True if `group` is replaced at the moment `as_of`; `replaced` maps groups to the commit that replaced each."""
    replaced_at = replaced.get(group)
    return replaced_at is not None and order.is_visible(replaced_at, as_of)


def _file_group(group: FileGroupId, collected: Mapping[str, _Collected], order: Order) -> FileGroup:
    def in_order(log: LogFile) -> tuple[str, int, str]:
        return order.moment(log.instant_time), *_log_order(log)

    slices = (
        FileSlice(group, instant, files.base_file, tuple(sorted(files.log_files, key=in_order))) for instant, files in collected.items()
    )
    return FileGroup(group, tuple(sorted(slices, key=lambda piece: age(piece.base_instant), reverse=True)))


def _newness(base: BaseFile) -> tuple[str, tuple[int, ...]]:
    return age(base.instant_time), _attempt(base)


def _attempt(base: BaseFile) -> tuple[int, ...]:
    """Order of files of one slice from several task attempts, if it is unknown which of them the commit named."""
    return tuple(int(part) for part in base.write_token.split("-"))


def _log_order(log: LogFile) -> tuple[int, str]:
    """Order within a slice (Hudi `HoodieLogFile.LogFileComparator`)."""
    return log.version, log.write_token or ""
