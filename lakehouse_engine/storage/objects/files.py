"""Objects as files that Arrow reads and writes: one request for a file's end, one for each range outside of it."""

from __future__ import annotations

import io
import logging
import uuid
from types import TracebackType
from typing import Any

import obstore
import pyarrow as pa
from obstore.exceptions import BaseError, NotSupportedError

from lakehouse_engine.errors import StorageError
from lakehouse_engine.storage.objects.errors import as_object_errors
from lakehouse_engine.storage.objects.put import TOKEN, Place

logger = logging.getLogger(__name__)
_TAIL = 64 * 1024
"""Bytes of the first request; Parquet keeps its metadata at the end."""
_PART = 8 * 1024 * 1024
"""Bytes of one part of an upload; a smaller file takes one request."""


class ObjectInput(io.RawIOBase):
    """A seekable reader. Raises `StoredFileNotFoundError` on creation."""

    def __init__(self, store: Any, key: str, path: str, root: str) -> None:
        super().__init__()
        self._store, self._key, self._path, self._root = store, key, path, root
        self._at = 0
        with as_object_errors("read", path, root):
            self._size, self._tail = _end_of(store, key)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def size(self) -> int:
        return self._size

    def read(self, size: int | None = -1) -> bytes:
        wanted = self._size - self._at if size is None or size < 0 else size
        end = min(self._at + wanted, self._size)
        if end <= self._at:
            return b""
        data = self._range(self._at, end)
        self._at = end
        return data

    def readall(self) -> bytes:
        return self.read(-1)

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _range(self, start: int, end: int) -> bytes:
        kept = self._size - len(self._tail)
        if start >= kept:
            return self._tail[start - kept : end - kept]
        with as_object_errors("read", self._path, self._root):
            return bytes(obstore.get_range(self._store, self._key, start=start, end=end))


def _end_of(store: Any, key: str) -> tuple[int, bytes]:
    """Size and last bytes of an object."""
    try:
        found = obstore.get(store, key, options={"range": {"suffix": _TAIL}})
        return int(found.meta["size"]), bytes(found.bytes())
    except (NotSupportedError, BaseError) as error:
        # Azure has no ranges from the end, and an empty object has no ranges.
        if isinstance(error, FileNotFoundError):
            raise
        size = int(obstore.head(store, key)["size"])
        start = max(0, size - _TAIL)
        return size, bytes(obstore.get_range(store, key, start=start, end=size)) if size else b""


class ObjectOutput(io.RawIOBase):
    """Writer of a new object, which exists once it is closed. Dropped without a close, it puts nothing.

    It carries a token, like `object_put`, so that an upload whose last answer was lost is recognised.
    """

    def __init__(self, store: Any, key: str, path: str, root: str) -> None:
        super().__init__()
        self._place, self._token = Place(store, key, path, root), uuid.uuid4().hex
        self._path, self._root = path, root
        with as_object_errors("write", path, root):
            self._writer = obstore.open_writer(store, key, buffer_size=_PART, attributes={TOKEN: self._token})

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        with as_object_errors("write", self._path, self._root):
            self._writer.write(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Does nothing: no reader sees the object before the end."""

    def close(self) -> None:
        if not self.closed:
            super().close()
            with as_object_errors("write", self._path, self._root):
                try:
                    self._writer.close()
                except (BaseError, OSError):
                    # The last request of an upload in parts works once: repeated, it finds no upload.
                    if not self._place.has(self._token):
                        raise

    def give_up(self) -> None:
        """Put nothing and take back what was sent. Raises `StorageError` if that fails; a rule of the bucket then removes it."""
        if not self.closed:
            super().close()
            left = OSError("given up")
            with as_object_errors("take back", self._path, self._root):
                self._writer.__exit__(type(left), left, None)

    def __del__(self) -> None:
        # The base class would close here, and so put what was written so far.
        if hasattr(self, "_writer"):
            self.give_up()


class OutputFile(pa.PythonFile):  # type: ignore[misc]
    """Arrow's side of an `ObjectOutput`: an exception aborts it."""

    _output: ObjectOutput

    @classmethod
    def over(cls, output: ObjectOutput) -> OutputFile:
        file = cls(output, mode="w")
        file._output = output
        return file

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is not None:
                self._output.give_up()
        except StorageError as failure:
            # The original error is the one to report.
            logger.warning("an upload that was given up is left to the bucket's rule: %s", failure)
        finally:
            self.close()
