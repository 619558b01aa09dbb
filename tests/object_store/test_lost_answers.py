"""Answers that are lost, late or errors though the request was carried out: what was done is found out, and never guessed."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow as pa
import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import LakehouseError, StoredFileExistsError
from lakehouse_engine.storage.object_store import ObjectStorage
from tests.object_store.dbt_store import Store, s3_store
from tests.support.shares import share_of

__all__ = ["s3_store"]

Fault = Callable[[str, str], str]
"""Method and path of a request -> "" to let it through, "before" to answer 503 without it, "500" or "cut" after it was carried out."""


class Proxy(ThreadingHTTPServer):
    daemon_threads = True
    fault: Fault = staticmethod(lambda method, path: "")
    target = ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.server.fault(self.command, self.path)
        if fault == "before":
            self._answer(503, {}, b"<Error><Code>SlowDown</Code></Error>")
            return
        headers = {key: value for key, value in self.headers.items() if key.lower() not in ("connection", "content-length")}
        headers.setdefault("Content-Type", "application/octet-stream")  # urllib would call it a form
        request = urllib.request.Request(self.server.target + self.path, body or None, headers, method=self.command)
        try:
            with urllib.request.urlopen(request, timeout=30) as found:
                status, told, content = found.status, dict(found.headers), found.read()
        except urllib.error.HTTPError as error:
            status, told, content = error.code, dict(error.headers), error.read()
        if fault == "cut":
            self.close_connection = True
            self.connection.close()
        elif fault == "500":
            self._answer(500, {}, b"<Error><Code>InternalError</Code></Error>")
        else:
            self._answer(status, told, content)

    def _answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for key, value in headers.items():
            if key.lower() not in ("connection", "content-length", "transfer-encoding", "date", "server"):
                self.send_header(key, value)
        length = headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(content))
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def proxy(s3_store: Store) -> Iterator[Proxy]:
    with Proxy(("127.0.0.1", 0), _Handler) as server:
        server.target = s3_store.options["endpoint"]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def options(store: Store, proxy: Proxy) -> dict[str, str]:
    return {**store.options, "endpoint": f"http://127.0.0.1:{proxy.server_port}"}


class Once:
    """The first request of a kind meets the fault."""

    def __init__(self, method: str, ending: str, fault: str, times: int = 1) -> None:
        self.method, self.ending, self.fault, self.left = method, ending, fault, times

    def __call__(self, method: str, path: str) -> str:
        if self.left and method == self.method and self.ending in path.partition("?")[0]:
            self.left -= 1
            return self.fault
        return ""


@pytest.mark.parametrize("fault", ["500", "cut", "before"])
def test_a_create_whose_answer_is_lost_is_found_out(s3_store: Store, proxy: Proxy, fault: str) -> None:
    storage = ObjectStorage.at(s3_store.place(uuid.uuid4().hex), options(s3_store, proxy))
    proxy.fault = Once("PUT", "/file", fault)
    storage.create("file", b"")
    assert proxy.fault.left == 0
    assert storage.read("file") == b""
    with pytest.raises(StoredFileExistsError):
        storage.create("file", b"")


@pytest.mark.parametrize("fault", ["500", "cut"])
def test_an_answer_that_is_lost_does_not_make_anothers_file_ones_own(s3_store: Store, proxy: Proxy, fault: str) -> None:
    storage = ObjectStorage.at(s3_store.place(uuid.uuid4().hex), options(s3_store, proxy))
    storage.create("file", b"")
    proxy.fault = Once("PUT", "/file", fault)
    with pytest.raises(StoredFileExistsError):
        storage.create("file", b"")


@pytest.mark.parametrize("fault", ["500", "cut", "before"])
def test_a_replacement_whose_answer_is_lost_is_found_out(s3_store: Store, proxy: Proxy, fault: str) -> None:
    storage = ObjectStorage.at(s3_store.place(uuid.uuid4().hex), options(s3_store, proxy))
    storage.create("file", b"1")
    found = storage.read_tagged("file")
    assert found is not None
    proxy.fault = Once("PUT", "/file", fault)
    tag = storage.put_tagged("file", b"2", found[1])
    assert storage.read_tagged("file") == (b"2", tag)
    assert storage.put_tagged("file", b"3", found[1]) is None


SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64())])


def rows(start: int, stop: int, ts: int) -> pa.Table:
    return pa.table({"id": list(range(start, stop)), "ts": [ts] * (stop - start)}, schema=SCHEMA)


ALL_ENDINGS = [
    ("PUT", ".requested"),
    ("PUT", ".inflight"),
    ("PUT", "commit"),
    ("PUT", ".parquet"),
    ("PUT", "table_lock.json"),
    ("DELETE", ".hoodie"),
    ("GET", "hoodie.properties"),
    ("GET", "commit"),
]
_CHOSEN = share_of(
    "lost answers of a write", [" ".join(one) for one in ALL_ENDINGS], 3, variable="LAKEHOUSE_FAULTS", full="LAKEHOUSE_FAULTS=all"
)
ENDINGS = [one for one in ALL_ENDINGS if " ".join(one) in _CHOSEN]


@pytest.mark.parametrize("fault", ["500", "cut", "before"])
@pytest.mark.parametrize(("method", "ending"), ENDINGS, ids=[f"{method} {ending}" for method, ending in ENDINGS])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_write_goes_through_or_leaves_the_table_as_it_was(
    s3_store: Store, proxy: Proxy, kind: str, method: str, ending: str, fault: str
) -> None:
    """Once: it goes through. Always: it fails or goes through, and the next one without faults has every row."""
    lake = Lakehouse(s3_store.place(uuid.uuid4().hex), storage_options=options(s3_store, proxy))
    table = lake.create_table("s.t", schema=SCHEMA, record_key=["id"], ordering_fields=["ts"], table_type=kind)
    table.upsert(rows(0, 10, 1))
    proxy.fault = Once(method, ending, fault)
    table.upsert(rows(5, 15, 2))
    proxy.fault = lambda method, path: ""
    found = lake.table("s.t").to_arrow().sort_by("id")
    assert found["id"].to_pylist() == list(range(15))
    assert found["ts"].to_pylist() == [1] * 5 + [2] * 10


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_store_that_fails_on_completing_leaves_the_table_as_it_was(s3_store: Store, proxy: Proxy, kind: str) -> None:
    lake = Lakehouse(s3_store.place(uuid.uuid4().hex), storage_options={**options(s3_store, proxy), "timeout": "5s"})
    table = lake.create_table("s.t", schema=SCHEMA, record_key=["id"], ordering_fields=["ts"], table_type=kind)
    table.upsert(rows(0, 10, 1))
    proxy.fault = Once("PUT", ".deltacommit" if kind == "mor" else ".commit", "before", times=1000)
    with pytest.raises(LakehouseError):
        table.upsert(rows(5, 15, 2))
    proxy.fault = lambda method, path: ""
    assert lake.table("s.t").to_arrow()["ts"].to_pylist() == [1] * 10
    lake.table("s.t").upsert(rows(5, 15, 3))
    found = lake.table("s.t").to_arrow().sort_by("id")
    assert found["ts"].to_pylist() == [1] * 5 + [3] * 10
