"""Changes of the history of a table of version 8 or 9: always a file or more, and then a manifest, as Hudi's `LSMTimelineWriter` does.

A manifest counts once `_version_` names it, or is gone: the file is deleted, and then created with the new number. What a process that died
before that left is written again. Files of earlier manifests stay for those who read by them. The table's lock is held.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from lakehouse_engine.errors import FileNameError, FormatError, StoredFileExistsError, StoredFileNotFoundError
from lakehouse_engine.format.v8.history import (
    VERSION_FILE,
    HistoryEntry,
    HistoryFile,
    files_to_merge,
    manifest_name,
    manifest_number,
    merge_histories,
    parse_history_file,
    read_history_times,
    render_history,
    render_manifest,
    render_version,
)
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.order import in_time_order, is_later
from lakehouse_engine.timeline.history import LsmHistory
from lakehouse_engine.timeline.history_head import whole_files

logger = logging.getLogger(__name__)

_MOST_BYTES = 1000 * 1024 * 1024
"""Of files that are merged (Hudi `TIMELINE_COMPACTION_TARGET_FILE_MAX_BYTES`)."""
_KEPT_MANIFESTS = 3
_MERGED_LEVEL = 1


@dataclass(frozen=True, slots=True)
class LsmWriter:
    """Each method can be done again after a process died in it."""

    history: LsmHistory

    def append(self, entries: Iterable[HistoryEntry], counted: int = 0) -> str | None:
        """Add completed instants; the path of their file, None where all of them are in the history. Durable on return. `counted` as in
        `LsmHistory.next_number`.
        """
        current = self.history.current()
        ordered = in_time_order(entries, lambda entry: entry.instant.requested_time)
        there = self._there(current, [entry.instant for entry in ordered])
        new = [entry for entry in ordered if entry.instant not in there]
        if not new:
            return None
        file, data = render_history(new)
        path = self._store(file, data)
        self._publish((*current, file), counted)
        return path

    def start(self, entries: Sequence[HistoryEntry], number: int) -> None:
        """Make the history of a table that has none, of completed instants in order of requested times, with the manifest of that number.

        Its file is one of merged ones: no archiving wrote it (`LsmHistory.newest_file`).
        """
        files = []
        if entries:
            file, data = render_history(entries, _MERGED_LEVEL)
            self._store(file, data)
            files.append(file)
        storage, folder = self.history.storage, self.history.path
        storage.create(f"{folder}/{manifest_name(number)}", render_manifest(files))
        storage.create(f"{folder}/{VERSION_FILE}", render_version(number))

    def merge(self, batch: int, counted: int = 0) -> list[str]:
        """Merge the files of each level that has `batch` of them; the paths of the merged files."""
        merged: list[str] = []
        while path := self._merge_one(batch, counted):
            merged.append(path)
        return merged

    def drop(self, name: str) -> None:
        """Take a file out of those that count, if it is one."""
        current = self.history.current()
        kept = [file for file in current if file.name != name]
        if len(kept) < len(current):
            self._publish(kept)

    def settle(self) -> None:
        """Name the manifest that counts, where a process died before it did."""
        path, number = f"{self.history.path}/{VERSION_FILE}", self.history.newest_number()
        if number and self.history.storage.head(path) is None:
            self.history.storage.create(path, render_version(number))

    def rebuild(self) -> None:
        """Make a manifest of the files that are whole, which counts from now on: what says which files count is damaged or gone."""
        storage, folder = self.history.storage, self.history.path
        numbers = [number for entry in self.history.listed() if (number := manifest_number(entry.name)) is not None]
        new = 1 + max(numbers, default=0)
        storage.create(f"{folder}/{manifest_name(new)}", render_manifest(whole_files(self.history)))
        storage.delete(f"{folder}/{VERSION_FILE}")
        storage.create(f"{folder}/{VERSION_FILE}", render_version(new))

    def tidy(self, merged: int = 0) -> None:
        """Remove manifests but for the last three, and one for each of `merged` files, and what none of those lists."""
        listed = self.history.listed()
        numbers = sorted((number for entry in listed if (number := manifest_number(entry.name)) is not None), reverse=True)
        kept = numbers[: _KEPT_MANIFESTS + merged]
        try:
            needed = {file.name for number in kept for file in self.history.manifest(number)}
        except (FormatError, StoredFileNotFoundError) as error:
            logger.warning("nothing of the history of %s is removed: %s", self.history.storage.root, error)
            return
        files = [entry.name for entry in listed if _is_history(entry.name) and entry.name not in needed]
        self._remove([*map(manifest_name, numbers[len(kept) :]), *files])

    def _there(self, current: Sequence[HistoryFile], instants: Sequence[Instant]) -> set[Instant]:
        """Those of the instants that are in the history: a restore put them back on the active timeline."""
        times = [instant.requested_time for instant in instants]
        files = [file for file in current if any(not is_later(file.first, time) and not is_later(time, file.last) for time in times)]
        found = {one for file in files for one in read_history_times(self.history.read(file), file)}
        return found.intersection(instants)

    def _merge_one(self, batch: int, counted: int) -> str | None:
        current = self.history.current()
        chosen = files_to_merge(current, batch=batch, most_bytes=_MOST_BYTES)
        if not chosen:
            return None
        file, data = merge_histories([(one, self.history.read(one)) for one in chosen])
        if any(one.name == file.name for one in current):
            return None
        path = self._store(file, data)
        self._publish([*(one for one in current if one not in chosen), file], counted)
        return path

    def _store(self, file: HistoryFile, data: bytes) -> str:
        path = f"{self.history.path}/{file.name}"
        try:
            self.history.storage.create(path, data)
        except StoredFileExistsError:
            self.history.storage.overwrite(path, data)  # no manifest that counts lists it: whoever wrote it died
        return path

    def _publish(self, files: Iterable[HistoryFile], counted: int = 0) -> None:
        storage, folder = self.history.storage, self.history.path
        number = self.history.newest_number()
        self._remove([entry.name for entry in self.history.listed() if (manifest_number(entry.name) or 0) > number])
        new = 1 + max(number, counted)
        storage.create(f"{folder}/{manifest_name(new)}", render_manifest(files))
        storage.delete(f"{folder}/{VERSION_FILE}")
        storage.create(f"{folder}/{VERSION_FILE}", render_version(new))

    def _remove(self, names: Collection[str]) -> None:
        storage, folder = self.history.storage, self.history.path
        removed = [name for name in names if storage.delete(f"{folder}/{name}")]
        if removed:
            storage.sync(folder)


def _is_history(name: str) -> bool:
    try:
        parse_history_file(name, 0)
    except FileNameError:
        return False
    return True
