"""Google's XML API, as obstore's client speaks it, before fake-gcs-server, which takes writes by the JSON API alone.

Conditions are passed on as they are (`x-goog-if-generation-match` as `ifGenerationMatch`), and fake-gcs-server decides them. What it cannot
do is done here: parts of an upload are kept until it is completed, and a bearer token is asked for.
https://docs.cloud.google.com/storage/docs/xml-api/reference-methods
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, unquote, urlsplit
from urllib.request import Request

from tests.object_store.proxy import asked

_META = "x-goog-meta-"
_ALONE = ("connection", "content-length", "transfer-encoding", "date", "server")
Answer = tuple[int, dict[str, str], bytes]


class Google(ThreadingHTTPServer):
    """`target` is the address of fake-gcs-server; `tokens` are those that are let through ("": none)."""

    daemon_threads = True

    def __init__(self, target: str, tokens: set[str]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target, self.tokens = target, tokens
        self.uploads: dict[str, _Upload] = {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def insert(self, bucket: str, key: str, headers: Mapping[str, str], data: bytes) -> Answer:
        """One object by the JSON API, answered as by the XML API."""
        kind = headers.get("content-type") or "application/octet-stream"
        meta = {name.removeprefix(_META): value for name, value in headers.items() if name.startswith(_META)}
        limit = uuid.uuid4().hex
        about = json.dumps({"name": key, "metadata": meta, "contentType": kind})
        body = f"--{limit}\r\nContent-Type: application/json\r\n\r\n{about}\r\n--{limit}\r\nContent-Type: {kind}\r\n\r\n".encode()
        body += data + f"\r\n--{limit}--\r\n".encode()
        path = f"/upload/storage/v1/b/{bucket}/o?uploadType=multipart" + _condition(headers)
        return self._written(Request(self.target + path, body, {"Content-Type": f"multipart/related; boundary={limit}"}, method="POST"))

    def copy(self, bucket: str, key: str, headers: Mapping[str, str]) -> Answer:
        theirs, _, source = unquote(headers["x-goog-copy-source"]).strip("/").partition("/")
        path = f"/storage/v1/b/{theirs}/o/{quote(source, safe='')}/copyTo/b/{bucket}/o/{quote(key, safe='')}?{_condition(headers)}"
        return self._written(Request(self.target + path, b"{}", {"Content-Type": "application/json"}, method="POST"))

    def complete(self, bucket: str, key: str, upload: _Upload) -> Answer:
        status, told, content = self.insert(bucket, key, upload.headers, b"".join(data for _, data in sorted(upload.parts.items())))
        if status == 200:
            content = f"<CompleteMultipartUploadResult><ETag>{told['ETag']}</ETag></CompleteMultipartUploadResult>".encode()
        return status, told, content

    def _written(self, request: Request) -> Answer:
        status, _, content = asked(request)
        if status != 200:
            return status, {}, _error({412: "PreconditionFailed", 404: "NoSuchBucket"}.get(status, "InternalError"), content)
        made = json.loads(content)
        told = {"ETag": f'"{made["etag"]}"', "x-goog-generation": made["generation"]}
        return 200, told, f"<CopyObjectResult><ETag>{told['ETag']}</ETag></CopyObjectResult>".encode()


class _Upload:
    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = headers
        self.parts: dict[int, bytes] = {}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # An answer is one packet: its second one would wait for the first to be acknowledged.
    wbufsize = -1
    server: Google

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._answer(*self._found(body))

    def _found(self, body: bytes) -> Answer:
        headers = {key.lower(): value for key, value in self.headers.items()}
        if headers.get("authorization", "").removeprefix("Bearer").strip() not in self.server.tokens:
            return 401, {}, _error("AuthenticationRequired")
        place = urlsplit(self.path)
        bucket, _, key = place.path.strip("/").partition("/")
        query = {name: values[0] for name, values in parse_qs(place.query, keep_blank_values=True).items()}
        if "uploads" in query or "uploadId" in query:
            return self._part(bucket, unquote(key), query, headers, body)
        if self.command == "PUT":
            if "x-goog-copy-source" in headers:
                return self.server.copy(bucket, unquote(key), headers)
            return self.server.insert(bucket, unquote(key), headers, body)
        return self._passed_on(headers)

    def _part(self, bucket: str, key: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes) -> Answer:
        uploads = self.server.uploads
        if "uploads" in query:
            name = uuid.uuid4().hex
            uploads[name] = _Upload(headers)
            return 200, {}, f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId></InitiateMultipartUploadResult>".encode()
        upload = uploads.get(query["uploadId"])
        if upload is None:
            return 404, {}, _error("NoSuchUpload")
        if self.command == "PUT":
            upload.parts[int(query["partNumber"])] = body
            return 200, {"ETag": f'"{len(body)}"'}, b""
        del uploads[query["uploadId"]]
        return self.server.complete(bucket, key, upload) if self.command == "POST" else (204, {}, b"")

    def _passed_on(self, headers: Mapping[str, str]) -> Answer:
        sent = {name: value for name, value in headers.items() if name in ("range", "if-match", "if-none-match")}
        status, told, content = asked(Request(self.server.target + self.path, None, sent, method=self.command))
        if b"no bucket named" in content:
            return 404, {}, _error("NoSuchBucket")
        if status == 404:
            content = _error("NoSuchKey")
        return status, told, content

    def _answer(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in _ALONE:
                self.send_header(name, value)
        self.send_header("Content-Length", headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def _condition(headers: Mapping[str, str]) -> str:
    wanted = headers.get("x-goog-if-generation-match")
    return "" if wanted is None else f"&ifGenerationMatch={wanted}"


def _error(code: str, more: bytes = b"") -> bytes:
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Details>{quote(more[:100])}</Details></Error>".encode()
