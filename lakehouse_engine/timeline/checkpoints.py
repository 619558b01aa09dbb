"""Checkpoints of live files: what the writes up to an instant left, so that it is known when they are archived.

They are named by that instant, and never change. They lie where neither Hudi nor its Rust readers look (docs/adr/0014).
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
"""Where the checkpoint lies of the table."""

SAVEPOINTED = ".hoodie/.aux/live-savepointed"
"""Where the checkpoints lie of savepoints whose commits are archived: a savepoint itself names files, and says nothing more of them."""


@dataclass(frozen=True, slots=True)
class LiveCheckpoints:
    """Mutations are made under the table's lock, each of them may have been done before by a process that died."""

    storage: Storage
    folder: str = LIVE

    def times(self) -> list[str]:
        """The instants up to which there are checkpoints, newest first."""
        names = [entry.name for entry in self.storage.list(self.folder) if not entry.is_directory]
        found = (name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
        return in_time_order((time for time in found if time.isdigit()), age, newest_first=True)

    def path(self, time: str) -> str:
        return f"{self.folder}/{time}{_SUFFIX}"

    def read(self, time: str) -> LiveCheckpoint:
        """Raises `FormatError` naming the path where it is damaged, `StoredFileNotFoundError` where it is gone.
        """
        path = self.path(time)
        try:
            return decode_live_files(self.storage.read(path))
        except FormatError as error:
            raise FormatError(f"{error.message} ({path!r})", path=path, table=self.storage.root) from error

    def write(self, time: str, checkpoint: LiveCheckpoint) -> None:
        """Make the checkpoint up to `time`; durable on return. One that is there already stays if it is whole."""
        content = encode_live_files(checkpoint)
        try:
            self.storage.create(self.path(time), content)
        except StoredFileExistsError:
            if self.storage.read(self.path(time)) == content:
                self.storage.sync(self.path(time))
            else:
                self.storage.overwrite(self.path(time), content)

    def forget_before(self, time: str) -> None:
        """Remove what a newer checkpoint has taken the place of."""
        for known in self.times():
            if is_later(time, known):
                self.storage.delete(self.path(known))

    def forget_all_but(self, times: Container[str]) -> None:
        """Remove those of other instants."""
        for known in self.times():
            if known not in times:
                self.storage.delete(self.path(known))

    def forget_from(self, time: str) -> None:
        """Remove what counts a write that is about to be taken back: that of `time`, or a later one."""
        for known in self.times():
            if not is_later(time, known):
                self.storage.delete(self.path(known))
