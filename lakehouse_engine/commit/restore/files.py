"""Finds the files that a restore removes in one pass over the partitions, so that the cost follows files, not commits.

The writing commits need not be on the timeline. A base file has its instant in its name, and so has a log file whose slice began after the
target. For other log files the blocks name the writers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lakehouse_engine.commit.leftovers.log_owners import LogOwners, log_owners
from lakehouse_engine.commit.rollback.blocks import ROLLBACK_TOKEN
from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.format.file_names import is_base_file_name, is_log_file_name, parse_base_file, parse_log_file
from lakehouse_engine.model.files import BaseFile, LogFile
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.order import Order, is_later, latest
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.listings.listing import StorageLister

_THREADS = 8


@dataclass(frozen=True, slots=True)
class Removal:
    """A file to remove; `instant_time` is its newest write, `size` in bytes."""

    path: str
    size: int
    instant_time: str


@dataclass(frozen=True, slots=True)
class Blocking:
    """A slice that keeps log files although the writes `targets` (newest first) logged to them; `logs` are those, with sizes."""

    group: FileGroupId
    base_instant: str
    targets: tuple[str, ...]
    logs: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class PartitionChanges:
    """What a restore does to a partition. `kept` are the paths of remaining data files, `kept_instants` those in their names. `torn`: one
    of them is a log file without a known writer.
    """

    partition_path: str
    removals: tuple[Removal, ...]
    blockings: tuple[Blocking, ...]
    kept: frozenset[str]
    kept_instants: frozenset[str]
    torn: bool = False


@dataclass(frozen=True, slots=True)
class _Look:
    storage: Storage
    partition_path: str
    order: Order
    target: str
    pinned: frozenset[str]

    def is_after_target(self, instant_time: str) -> bool:
        return self.order.is_after(instant_time, self.target)


def find_changes(
    storage: Storage, partitions: Iterable[str], order: Order, target: str, pinned: Iterable[str]
) -> list[PartitionChanges]:
    """Changes in the partitions that remove everything written after `target`; partitions are examined in parallel.

    Files in `pinned` (paths relative to the table) stay; what later writes logged to them is taken back by rollback blocks.
    """
    kept = frozenset(pinned)
    looks = [_Look(storage, partition, order, target, kept) for partition in partitions]
    return LocalRunner(_THREADS).run(_look, looks, name="find files")


def _look(look: _Look) -> PartitionChanges:
    bases, logs = _parsed(look.storage, look.partition_path)
    newest: dict[str, str] = {}
    for base in bases:
        if not look.is_after_target(base.instant_time):
            newest[base.file_id] = latest((base.instant_time, newest.get(base.file_id, "")))
    removals = [Removal(base.path, base.size, base.instant_time) for base in bases if look.is_after_target(base.instant_time)]
    removals += [Removal(log.path, log.size, log.instant_time) for log in logs if look.is_after_target(log.instant_time)]
    # Logs of a slice ended when the next slice of its group began.
    kept_logs = [log for log in logs if not (look.is_after_target(log.instant_time) or log.is_cdc)]
    open_logs = [log for log in kept_logs if not is_later(newest.get(log.file_id, ""), log.instant_time)]
    owners = {log: log_owners(look.storage, log) for log in open_logs}
    removals += [
        Removal(log.path, log.size, look.order.sorted(owner.writers)[-1])
        for log, owner in owners.items()
        if owner.writers and owner.only_after(look.order, look.target) and log.path not in look.pinned
    ]
    gone = {removal.path for removal in removals}
    files: list[BaseFile | LogFile] = [*bases, *logs]
    kept = [file for file in files if file.path not in gone]
    return PartitionChanges(
        look.partition_path,
        tuple(sorted(removals, key=lambda removal: removal.path)),
        tuple(_blockings({log: owner for log, owner in owners.items() if log.path not in gone}, look)),
        frozenset(file.path for file in kept),
        frozenset(file.instant_time for file in kept),
        any(owner.is_torn for owner in owners.values()),
    )


def _parsed(storage: Storage, partition: str) -> tuple[list[BaseFile], list[LogFile]]:
    bases, logs = [], []
    for entry in StorageLister(storage).files(partition):
        if is_base_file_name(entry.name):
            bases.append(parse_base_file(partition, entry.name, entry.size))
        elif is_log_file_name(entry.name):
            logs.append(parse_log_file(partition, entry.name, entry.size))
    return bases, logs


def _blockings(owners: Mapping[LogFile, LogOwners], look: _Look) -> list[Blocking]:
    slices: dict[tuple[str, str], list[LogFile]] = {}
    for log in owners:
        slices.setdefault((log.file_id, log.instant_time), []).append(log)
    return [blocking for logs in slices.values() if (blocking := _blocking(logs, owners, look)) is not None]


def _blocking(logs: Sequence[LogFile], owners: Mapping[LogFile, LogOwners], look: _Look) -> Blocking | None:
    undone = {taken for log in logs for _, taken in owners[log].takes_back}
    later = {log: {writer for writer in owners[log].writers if look.is_after_target(writer)} - undone for log in logs}
    targets = look.order.sorted({writer for writers in later.values() for writer in writers}, newest_first=True)
    if not targets:
        return None
    group = FileGroupId(logs[0].partition_path, logs[0].file_id)
    named = tuple((log.path, log.size) for log in logs if later[log] and log.write_token != ROLLBACK_TOKEN)
    return Blocking(group, logs[0].instant_time, tuple(targets), named)
