"""Sends a job's data to its tasks; each takes its own part.

Small data travels in the job's closure. More goes into a file in the table's temporary folder, which all executors share with the driver:
it bypasses the JVMs and Spark's message limits, and each task reads only its part.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from types import TracebackType

import pyarrow as pa

from lakehouse_engine.commit.staging import StagingArea
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.os_errors import as_storage_errors

INLINE = 1024 * 1024
"""Byte limits for all parts in a closure, and for a result that comes back through Spark."""


@dataclass(frozen=True, slots=True)
class Parcels:
    """Numbered, picklable parts. Part `i` ends at `ends[i]` of the file in `folder`, or of `inline` without a file."""

    storage: Storage
    ends: tuple[int, ...]
    inline: bytes
    folder: str | None = None

    def part(self, number: int) -> bytes:
        """Raises `StorageError` if the file cannot be read."""
        start, end = (self.ends[number - 1] if number else 0), self.ends[number]
        if self.folder is None:
            return self.inline[start:end]
        with self.storage.open_input(_file(self.folder)) as file, as_storage_errors("read", _file(self.folder), self.storage.root):
            file.seek(start)
            return bytes(file.read(end - start))

    def without(self, count: int) -> Parcels:
        """The closure's parts without the first `count`; numbers do not change."""
        first = self.ends[count - 1]
        return Parcels(self.storage, (*(0 for _ in range(count)), *(end - first for end in self.ends[count:])), self.inline[first:])

    def result(self, data: bytes) -> tuple[bytes, str | None]:
        """A task's result for the way back: (itself, None), or for a large one (nothing, its file)."""
        if self.folder is None or len(data) <= INLINE:
            return data, None
        path = f"{self.folder}/result-{uuid.uuid4().hex}"
        with as_storage_errors("write", path, self.storage.root), self.storage.open_output(path) as file:
            file.write(data)
        return b"", path


def _file(folder: str) -> str:
    return f"{folder}/parts"


@dataclass(slots=True)
class Packing:
    """Collects parts. A context manager: the file is removed at its end. Up to `inline` bytes there is no file."""

    storage: Storage
    inline: int = INLINE
    _area: StagingArea = field(init=False)
    _ends: list[int] = field(default_factory=list)
    _held: bytearray = field(default_factory=bytearray)
    _file: pa.NativeFile | None = None

    def __post_init__(self) -> None:
        self._area = StagingArea(self.storage)

    def __enter__(self) -> Packing:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._file is not None and not self._file.closed:
            self._file.close()
        self._area.remove()

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._ends[-1] if self._ends else 0

    def add(self, data: bytes) -> None:
        self._ends.append(self.size + len(data))
        if self._file is None and self.size <= self.inline:
            self._held += data
            return
        path = _file(self._area.folder())
        with as_storage_errors("write", path, self.storage.root):
            if self._file is None:
                self._file = self.storage.open_output(path)
                self._file.write(bytes(self._held))
                self._held.clear()
            self._file.write(data)

    def sealed(self) -> Parcels:
        """The collected parts, to be sent."""
        if self._file is None:
            return Parcels(self.storage, tuple(self._ends), bytes(self._held))
        with as_storage_errors("write", _file(self._area.folder()), self.storage.root):
            self._file.close()
        return Parcels(self.storage, tuple(self._ends), b"", self._area.folder())
