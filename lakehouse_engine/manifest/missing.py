"""Compares listed slices with a manifest: lost files, and files of another size than written.

Listed slices are the newest *remaining* ones: after a clean or a loss, a listing is silently incomplete.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lakehouse_engine.format.file_names import is_base_file_name, parse_log_file
from lakehouse_engine.manifest.manifest import ExpectedFile, Manifest
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.logged import LoggedSlice, LogPromise
from lakehouse_engine.model.order import Order, is_later

Within = Callable[[Iterable[str]], Iterable[str]]
"""Filters partition paths."""


def lost_files(
    manifest: Manifest,
    as_of: str | None,
    slices: Sequence[FileSlice],
    *,
    begin: str | None = None,
    logs: bool = False,
    within: Within | None = None,
) -> list[ExpectedFile]:
    """Base files, and with `logs` log files, that groups live at `as_of` (None: now) must have and the listed `slices` lack.

    `begin` limits it to base files written later, `within` to files of some partitions. Complete if no write after `as_of` has been
    archived, and the files of archived writes are known.
    """
    order = manifest.order
    # A slice may consist of logs only; its base instant is that of the write that began it.
    found = {piece.group: piece.base_instant for piece in slices if piece.base_file is not None or logs}
    partitions = None if within is None else frozenset(within(manifest.named_partitions(as_of)))
    expected = manifest.live(as_of, partitions)
    replaced = {group for group, at in manifest.replaced_at.items() if order.is_visible(at, as_of)}
    # For others the base file was written, and only later logs are left.
    told = ((piece.group, expected.get(piece.group)) for piece in slices if piece.base_file is None)
    headless = {group for group, file in told if file is not None and _is_base(file.path)}
    lost = [
        file
        for group, file in expected.items()
        if (is_later(file.instant_time or "0", found.get(group, "")) or group in headless)
        and group not in replaced
        and (begin is None or not file.instant_time or not order.is_visible(file.instant_time, begin))
    ]
    return lost + (_lost_logs(slices, manifest.promises(as_of, partitions), replaced, order) if logs and not lost else [])


def logged_slices(manifest: Manifest, as_of: str | None, slices: Iterable[FileSlice]) -> list[LoggedSlice]:
    """Slices with what completed commits up to `as_of` (None: all) recorded about their log files."""
    pieces = list(slices)
    promises, told = manifest.promises(as_of, _partitions_of(pieces)), manifest.told(as_of)
    return [LoggedSlice(piece, tuple(promises.get(piece.group, ())), told) for piece in pieces]


@dataclass(frozen=True, slots=True)
class ChangedSize:
    """A file of the table with other bytes than were written: `size` is its current size, `written` the size recorded by `instant_time`."""

    path: str
    instant_time: str
    size: int
    written: int
    is_log: bool


def changed_sizes(manifest: Manifest, as_of: str | None, slices: Sequence[FileSlice], *, logs: bool = False) -> list[ChangedSize]:
    """Base files of `slices` (as listed) with another size than their commit recorded, and with `logs` logs that are too short.

    A log may be longer: other writers leave blocks of failed writes at its end.
    """
    partitions = _partitions_of(slices)
    written = {file.path: file for file in manifest.bases(as_of, partitions)}
    bases = [(piece.base_file, written.get(piece.base_file.path)) for piece in slices if piece.base_file is not None]
    found = [
        ChangedSize(base.path, file.instant_time, base.size, file.size, False)
        for base, file in bases
        if file is not None and file.size > 0 and base.size >= 0 and base.size != file.size
    ]
    if not logs or not any(piece.log_files for piece in slices):
        return found
    promises = manifest.promises(as_of, partitions)
    sizes = {log.path: log.size for piece in slices for log in piece.log_files}
    return found + [
        ChangedSize(promise.path, promise.instant_time, sizes[promise.path], promise.end, True)
        for piece in slices
        for promise in promises.get(piece.group, ())
        if promise.path in sizes and 0 <= sizes[promise.path] < promise.end
    ]


def _partitions_of(slices: Iterable[FileSlice]) -> frozenset[str]:
    return frozenset(piece.partition_path for piece in slices)


def _lost_logs(
    slices: Sequence[FileSlice], promises: Mapping[FileGroupId, Sequence[LogPromise]], replaced: Container[FileGroupId], order: Order
) -> list[ExpectedFile]:
    listed = {piece.group: (piece.base_instant, {log.name for log in piece.log_files}) for piece in slices}
    return [
        ExpectedFile(group, promise.instant_time, promise.path)
        for group, written in promises.items()
        if group not in replaced
        for promise in written
        if _lacks(listed.get(group), promise, order)
    ]


def _lacks(listed: tuple[str, Container[str]] | None, promise: LogPromise, order: Order) -> bool:
    """`listed`: base instant of the group's slice, and names of its logs."""
    if listed is None:
        return True
    base_instant, names = listed
    partition, _, name = promise.path.rpartition("/")
    # Logs of an older slice are in this one's base file.
    return name not in names and not is_later(base_instant, order.moment(parse_log_file(partition, name).instant_time))


def _is_base(path: str) -> bool:
    return is_base_file_name(path.rpartition("/")[2])
