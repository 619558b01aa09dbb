"""Requests to HBase's Thrift server by happybase, which is imported when the first one is made.

Requests are batched, paced, and repeated a few times over a new connection: each has the same effect when it is made twice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from lakehouse_engine.errors import ExternalIndexError, UnavailableError
from lakehouse_engine.index.hbase.rows import COLUMNS, ENTRIES, FAMILY, OWNER, OWNER_ROW, Cells, decode_rows, encode_rows, row_keys
from lakehouse_engine.options.hbase import HBASE_THRIFT_HOST, HBASE_THRIFT_PORT, HBASE_TIMEOUT, HBaseOptions

Answer = TypeVar("Answer")

_PAUSES = (0.5, 2.0)
"""Seconds before a request is repeated; after the last one it has failed."""


@dataclass(frozen=True, slots=True)
class Driver:
    """What is used of happybase: how a connection is made from host, port and timeout in milliseconds, and what requests raise."""

    connect: Callable[[str, int, int], Any]
    errors: tuple[type[Exception], ...]


def happybase_driver() -> Driver:
    """Raises `UnavailableError` without happybase."""
    try:
        from happybase import Connection
        from thriftpy2.thrift import TException
    except ImportError:
        raise UnavailableError("the HBASE index needs happybase, which is not there: pip install 'dbt-lakehouse[hbase]'") from None

    def connect(host: str, port: int, timeout_ms: int) -> Any:
        return Connection(host, port, timeout=timeout_ms)

    return Driver(connect, (OSError, EOFError, TException))


class Pace:
    """Lets `most` rows through in a second; 0 is no limit."""

    def __init__(self, most: int, *, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep) -> None:
        self._most, self._clock, self._sleep = most, clock, sleep
        self._next = 0.0

    def wait(self, rows: int) -> None:
        """Wait until the rows of earlier requests have had their time."""
        if not self._most:
            return
        now = self._clock()
        if self._next > now:
            self._sleep(self._next - now)
        self._next = max(now, self._next) + rows / self._most


class HBaseClient:
    """Entries in one HBase table. For several threads, one after the other.

    Every method raises `ExternalIndexError` with host, port and table if HBase does not do what it is asked for, and `UnavailableError`
    without happybase.
    """

    def __init__(self, options: HBaseOptions, *, pace: Pace | None = None, sleep: Callable[[float], None] = time.sleep) -> None:
        self.options = options
        self._pace = pace or Pace(options.max_qps)
        self._sleep = sleep
        self._lock = threading.Lock()
        self._connection: Any = None

    def find(self, keys: pa.Array) -> pa.Table:
        """Entries of distinct record keys, in the columns of `ENTRIES`; keys without an entry are left out."""
        found = [ENTRIES.empty_table()]
        for part in _parts(keys, self.options.get_batch):
            rows = row_keys(part)
            self._pace.wait(len(rows))
            found.append(decode_rows(self._ask("look up keys", _Get(rows))))
        return pa.concat_tables(found)

    def put(self, entries: pa.Table) -> None:
        """Put entries in the columns of `ENTRIES`."""
        for part in _parts(entries, self.options.put_batch):
            self._change("put entries", list(encode_rows(part)))

    def delete(self, keys: pa.Array) -> None:
        """Delete the rows of record keys."""
        for part in _parts(keys, self.options.put_batch):
            self._change("delete entries", [(key, None) for key in row_keys(part)])

    def make_table(self) -> None:
        """Create the HBase table with Hudi's family, if there is none."""

        def make(connection: Any) -> None:
            if self.options.table.encode() not in connection.tables():
                connection.create_table(self.options.table, {FAMILY: {}})

        self._connected("create the table", make)

    def owner(self) -> str | None:
        """Name of the table that the entries are about; None if nothing says so."""
        cells = self._ask("read whose entries these are", lambda table: table.row(OWNER_ROW, columns=[OWNER]))
        value = cells.get(OWNER)
        return None if value is None else value.decode(errors="replace")

    def set_owner(self, name: str | None) -> None:
        """Say which table the entries are about; None removes that."""
        if name is None:
            self._ask("forget whose entries these are", lambda table: table.delete(OWNER_ROW))
        else:
            self._ask("say whose entries these are", lambda table: table.put(OWNER_ROW, {OWNER: name.encode()}))

    def _change(self, what: str, rows: Sequence[tuple[bytes, Cells | None]]) -> None:
        """Put rows, and delete those without cells, in one request."""
        self._pace.wait(len(rows))

        def send(table: Any) -> None:
            batch = table.batch()
            for key, cells in rows:
                if cells is None:
                    batch.delete(key)
                else:
                    batch.put(key, cells)
            batch.send()

        self._ask(what, send)

    def _ask(self, what: str, request: Callable[[Any], Answer]) -> Answer:
        return self._connected(what, lambda connection: request(connection.table(self.options.table)))

    def _connected(self, what: str, request: Callable[[Any], Answer]) -> Answer:
        driver = happybase_driver()
        with self._lock:
            for pause in _PAUSES:
                answer = self._once(driver, request)
                if not isinstance(answer, _Failed):
                    return answer
                self._sleep(pause)
            answer = self._once(driver, request)
            if not isinstance(answer, _Failed):
                return answer
            raise self._refused(what, answer.error) from answer.error

    def _once(self, driver: Driver, request: Callable[[Any], Answer]) -> Answer | _Failed:
        """After an error the connection is given up, as it may have half of an answer."""
        try:
            if self._connection is None:
                self._connection = driver.connect(self.options.host, self.options.port, self.options.timeout_ms)
            return request(self._connection)
        except driver.errors as error:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(*driver.errors):  # it is broken already
                    connection.close()
            return _Failed(error)

    def _refused(self, what: str, error: Exception) -> ExternalIndexError:
        options = self.options
        return ExternalIndexError(
            f"HBase did not {what} in the table {options.table!r}, asked {len(_PAUSES) + 1} times by its Thrift server at"
            f" {options.host}:{options.port}: {_text(error)}. Nothing was written. See that HBase and its Thrift server run and have the"
            f" table, that {HBASE_THRIFT_HOST.key} and {HBASE_THRIFT_PORT.key} name the server, and that {HBASE_TIMEOUT.key} is long"
            " enough; then try again. A table that is lost is filled from the files by `lakehouse index rebuild`",
            host=options.host,
            port=options.port,
            hbase_table=options.table,
        )


@dataclass(frozen=True, slots=True)
class _Failed:
    error: Exception


@dataclass(frozen=True, slots=True)
class _Get:
    keys: list[bytes]

    def __call__(self, table: Any) -> list[tuple[bytes, Cells]]:
        rows: list[tuple[bytes, Cells]] = table.rows(self.keys, columns=COLUMNS)
        return rows


def _parts(rows: Any, most: int) -> Iterator[Any]:
    for start in range(0, len(rows), most):
        yield rows.slice(start, most)


def _text(error: Exception) -> str:
    """Text of an error. Its own may fail, like that of a `TApplicationException` with bytes."""
    message = getattr(error, "message", None)
    if isinstance(message, bytes):
        message = message.decode(errors="replace")
    said = message if isinstance(message, str) else ", ".join(repr(one) for one in error.args)
    return f"{type(error).__name__} ({' '.join(said.split())[:500]})"


_CLIENTS: dict[HBaseOptions, HBaseClient] = {}


def client_of(options: HBaseOptions) -> HBaseClient:
    """The client of this process for these options, whose connection stays open."""
    return _CLIENTS.setdefault(options, HBaseClient(options))
