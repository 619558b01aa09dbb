"""What completed commits record about log files, and slices with this knowledge."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.order import is_later


@dataclass(frozen=True, slots=True)
class LogPromise:
    """A completed commit wrote bytes `start` to `end` of a log file (`path` relative to the table); `end` is 0 if not recorded.

    `start` is None if unknown: then the commit wrote some of the bytes before `end`. `checksum` is the CRC-32 of those bytes in 8 hex
    digits; None if the commit has none.
    """

    path: str
    instant_time: str
    start: int | None = 0
    end: int = 0
    checksum: str | None = None

    def kept(self, content: bytes | memoryview) -> bool:
        """True if the log file has the bytes that the commit wrote, judged by its checksum, if any."""
        if self.checksum is None or self.start is None:
            return True
        return f"{zlib.crc32(memoryview(content)[self.start : self.end]):08x}" == self.checksum


@dataclass(frozen=True, slots=True)
class ToldLogs:
    """Completed writes whose log files are known: `active` ones by their times, archived ones up to `until`.

    A block of such a write in another file is a stray, left by a task attempt that outlived its commit. `whole`: the log files of every
    archived write are known. `gap`: no completed write lies between these two times; a write with such a time was taken back.
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
    """A slice to merge on read, and what completed commits record about its log files.

    `whole`: includes what was logged before the range that is read.
    """

    slice: FileSlice
    promises: tuple[LogPromise, ...] = ()
    told: ToldLogs = NOT_TOLD
    whole: bool = False

    def promises_by_path(self) -> dict[str, list[LogPromise]]:
        """Promises by log file path, in their order."""
        found: dict[str, list[LogPromise]] = {}
        for promise in self.promises:
            found.setdefault(promise.path, []).append(promise)
        return found
