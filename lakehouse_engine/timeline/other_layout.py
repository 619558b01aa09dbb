"""The timeline of a table in a layout that the table does not have: what a change of its version makes, and what it leaves.

A change of the version writes the new timeline beside the old one, then changes the properties in one step, then removes the old one. As
long as it is at work, `MARK` is there; it comes first and goes last. So at any moment the properties say which of the two timelines
counts, and the mark that there may be another one: the next holder of the table's lock removes that (docs/adr/0063). Readers that read the
properties before the step and listed the timeline after it see the mark, or nothing, and look again (`may_be_moving`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakehouse_engine.errors import FormatError, StoredFileExistsError
from lakehouse_engine.format.table_format import TableFormat
from lakehouse_engine.format.v6.archived import MERGE_PLAN, archive_file_number
from lakehouse_engine.format.v6.converted import Conversion
from lakehouse_engine.format.v6.table_format import FormatV6
from lakehouse_engine.format.v8.table_format import FormatV8
from lakehouse_engine.model.instant import State
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.storage.base import Storage, StoredFile
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.kept import KeptCommits

LATER_FOLDER = ".hoodie/timeline"
MARK = f"{LATER_FOLDER}/lakehouse.moving"
"""Name that neither Hudi nor hudi-rs takes for an instant."""


def may_be_moving(table_format: TableFormat, listing: Iterable[StoredFile]) -> bool:
    """Whether the listing of a timeline tells that the table's version may be about to change, or has changed meanwhile."""
    paths = [entry.path for entry in listing]
    if table_format.orders_by_completion:
        return not paths or MARK in paths
    return LATER_FOLDER in paths


def begin_moving(storage: Storage) -> None:
    """Mark that a timeline of another layout is being made."""
    try:
        storage.create(MARK, b"a change of the table's version is at work, or was cut off; the next write sees to it\n")
    except StoredFileExistsError:
        storage.sync(MARK)


def is_moving(storage: Storage) -> bool:
    """True if a change of the version is running, or was interrupted."""
    return storage.head(MARK) is not None


@dataclass(frozen=True, slots=True)
class OtherLayout:
    """The timeline that does not count, for a table with these properties and layout. The table's lock is held."""

    storage: Storage
    config: TableConfig
    format: TableFormat

    @property
    def other(self) -> TableFormat:
        return FormatV6() if self.format.orders_by_completion else FormatV8(LATER_FOLDER)

    def remove(self) -> None:
        """Remove it, and the mark last; an earlier run may have done any step."""
        if not is_moving(self.storage):
            return
        self.clear()
        self.storage.delete(MARK)
        if self.format.orders_by_completion:
            self.storage.sync(LATER_FOLDER)
        else:
            self.storage.delete_tree(LATER_FOLDER)

    def clear(self) -> None:
        """Remove it, but not the mark."""
        if self.format.orders_by_completion:
            self._remove_six()
        else:
            self._remove_later()
        self._remove_kept()

    def _remove_six(self) -> None:
        for file in ActiveTimeline(self.storage, self.other).files().values():
            self.storage.delete(file.path)
        self.storage.sync(".hoodie")
        folder = f".hoodie/{self.config.archive_folder}"
        for file in self.storage.list(folder):
            if archive_file_number(file.name) is not None or file.name == MERGE_PLAN:
                self.storage.delete(file.path)
        self.storage.delete_empty(folder)

    def _remove_later(self) -> None:
        for entry in self.storage.list(LATER_FOLDER):
            if entry.is_directory:
                self.storage.delete_tree(entry.path)
            elif entry.path != MARK:
                self.storage.delete(entry.path)

    def _remove_kept(self) -> None:
        """Remove completed commits of savepoints that are kept aside. Other states have the same names in both layouts: they are rewritten
        where they are of the other one.
        """
        kept, conversion = KeptCommits(self.storage, self.other), Conversion(self.other, self.format)
        for instant in kept.states():
            path = f"{kept.folder}/{self.other.file_name(instant)}"
            if instant.is_completed:
                self.storage.delete(path)
            elif instant.state is State.INFLIGHT and self._is_of_other(data := self.storage.read(path)):
                self.storage.overwrite(path, conversion.state(instant, data)[1])

    def _is_of_other(self, data: bytes) -> bool:
        try:
            self.other.decode_commit(data)
        except FormatError:
            return False
        return True
