"""What completed commits say of log files, and slices with it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.order import is_later


@dataclass(frozen=True, slots=True)
class LogPromise:
    """A completed commit wrote bytes `start` to `end` of a log file (`path` relative to the table); `end` 0 where it does not say.

    `start` is None where that is not known: then the commit wrote some of what is before `end`. `checksum` is the CRC-32 of those bytes in
    8 hex digits, None where the commit has none.
    """

    path: str
    instant_time: str
    start: int | None = 0
    end: int = 0
    checksum: str | None = None

    def kept(self, content: bytes | memoryview) -> bool:
        """Whether the log file has the bytes that the commit wrote, as far as its checksum tells."""
        if self.checksum is None or self.start is None:
            return True
        return f"{zlib.crc32(memoryview(content)[self.start : self.end]):08x}" == self.checksum


@dataclass(frozen=True, slots=True)
class ToldLogs:
    """Completed writes of which it is known to which log files they wrote: `active` ones by their times, archived ones up to `until`.

    A block of such a write in another file is a stray, left by an attempt of a task that outlived its commit. `whole`: this is so of every
    archived write. `gap`: between these two there is no completed write: whatever has such a time was taken back.
    """

    active: frozenset[str] = frozenset()
    until: str = ""
    whole: bool = False
    gap: tuple[str, str] = ("", "")

    def tells(self, instant_time: str) -> bool:
        if instant_time in self.active or not is_later(instant_time, self.until):
            return True
        return is_later(instant_time, self.gap[0]) and is_later(self.gap[1], instant_time)


NOT_TOLD = ToldLogs()


@dataclass(frozen=True, slots=True)
class LoggedSlice:
    """A slice to be merged when it is read, and what completed commits say about its log files.

    `whole`: also what was logged before the range that is read.
    """

    slice: FileSlice
    promises: tuple[LogPromise, ...] = ()
    told: ToldLogs = NOT_TOLD
    whole: bool = False

    def promises_by_path(self) -> dict[str, list[LogPromise]]:
        """Those about each log file, in their order."""
        found: dict[str, list[LogPromise]] = {}
        for promise in self.promises:
            found.setdefault(promise.path, []).append(promise)
        return found
