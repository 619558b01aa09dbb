"""What is made of a store's answers, by a real client that a server on this machine answers: of what happened, never of what is named."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import obstore
import pytest
from obstore.store import S3Store

from lakehouse_engine.errors import StorageError
from lakehouse_engine.storage.objects.errors import as_object_errors, is_unanswered, may_be_done

TELLING_NAMES = [
    "t/plain",
    "t/507/50749.parquet",
    "t/credential=x y/é",
    "t/NoSuchBucket/AccessDenied",
    "t/redirect/metadata endpoint/no space",
    "t/status code: 404/SlowDown",
    't/"status code: 507"/builder error',
    "t/connect not found/http:/169.254.169.254",
]
"""Names that a user may give to tables, partitions and values."""


class Answering(ThreadingHTTPServer):
    """Answers each request with `status`, and with what S3 says beside it: the names that were asked for, and its own."""

    status = 500
    code = "InternalError"
    daemon_threads = True


class _Answer(BaseHTTPRequestHandler):
    server: Answering

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        key = self.path.removeprefix("/bucket/")
        ids = "<RequestId>5075030449</RequestId><HostId>NoSuchBucket507</HostId>"
        said = f"<Error><Code>{self.server.code}</Code><Key>{key}</Key><Resource>{self.path}</Resource>{ids}</Error>".encode()
        self.send_response(self.server.status)
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *arguments: object) -> None:
        """Prints nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[Answering]:
    """On a port whose digits say 'no room left'."""
    for port in (*range(50700, 50800), 15070, 25070, 35070, 45070):
        with contextlib.suppress(OSError):
            answering = Answering(("127.0.0.1", port), _Answer)
            break
    else:
        pytest.skip("no port of these is free")
    Thread(target=answering.serve_forever, daemon=True).start()
    yield answering
    answering.shutdown()
    answering.server_close()


def put(server: Answering, key: str) -> Exception:
    store = S3Store(
        "bucket",
        endpoint=f"http://127.0.0.1:{server.server_port}",
        access_key_id="a",
        secret_access_key="b",
        region="us-east-1",
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )
    with pytest.raises((obstore.exceptions.BaseError, OSError)) as caught:
        obstore.put(store, key, b"1")
    return caught.value


def told(error: BaseException, key: str) -> str:
    with pytest.raises(StorageError) as caught, as_object_errors("write", key, "s3://bucket"):
        raise error
    return str(caught.value)


@pytest.mark.parametrize("key", TELLING_NAMES)
@pytest.mark.parametrize(
    ("status", "code", "advice", "done"),
    [
        (500, "InternalError", "the store answered with an error", True),
        (503, "X", "the store asks for fewer requests", True),
        (507, "X", "no room left", False),
        (400, "X", "the store answered with an error", False),
        (403, "X", "access is denied", False),
        (404, "NoSuchBucket", "there is no such bucket", False),
        (404, "NoSuchKey", "it is not there", False),
        (412, "X", "the store answered with an error", False),
    ],
)
def test_names_say_nothing_of_what_happened(server: Answering, status: int, code: str, advice: str, done: bool, key: str) -> None:
    server.status, server.code = status, code
    error = put(server, key)
    assert may_be_done(error) is done
    assert advice in told(error, "file")


def test_a_store_that_is_not_there_is_told_apart(server: Answering) -> None:
    gone = Answering(("127.0.0.1", 0), _Answer)
    gone.server_close()
    error = put(gone, "t/507")
    assert may_be_done(error)
    assert "cannot be reached" in told(error, "file")


@pytest.mark.parametrize("text", ["in 450.405ms - HTTP error: error sending request", "in 0.5s, elapsed: 503.12ms, after 404 retries"])
def test_how_long_a_request_took_is_no_answer(text: str) -> None:
    assert is_unanswered(obstore.exceptions.GenericError(f"Error performing POST {text}"))


@pytest.mark.parametrize("status", [500, 503, 429])
def test_an_answer_that_a_request_failed_is_one(server: Answering, status: int) -> None:
    server.status, server.code = status, "X"
    assert not is_unanswered(put(server, "file"))
