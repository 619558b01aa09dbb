"""An HBase in this process, behind the part of happybase's interface that the HBASE index uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from lakehouse_engine.index.hbase import client
from lakehouse_engine.index.hbase.client import Driver, HBaseClient
from lakehouse_engine.options.hbase import HBaseOptions

Cells = dict[bytes, bytes]


@dataclass
class FakeHBase:
    """Tables by name, with the cells of their rows. Requests fail while it `is_down`; `before(operation)` is called for each."""

    tables: dict[str, dict[bytes, Cells]] = field(default_factory=dict)
    requests: list[tuple[str, int]] = field(default_factory=list)
    connections: int = 0
    is_down: bool = False
    before: Callable[[str], None] = lambda operation: None

    def connect(self, host: str, port: int, timeout_ms: int) -> FakeConnection:
        if self.is_down:
            raise ConnectionRefusedError(f"nothing listens at {host}:{port}")
        self.connections += 1
        return FakeConnection(self)

    def ask(self, operation: str, rows: int) -> None:
        self.requests.append((operation, rows))
        self.before(operation)
        if self.is_down:
            raise BrokenPipeError("the server is gone")

    def entries(self, table: str) -> dict[str, tuple[str, str, str]]:
        """Partition path, file id and instant by key."""
        found = {key.decode(): cells for key, cells in self.tables[table].items() if not key.startswith(b"\0")}
        names = (b"_s:partition_path", b"_s:file_name", b"_s:commit_ts")
        return {key: (cells[names[0]].decode(), cells[names[1]].decode(), cells[names[2]].decode()) for key, cells in found.items()}

    def put(self, table: str, key: str, partition: str, file_id: str, instant: str) -> None:
        """Put an entry, as another program would."""
        cells = {b"_s:partition_path": partition.encode(), b"_s:file_name": file_id.encode(), b"_s:commit_ts": instant.encode()}
        self.tables[table][key.encode()] = cells


@dataclass
class FakeConnection:
    server: FakeHBase

    def tables(self) -> list[bytes]:
        self.server.ask("tables", 0)
        return [name.encode() for name in self.server.tables]

    def create_table(self, name: str, families: Mapping[str, Any]) -> None:
        self.server.ask("create", 0)
        assert list(families) == ["_s"]
        self.server.tables[name] = {}

    def table(self, name: str) -> FakeTable:
        return FakeTable(self.server, name)

    def close(self) -> None:
        if self.server.is_down:
            raise BrokenPipeError("the server is gone")


@dataclass
class FakeTable:
    server: FakeHBase
    name: str

    def _rows(self, operation: str, rows: int) -> dict[bytes, Cells]:
        self.server.ask(operation, rows)
        if self.name not in self.server.tables:
            raise OSError(f"TableNotFoundException: {self.name}")
        return self.server.tables[self.name]

    def rows(self, keys: Sequence[bytes], columns: Sequence[bytes]) -> list[tuple[bytes, Cells]]:
        stored = self._rows("get", len(keys))
        return [(key, {name: stored[key][name] for name in columns if name in stored[key]}) for key in keys if key in stored]

    def row(self, key: bytes, columns: Sequence[bytes]) -> Cells:
        stored = self._rows("owner", 1).get(key, {})
        return {name: stored[name] for name in columns if name in stored}

    def put(self, key: bytes, cells: Cells) -> None:
        self._rows("own", 1).setdefault(key, {}).update(cells)

    def delete(self, key: bytes) -> None:
        self._rows("disown", 1).pop(key, None)

    def batch(self) -> FakeBatch:
        return FakeBatch(self)


@dataclass
class FakeBatch:
    table: FakeTable
    changes: list[tuple[bytes, Cells | None]] = field(default_factory=list)

    def put(self, key: bytes, cells: Cells) -> None:
        self.changes.append((key, dict(cells)))

    def delete(self, key: bytes) -> None:
        self.changes.append((key, None))

    def send(self) -> None:
        operation = "delete" if self.changes and self.changes[0][1] is None else "put"
        stored = self.table._rows(operation, len(self.changes))
        for key, cells in self.changes:
            if cells is None:
                stored.pop(key, None)
            else:
                stored.setdefault(key, {}).update(cells)


@contextmanager
def fake_hbase() -> Iterator[FakeHBase]:
    """An HBase for every client of this process, which does not wait before it repeats a request."""
    server = FakeHBase()
    clients: dict[HBaseOptions, HBaseClient] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "happybase_driver", lambda: Driver(server.connect, (OSError, EOFError)))
        patch.setattr(client, "_CLIENTS", clients)
        patch.setattr(client, "_PAUSES", (0.0, 0.0))
        yield server
