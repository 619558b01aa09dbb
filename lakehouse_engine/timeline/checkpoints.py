"""Checkpoints of live files: what writes up to an instant left, recorded before they are archived.

They are named by that instant and never change. Neither Hudi nor its Rust readers look at their place (docs/adr/0014).
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from lakehouse_engine.errors import FormatError, StoredFileExistsError
from lakehouse_engine.format.v6.live_checkpoint import decode_live_files, encode_live_files
from lakehouse_engine.model.live_files import LiveCheckpoint
from lakehouse_engine.model.order import age, in_time_order, is_later
from lakehouse_engine.storage.base import Storage

_SUFFIX = ".live.parquet"

LIVE = ".hoodie/.aux/live"
"""Folder of the table's checkpoint."""

SAVEPOINTED = ".hoodie/.aux/live-savepointed"
"""Folder of checkpoints for savepoints whose commits are archived: a savepoint itself only names files."""


@dataclass(frozen=True, slots=True)
class LiveCheckpoints:
    """Changes are made under the table's lock; each may have been done before by a process that died."""

    storage: Storage
    folder: str = LIVE

    def times(self) -> list[str]:
        """Instants of the checkpoints, newest first."""
        names = [entry.name for entry in self.storage.list(self.folder) if not entry.is_directory]
        found = (name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
        return in_time_order((time for time in found if time.isdigit()), age, newest_first=True)

    def path(self, time: str) -> str:
        return f"{self.folder}/{time}{_SUFFIX}"

    def read(self, time: str) -> LiveCheckpoint:
        """Raises `FormatError` with the path if it is damaged, `StoredFileNotFoundError` if it is gone."""
        path = self.path(time)
        try:
            return decode_live_files(self.storage.read(path))
        except FormatError as error:
            raise FormatError(f"{error.message} ({path!r})", path=path, table=self.storage.root) from error

    def write(self, time: str, checkpoint: LiveCheckpoint) -> None:
        """Write the checkpoint up to `time`; durable on return. A complete existing one stays."""
        content = encode_live_files(checkpoint)
        try:
            self.storage.create(self.path(time), content)
        except StoredFileExistsError:
            if self.storage.read(self.path(time)) == content:
                self.storage.sync(self.path(time))
            else:
                self.storage.overwrite(self.path(time), content)

    def forget_before(self, time: str) -> None:
        """Remove what a newer checkpoint replaces."""
        for known in self.times():
            if is_later(time, known):
                self.storage.delete(self.path(known))

    def forget_all_but(self, times: Container[str]) -> None:
        """Remove those of other instants."""
        for known in self.times():
            if known not in times:
                self.storage.delete(self.path(known))

    def forget_from(self, time: str) -> None:
        """Remove checkpoints that include a write about to be taken back: at `time`, or later."""
        for known in self.times():
            if not is_later(time, known):
                self.storage.delete(self.path(known))
