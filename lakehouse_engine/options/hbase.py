"""Options of the HBASE index, an external index in a table of Apache HBase (docs/adr/0075)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lakehouse_engine.options.base import Option, boolean, natural, positive

_TABLE = re.compile(r"([A-Za-z0-9_.-]+:)?[A-Za-z0-9_][A-Za-z0-9_.-]*")
_HOST = re.compile(r"[A-Za-z0-9_.:-]+")


def _like(pattern: re.Pattern[str], expected: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not pattern.fullmatch(text.strip()):
            raise ValueError(f"expected {expected}")
        return text.strip()

    return parse


HBASE_TABLE = Option(
    "hoodie.index.hbase.table",
    _like(_TABLE, "the name of an HBase table, or namespace:name"),
    "",
    "HBASE index: the HBase table with the places of the keys.",
)
HBASE_THRIFT_HOST = Option(
    "lakehouse.index.hbase.thrift.host",
    _like(_HOST, "the name or address of a host"),
    "",
    "HBASE index: host of HBase's Thrift server, by which this engine speaks to HBase.",
)
HBASE_THRIFT_PORT = Option("lakehouse.index.hbase.thrift.port", positive, 9090, "HBASE index: port of HBase's Thrift server.")
HBASE_TIMEOUT = Option(
    "lakehouse.index.hbase.timeout.ms", positive, 60_000, "HBASE index: how long one answer of the Thrift server may take, in milliseconds."
)
HBASE_GET_BATCH = Option("hoodie.index.hbase.get.batch.size", positive, 100, "HBASE index: keys that are looked up by one request.")
HBASE_PUT_BATCH = Option("hoodie.index.hbase.put.batch.size", positive, 100, "HBASE index: entries that one request puts or deletes.")
HBASE_MAX_QPS = Option(
    "hoodie.index.hbase.max.qps.per.region.server",
    natural,
    1000,
    "HBASE index: keys that a write looks up, puts or deletes in a second at most; 0: no limit. The Thrift server does not say how many"
    " region servers there are, so this is the limit for all of them.",
)
HBASE_UPDATE_PARTITION_PATH = Option(
    "hoodie.hbase.index.update.partition.path",
    boolean,
    False,
    "HBASE index: a record that arrives under another partition moves there (true), or is updated where it is (false).",
)


@dataclass(frozen=True, slots=True)
class HBaseOptions:
    """Where the entries of a table's HBASE index are, and how they are asked for. `table` and `host` are empty if not given.

    `get_batch` and `put_batch` are rows in a request, `max_qps` rows in a second (0: no limit), `timeout_ms` milliseconds.
    """

    table: str = HBASE_TABLE.default
    host: str = HBASE_THRIFT_HOST.default
    port: int = HBASE_THRIFT_PORT.default
    timeout_ms: int = HBASE_TIMEOUT.default
    get_batch: int = HBASE_GET_BATCH.default
    put_batch: int = HBASE_PUT_BATCH.default
    max_qps: int = HBASE_MAX_QPS.default

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> HBaseOptions:
        return cls(
            table=HBASE_TABLE.read(raw),
            host=HBASE_THRIFT_HOST.read(raw),
            port=HBASE_THRIFT_PORT.read(raw),
            timeout_ms=HBASE_TIMEOUT.read(raw),
            get_batch=HBASE_GET_BATCH.read(raw),
            put_batch=HBASE_PUT_BATCH.read(raw),
            max_qps=HBASE_MAX_QPS.read(raw),
        )

    def differing(self, other: HBaseOptions) -> list[str]:
        """Keys of the options whose values differ from those of `other`."""
        return [key for name, key in _KEYS.items() if getattr(self, name) != getattr(other, name)]

    @property
    def missing(self) -> str | None:
        """Key of a required option that is not given."""
        if not self.table:
            return HBASE_TABLE.key
        return HBASE_THRIFT_HOST.key if not self.host else None

    @property
    def place(self) -> str:
        """HBase table, host and port, for messages and comparison."""
        return f"{self.table} (HBase, Thrift server {self.host}:{self.port})"


_KEYS = {
    "table": HBASE_TABLE.key,
    "host": HBASE_THRIFT_HOST.key,
    "port": HBASE_THRIFT_PORT.key,
    "timeout_ms": HBASE_TIMEOUT.key,
    "get_batch": HBASE_GET_BATCH.key,
    "put_batch": HBASE_PUT_BATCH.key,
    "max_qps": HBASE_MAX_QPS.key,
}
