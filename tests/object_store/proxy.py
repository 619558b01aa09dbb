"""A server before the object store, which counts requests, and answers some otherwise than the store."""

from __future__ import annotations

import re
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from email.message import Message
from email.utils import format_datetime, parsedate_to_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import pytest

from tests.object_store.dbt_store import Store

Fault = Callable[[str, str], str]
"""Method and path of a request -> "" to let it through, "before" or "409" to answer 503 or 409 without it, "500", "cut" or "409 after"
after it was carried out, "late" to keep it for `Proxy.carry_out` without an answer, "refuse STATUS CODE" to answer as S3 refuses.
"""
CONFLICT = b"<Error><Code>ConditionalRequestConflict</Code></Error>"


class Proxy(ThreadingHTTPServer):
    daemon_threads = True
    fault: Fault = staticmethod(lambda method, path: "")
    target = ""
    ahead = timedelta(0)
    """What the clock that dates objects is ahead of the store's own."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.late: list[urllib.request.Request] = []
        self.asked: list[tuple[str, str]] = []

    def requests(self, call: Callable[[], object]) -> list[tuple[str, str]]:
        """Method and path of each request that `call` makes."""
        self.asked.clear()
        call()
        return self.asked[:]

    def carry_out(self) -> list[int]:
        """The requests that were kept arrive now; what the store says of each."""
        found = [asked(request)[0] for request in self.late]
        self.late.clear()
        return found


_LISTED = re.compile(rb"(?<=<LastModified>)[^<]+")
_LISTED_BY_AZURE = re.compile(rb"(?<=<Last-Modified>)[^<]+")


def _moved(text: str, ahead: timedelta) -> str:
    return (datetime.fromisoformat(text.replace("Z", "+00:00")) + ahead).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _told_otherwise(text: str, ahead: timedelta) -> str:
    return format_datetime(parsedate_to_datetime(text) + ahead, usegmt=True)


def asked(request: urllib.request.Request) -> tuple[int, dict[str, str], bytes]:
    try:
        with urllib.request.urlopen(request, timeout=30) as found:
            return found.status, _titled(found.headers), found.read()
    except urllib.error.HTTPError as error:
        return error.code, _titled(error.headers), error.read()


def _titled(headers: Message) -> dict[str, str]:
    """Each server writes names of headers in its own way."""
    return {name.title(): value for name, value in headers.items()}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        # Google's client writes names with all but letters and digits encoded.
        name, *query = self.path.split("?", 1)
        named = "?".join([unquote(name), *query])
        self.server.asked.append((self.command, named))
        fault = self.server.fault(self.command, named)
        if fault == "before":
            self._answer(503, {}, b"<Error><Code>SlowDown</Code></Error>")
            return
        if fault == "409":
            self._answer(409, {}, CONFLICT)
            return
        if fault.startswith("refuse"):
            _, status, code = fault.split()
            self._answer(int(status), {}, f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode())
            return
        headers = {key.title(): value for key, value in self.headers.items() if key.lower() not in ("connection", "content-length")}
        headers.setdefault("Content-Type", "")  # urllib would call it a form; to Azure it is signed that it is nothing
        request = urllib.request.Request(self.server.target + self.path, body or None, headers, method=self.command)
        if fault == "late":
            self.server.late.append(request)
            self._hang_up()
            return
        status, told, content = self._dated(*asked(request))
        if fault == "cut":
            self._hang_up()
        elif fault == "409 after":
            self._answer(409, {}, CONFLICT)
        elif fault == "500":
            self._answer(500, {}, b"<Error><Code>InternalError</Code></Error>")
        else:
            self._answer(status, told, content)

    def _dated(self, status: int, told: dict[str, str], content: bytes) -> tuple[int, dict[str, str], bytes]:
        """The answer of a store whose clock is otherwise."""
        ahead = self.server.ahead
        if ahead:
            if b"<ListBucketResult" in content:
                content = _LISTED.sub(lambda found: _moved(found[0].decode(), ahead).encode(), content)
            elif b"<EnumerationResults" in content:
                content = _LISTED_BY_AZURE.sub(lambda found: _told_otherwise(found[0].decode(), ahead).encode(), content)
            told = {key: _told_otherwise(value, ahead) if key.lower() == "last-modified" else value for key, value in told.items()}
        return status, told, content

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.close()

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
    with Proxy() as server:
        server.target = s3_store.endpoint.removesuffix(s3_store.account_path)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def options(store: Store, proxy: Proxy) -> dict[str, str]:
    return store.elsewhere(f"http://127.0.0.1:{proxy.server_port}{store.account_path}")
