"""Incomplete multipart uploads: they are no objects, no listing shows them, and the bucket's owner pays for them.

A killed writer leaves what it had sent. `obstore` has no request for them, so botocore makes it (docs/adr/0035).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from importlib import import_module
from typing import Any

from lakehouse_engine.errors import OptionError, UnavailableError
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import is_object_store, options_of, place_of

A_DAY = 24
"""Hours: longer than any file takes to write."""
_ELSEWHERE = {
    "gs": "Google's credentials cannot ask for them here; give the bucket the lifecycle rule AbortIncompleteMultipartUpload",
    "az": "Azure removes the parts of uploads that were not completed after a week, and has no uploads to abort",
}
_KEYS = {
    "aws_access_key_id": ("access_key_id",),
    "aws_secret_access_key": ("secret_access_key",),
    "aws_session_token": ("session_token", "token"),
}
"""botocore's settings, and their names in `storage_options`."""


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload that was begun and not completed. `path` is relative to the storage's root, `begun_ms` by the store's clock (UTC)."""

    path: str
    begun_ms: int
    upload_id: str


def clear_uploads(storage: Storage, older_than_hours: int, *, dry_run: bool) -> list[Upload]:
    """Remove incomplete uploads, or only find them; returns them. Raises as `unfinished_uploads`."""
    found = unfinished_uploads(storage, older_than_hours)
    if not dry_run:
        abort_uploads(storage, found)
    return found


def unfinished_uploads(storage: Storage, older_than_hours: int = A_DAY) -> list[Upload]:
    """Uploads below the root of a storage that began longer ago than that by the store's clock, sorted by path.

    Raises `OptionError` for a directory, `UnavailableError` for stores other than S3 and without botocore, and `StorageError`.
    """
    bucket, prefix = _place(storage)
    found: list[Upload] = []
    with _asked(storage, "look for uploads below") as client:
        for page in client.get_paginator("list_multipart_uploads").paginate(Bucket=bucket, Prefix=f"{prefix}/" if prefix else ""):
            now, least = _time_of(page), older_than_hours * 3600
            found += [_upload(entry, prefix) for entry in page.get("Uploads", ()) if (now - entry["Initiated"]).total_seconds() >= least]
    return sorted(found, key=lambda one: (one.path, one.begun_ms))


def abort_uploads(storage: Storage, uploads: list[Upload]) -> None:
    """Remove the parts of uploads; absent ones are skipped. Raises as `unfinished_uploads`."""
    bucket, prefix = _place(storage)
    with _asked(storage, "abort uploads below") as client:
        for one in uploads:
            with suppress(client.exceptions.NoSuchUpload):
                client.abort_multipart_upload(Bucket=bucket, Key=f"{prefix}/{one.path}" if prefix else one.path, UploadId=one.upload_id)


def _place(storage: Storage) -> tuple[str, str]:
    """Bucket and prefix."""
    if not is_object_store(storage.root):
        raise OptionError(f"{storage.root} is a directory, which has no uploads; they are in buckets of S3")
    scheme, bucket, prefix = place_of(storage.root)
    if scheme != "s3":
        raise UnavailableError(f"uploads of {storage.root} cannot be looked for: {_ELSEWHERE[scheme]}")
    return bucket, prefix


def _upload(entry: Mapping[str, Any], prefix: str) -> Upload:
    path = entry["Key"].removeprefix(f"{prefix}/") if prefix else entry["Key"]
    return Upload(path, int(entry["Initiated"].timestamp() * 1000), entry["UploadId"])


def _time_of(page: Mapping[str, Any]) -> datetime:
    """Time of the store's answer, by its clock."""
    told = page["ResponseMetadata"]["HTTPHeaders"].get("date")
    return parsedate_to_datetime(told) if told else datetime.now(timezone.utc)


@contextmanager
def _asked(storage: Storage, what: str) -> Iterator[Any]:
    """Client of the bucket; its errors become the engine's."""
    try:
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.session import Session
    except ImportError:
        raise UnavailableError("uploads are looked for with botocore, which is not there: pip install 'dbt-lakehouse[s3]'") from None
    config, client = client_settings(options_of(storage))
    try:
        yield Session().create_client("s3", config=Config(**config), **client)
    except (BotoCoreError, ClientError) as error:
        # Imported on use, as it loads obstore: tables in directories need not wait for that.
        told = import_module("lakehouse_engine.storage.objects.errors").storage_error
        raise told(what, _place(storage)[1], storage.root, error) from None


def client_settings(options: Iterable[tuple[str, str]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """`storage_options`, or the environment as obstore reads it, as botocore's Config and client arguments."""
    given = {name.removeprefix("aws_"): value for name, value in options}

    def told(*names: str) -> str | None:
        found = (given.get(name) or os.environ.get(f"AWS_{name.upper()}") for name in names)
        return next((value for value in found if value), None)

    endpoint = told("endpoint", "endpoint_url")
    in_path = endpoint is not None and told("virtual_hosted_style_request") != "true"
    config: dict[str, Any] = {"retries": {"max_attempts": 5}, "s3": {"addressing_style": "path" if in_path else "auto"}}
    if told("skip_signature") == "true":
        from botocore import UNSIGNED

        config["signature_version"] = UNSIGNED
    if proxy := told("proxy_url"):
        config["proxies"] = {"http": proxy, "https": proxy}
    client: dict[str, Any] = {"region_name": told("region", "default_region") or "us-east-1", "endpoint_url": endpoint}
    client |= {name: told(*spellings) for name, spellings in _KEYS.items()}
    if told("allow_invalid_certificates") == "true":
        client["verify"] = False
    return config, client
