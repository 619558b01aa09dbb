"""What tests ask of a `pathlib.Path`, of objects in a bucket: a directory is there as long as an object is below it."""

from __future__ import annotations

import functools
import io
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
from obstore.store import AzureStore, GCSStore, MemoryStore, S3Store

SCHEME = {"az": "az", "gs": "gs"}.get(os.environ.get("LAKEHOUSE_STORE", ""), "s3")
"""Of all addresses of a run."""
_CLIENTS = {"s3": S3Store, "az": AzureStore, "gs": GCSStore}
Client = S3Store | AzureStore | GCSStore | MemoryStore


@functools.cache
def in_memory(location: str) -> MemoryStore:
    """The store that is a bucket without a server."""
    return MemoryStore()


@functools.cache
def _client(bucket: str) -> Client:
    """As the environment says; a client of its own, which passes none of the engine's code."""
    if os.environ["LAKEHOUSE_STORE"] == "memory":
        return in_memory(f"s3://{bucket}")
    return _CLIENTS[SCHEME](bucket, client_options={"allow_http": True})


@functools.total_ordering
class BucketPath:
    """`str` and `os.fspath` give the address. What is not here no test needs that runs in a bucket, and fails by its name."""

    def __init__(self, *parts: object) -> None:
        scheme, _, rest = "/".join(str(part).rstrip("/") for part in parts).partition("://")
        if scheme != SCHEME:
            raise ValueError(f"{parts} is no place in a bucket")
        self._pure = PurePosixPath(rest)

    def __str__(self) -> str:
        return f"{SCHEME}://{self._pure}"

    __fspath__ = __str__

    def __repr__(self) -> str:
        return f"BucketPath({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BucketPath) and self._pure == other._pure

    def __lt__(self, other: BucketPath) -> bool:
        return self._pure < other._pure

    def __hash__(self) -> int:
        return hash(self._pure)

    def __truediv__(self, name: object) -> BucketPath:
        return BucketPath(f"{SCHEME}://{self._pure / str(name)}")

    joinpath = __truediv__

    @property
    def name(self) -> str:
        return self._pure.name

    @property
    def stem(self) -> str:
        return self._pure.stem

    @property
    def suffix(self) -> str:
        return self._pure.suffix

    @property
    def parts(self) -> tuple[str, ...]:
        return self._pure.parts

    @property
    def parent(self) -> BucketPath:
        return BucketPath(f"{SCHEME}://{self._pure.parent}")

    def with_name(self, name: str) -> BucketPath:
        return self.parent / name

    def relative_to(self, other: object) -> PurePosixPath:
        return self._pure.relative_to(BucketPath(other)._pure)

    def resolve(self) -> BucketPath:
        return self

    # looking

    def exists(self) -> bool:
        return self.is_file() or self.is_dir()

    def is_file(self) -> bool:
        return self._head() is not None

    def is_dir(self) -> bool:
        return next(self._below(), None) is not None

    def is_symlink(self) -> bool:
        return False

    def stat(self) -> Any:
        found = self._head()
        if found is None:
            raise FileNotFoundError(str(self))
        at = found["last_modified"].timestamp()
        return SimpleNamespace(st_size=found["size"], st_mtime=at, st_mtime_ns=int(at * 1e9))

    def iterdir(self) -> Iterator[BucketPath]:
        return iter(sorted(path for path in self._tree() if path.parent == self))

    def glob(self, pattern: str) -> Iterator[BucketPath]:
        if pattern.startswith("**/"):
            return self.rglob(pattern.removeprefix("**/"))
        depth = len(PurePosixPath(pattern).parts)
        return (path for path in self._matching(pattern) if len(path.relative_to(self).parts) == depth)

    def rglob(self, pattern: str) -> Iterator[BucketPath]:
        return self._matching(pattern)

    def read_bytes(self) -> bytes:
        return bytes(obstore.get(*self._place).bytes())

    def read_text(self, encoding: str = "utf-8") -> str:
        return self.read_bytes().decode(encoding)

    # changing

    def write_bytes(self, content: bytes) -> int:
        obstore.put(*self._place, content)
        return len(content)

    def write_text(self, content: str, encoding: str = "utf-8") -> int:
        return self.write_bytes(content.encode(encoding))

    def touch(self) -> None:
        self.write_bytes(self.read_bytes() if self.is_file() else b"")

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Nothing: there are no directories without objects."""

    def unlink(self, *, missing_ok: bool = False) -> None:
        if not missing_ok and not self.is_file():
            raise FileNotFoundError(str(self))
        obstore.delete(*self._place)

    def rename(self, target: object) -> BucketPath:
        found = BucketPath(target)
        found.write_bytes(self.read_bytes())
        self.unlink()
        return found

    def upload(self, folder: Path) -> None:
        """Every file below a directory of this machine."""
        for path in folder.rglob("*"):
            if path.is_file():
                (self / path.relative_to(folder)).write_bytes(path.read_bytes())

    def download(self, folder: Path) -> None:
        """Every object below, as files of a directory of this machine."""
        for path in self._below():
            target = folder / path.relative_to(self)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())

    def remove_all(self) -> None:
        """Every object below, a hundred a request: Azurite leaves larger batches unanswered."""
        store, _ = self._place
        for page in _pages(self):
            for at in range(0, len(page), 100):
                obstore.delete(store, page[at : at + 100])

    # how

    @property
    def _place(self) -> tuple[Client, str]:
        bucket, *key = self._pure.parts
        return _client(bucket), "/".join(key)

    def _head(self) -> Any:
        try:
            return obstore.head(*self._place)
        except FileNotFoundError:
            return None

    def _below(self) -> Iterator[BucketPath]:
        """Every object below."""
        bucket = self._pure.parts[0]
        return (BucketPath(f"{SCHEME}://{bucket}/{key}") for page in _pages(self) for key in page if key != self._place[1])

    def _tree(self) -> set[BucketPath]:
        """Every object below, and the directories that they are in."""
        found: set[BucketPath] = set()
        for path in self._below():
            while path != self and path not in found:
                found.add(path)
                path = path.parent
        return found

    def _matching(self, pattern: str) -> Iterator[BucketPath]:
        if "**" in pattern:
            raise NotImplementedError(pattern)
        return iter(sorted(path for path in self._tree() if path.relative_to(self).match(pattern)))


def _pages(path: BucketPath) -> Iterable[list[str]]:
    store, key = path._place
    for page in obstore.list(store, prefix=key or None, chunk_size=1000):
        yield [meta["path"] for meta in page]


class AnyTree:
    """Stands for `shutil` in such modules."""

    @staticmethod
    def copytree(source: Any, target: Any, **named: Any) -> Any:
        if not isinstance(source, BucketPath):
            return shutil.copytree(source, target, **named)
        for path in source._below():
            (target / path.relative_to(source)).write_bytes(path.read_bytes())
        return target

    @staticmethod
    def rmtree(path: Any) -> None:
        path.remove_all() if isinstance(path, BucketPath) else shutil.rmtree(path)


class AnyParquet:
    """Stands for `pyarrow.parquet` in such modules: it reads and writes places in a bucket."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(pq, name)
        return functools.partial(_with_content, found) if callable(found) else found

    @staticmethod
    def write_table(table: Any, where: Any, **named: Any) -> None:
        if not isinstance(where, BucketPath):
            pq.write_table(table, where, **named)
            return
        content = io.BytesIO()
        pq.write_table(table, content, **named)
        where.write_bytes(content.getvalue())


def _with_content(call: Any, *given: Any, **named: Any) -> Any:
    return call(*(pa.BufferReader(one.read_bytes()) if isinstance(one, BucketPath) else one for one in given), **named)


class AnyPath(Path):
    """Stands for `Path` in modules of tests that may be given an address."""

    def __new__(cls, *parts: object) -> Any:  # type: ignore[misc]
        first = str(parts[0]) if parts else ""
        return BucketPath(*parts) if first.startswith(f"{SCHEME}://") else Path(*parts)  # type: ignore[arg-type]
