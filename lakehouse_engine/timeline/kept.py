"""State files of archived savepointed commits, kept aside unchanged.

If such a commit stayed on the active timeline when later ones leave, it would be its first write, and Hudi and hudi-rs would take the later
ones for uncommitted: those readers would lose rows. So it is archived too, and a restore puts it back.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from lakehouse_engine.errors import FileNameError, FormatError, StoredFileExistsError
from lakehouse_engine.format.table_format import TableFormat
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.timeline import moments_of


@dataclass(frozen=True, slots=True)
class KeptCommits:
    """Changes are made under the table's lock; each may have been done before by a process that died."""

    storage: Storage
    format: TableFormat
    folder: str = ".hoodie/.aux/savepointed"

    def keep(self, states: Iterable[tuple[Instant, bytes]]) -> None:
        """Store an instant's state files; durable on return. The completed one comes last."""
        for instant, content in states:
            self._create(f"{self.folder}/{self.format.file_name(instant)}", content)

    def find(self, instant_time: str) -> Instant | None:
        """The completed instant of that time; None if it is not kept."""
        return next((instant for instant in self.states() if instant.requested_time == instant_time and instant.is_completed), None)

    def moments(self) -> dict[str, str]:
        """When the commits that are kept show, by requested times (`moments_of`)."""
        states = self.states()
        done = {one.requested_time for one in states if one.is_completed}
        return {time: moment for time, moment in moments_of(states).items() if time in done}

    def metadata(self, instant_time: str) -> HoodieCommitMetadata | None:
        """Metadata of the commit of that time; None if it is not kept. Raises `CorruptInstantError`, `MetadataError` with the file."""
        instant = self.find(instant_time)
        if instant is None:
            return None
        path = f"{self.folder}/{self.format.file_name(instant)}"
        try:
            return self.format.decode_commit(self.storage.read(path))
        except FormatError as error:
            where = {"instant": instant_time, "path": path, "table": self.storage.root}
            hint = "; `repair` takes it from the archive, if that has it"
            raise type(error)(error.message + hint, **{**error.context, **where}) from error

    def put_back(self, instant_time: str) -> bool:
        """Put a kept commit back on the active timeline; False if it is not kept.

        Its completed file comes first: with only the others it would be a dead write, to be rolled back.
        """
        if self.find(instant_time) is None:
            return False
        for instant in sorted(self.states(), key=lambda found: found.state.rank, reverse=True):
            if instant.requested_time == instant_time:
                name = self.format.file_name(instant)
                self._create(f"{self.format.timeline_folder}/{name}", self.storage.read(f"{self.folder}/{name}"))
        return True

    def forget_all_but(self, savepointed: Container[str]) -> None:
        """Remove what no savepoint needs any more."""
        for instant in self.states():
            if instant.requested_time not in savepointed:
                self.storage.delete(f"{self.folder}/{self.format.file_name(instant)}")

    def states(self) -> list[Instant]:
        """Every state that is kept. While the table's version changes, there are completed ones of the other version, too."""
        found = (self._parsed(entry.name) for entry in self.storage.list(self.folder) if not entry.is_directory)
        return [instant for instant in found if instant is not None]

    def _parsed(self, name: str) -> Instant | None:
        try:
            return self.format.parse_file_name(name)
        except FileNameError:
            return None

    def _create(self, path: str, content: bytes) -> None:
        try:
            self.storage.create(path, content)
        except StoredFileExistsError:
            # Contents of instants never change: an earlier run has done this one.
            self.storage.sync(path)
