"""A server before the object store that counts requests and answers each some time later, as a store that is not on this machine would."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_OF_A_CONNECTION = ("connection", "keep-alive", "transfer-encoding", "content-length", "date", "server")


class Delay(ThreadingHTTPServer):
    """`seconds` of each request are waited before it is passed on to `port`; `asked` counts them."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, seconds: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.store, self.seconds, self.asked = port, seconds, 0
        self.guard = threading.Lock()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that are done hang up; what they miss they say."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: Delay

    def _pass(self) -> None:
        with self.server.guard:
            self.server.asked += 1
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        time.sleep(self.server.seconds)
        store = http.client.HTTPConnection("127.0.0.1", self.server.store, timeout=60)
        headers = {key: value for key, value in self.headers.items() if key.lower() not in ("connection", "content-length", "expect")}
        store.request(self.command, self.path, body or None, {**headers, "Content-Length": str(len(body))} if body else headers)
        answer = store.getresponse()
        content = answer.read()
        store.close()
        self.send_response(answer.status)
        for key, value in answer.getheaders():
            if key.lower() not in _OF_A_CONNECTION:
                self.send_header(key, value)
        self.send_header("Content-Length", answer.getheader("Content-Length", "0") if self.command == "HEAD" else str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass  # noqa: N815

    def log_message(self, format: str, *arguments: object) -> None:
        """Prints nothing."""


@contextmanager
def delayed(port: int, seconds: float) -> Iterator[Delay]:
    """The server, at work in a thread."""
    with Delay(port, seconds) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
