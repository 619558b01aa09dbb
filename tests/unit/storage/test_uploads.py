"""Where uploads can be looked for, and how obstore's options are told to botocore."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from lakehouse_engine import Lakehouse
from lakehouse_engine.cli.main import cli
from lakehouse_engine.errors import OptionError, UnavailableError
from lakehouse_engine.storage.objects.store import ObjectStorage
from lakehouse_engine.storage.objects.uploads import clear_uploads, client_settings, unfinished_uploads


def test_a_directory_has_none(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="directory"):
        Lakehouse(str(tmp_path)).abort_uploads()
    ended = CliRunner().invoke(cli, ["--warehouse", str(tmp_path), "abort-uploads"])
    assert (ended.exit_code, "directory" in ended.output) == (2, True)


@pytest.mark.parametrize(
    ("place", "options", "remedy"),
    [
        ("gs://bucket/lake", {"skip_signature": "true"}, "AbortIncompleteMultipartUpload"),
        ("az://bucket/lake", {"account_name": "a", "skip_signature": "true"}, "after a week"),
    ],
)
def test_other_stores_are_refused_by_name(place: str, options: dict[str, str], remedy: str) -> None:
    with pytest.raises(UnavailableError, match=remedy):
        unfinished_uploads(ObjectStorage.at(place, options))


def test_without_botocore_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.config", None)
    with pytest.raises(UnavailableError, match=r"pip install 'dbt-lakehouse\[s3\]'"):
        unfinished_uploads(ObjectStorage.at("s3://bucket/lake", {"region": "eu-central-1"}))


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    return monkeypatch


KEYS = {"aws_access_key_id": None, "aws_secret_access_key": None, "aws_session_token": None}


@pytest.mark.parametrize(
    ("given", "environment", "client", "style"),
    [
        ({}, {}, {"region_name": "us-east-1", "endpoint_url": None, **KEYS}, "auto"),
        ({"region": "eu-west-1"}, {"AWS_REGION": "x"}, {"region_name": "eu-west-1", "endpoint_url": None, **KEYS}, "auto"),
        ({}, {"AWS_DEFAULT_REGION": "eu-west-2"}, {"region_name": "eu-west-2", "endpoint_url": None, **KEYS}, "auto"),
        (
            {"endpoint": "http://here", "aws_access_key_id": "a", "secret_access_key": "b", "token": "c"},
            {},
            {
                "region_name": "us-east-1",
                "endpoint_url": "http://here",
                "aws_access_key_id": "a",
                "aws_secret_access_key": "b",
                "aws_session_token": "c",
            },
            "path",
        ),
        (
            {"virtual_hosted_style_request": "true", "allow_invalid_certificates": "true"},
            {"AWS_ENDPOINT_URL": "https://there"},
            {"region_name": "us-east-1", "endpoint_url": "https://there", **KEYS, "verify": False},
            "auto",
        ),
    ],
)
def test_options_are_those_of_the_storage(
    bare: pytest.MonkeyPatch, given: dict[str, str], environment: dict[str, str], client: dict[str, Any], style: str
) -> None:
    for name, value in environment.items():
        bare.setenv(name, value)
    config, found = client_settings(tuple(given.items()))
    assert found == client
    assert config["s3"] == {"addressing_style": style}


def test_a_proxy_and_requests_without_a_signature(bare: pytest.MonkeyPatch) -> None:
    from botocore import UNSIGNED

    config, _ = client_settings((("proxy_url", "http://proxy:1"), ("skip_signature", "true")))
    assert config["proxies"] == {"http": "http://proxy:1", "https": "http://proxy:1"}
    assert config["signature_version"] is UNSIGNED


NOW = datetime(2026, 1, 2, 12, tzinfo=timezone.utc)


class Client:
    """A bucket that has these uploads, as botocore tells of them; each is this many hours old."""

    def __init__(self, hours: dict[str, float]) -> None:
        self.hours, self.aborted = hours, list[str]()
        self.exceptions = SimpleNamespace(NoSuchUpload=KeyError)

    def get_paginator(self, name: str) -> Client:
        assert name == "list_multipart_uploads"
        return self

    def paginate(self, **asked: str) -> Iterator[dict[str, Any]]:
        for key, hours in self.hours.items():
            found = [{"Key": key, "Initiated": NOW - timedelta(hours=hours), "UploadId": key}] if key.startswith(asked["Prefix"]) else []
            yield {"ResponseMetadata": {"HTTPHeaders": {"date": format_datetime(NOW, usegmt=True)}}, "Uploads": found}

    def abort_multipart_upload(self, **asked: str) -> None:
        self.aborted.append(asked["Key"])


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("s3://bucket/lake", {"s/t/a.parquet": "lake/s/t/a.parquet", "s/t/day": "lake/s/t/day"}),
        ("s3://bucket", {key: key for key in ("lake/s/t/a.parquet", "lake/s/t/day", "lake2/s/t/b.parquet")}),
    ],
)
def test_old_uploads_below_the_warehouse_are_removed_alone(monkeypatch: pytest.MonkeyPatch, place: str, expected: dict[str, str]) -> None:
    client = Client({"lake/s/t/a.parquet": 30, "lake2/s/t/b.parquet": 30, "lake/s/t/day": 24, "lake/s/t/young": 23.99})
    monkeypatch.setattr("botocore.session.Session.create_client", lambda *given, **named: client)
    storage = ObjectStorage.at(place, {"region": "eu-central-1"})
    found = clear_uploads(storage, 24, dry_run=True)
    assert ({one.path for one in found}, client.aborted) == (set(expected), [])
    assert clear_uploads(storage, 24, dry_run=False) == found
    assert sorted(client.aborted) == sorted(expected.values())
