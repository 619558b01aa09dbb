"""The profile: what is required, what is refused and with which words."""

from __future__ import annotations

import os
from typing import Any

import pytest
from dbt_common.exceptions import DbtConfigError, DbtRuntimeError

from dbt.adapters.lakehouse.credentials import LakehouseCredentials
from dbt.adapters.lakehouse.environments.local import LocalEnvironment


def test_schema_alone_is_enough() -> None:
    credentials = LakehouseCredentials.from_dict({"schema": "analytics"})
    assert (credentials.type, credentials.method, credentials.database) == ("lakehouse", "local", None)
    assert credentials.warehouse == os.path.join(os.getcwd(), "lakehouse")


def test_warehouse_is_fixed_when_the_profile_is_read(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    credentials = LakehouseCredentials.from_dict({"schema": "s", "warehouse": "data/lake"})
    monkeypatch.chdir("/")
    assert credentials.warehouse == str(tmp_path / "data" / "lake")


def test_object_store_warehouse_is_left_as_written() -> None:
    assert LakehouseCredentials.from_dict({"schema": "s", "warehouse": "s3://b/p"}).warehouse == "s3://b/p"


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        ({}, "needs a 'schema'"),
        ({"schema": "s", "database": "d"}, "no 'database'"),
        ({"schema": "s", "warehouse": " "}, "'warehouse' is empty"),
        ({"schema": "s", "warehouse": "$HOME/lake"}, r"has a variable of the shell, .*: write \"{{ env_var\('HOME'\) }}/lake\""),
        ({"schema": "s", "warehouse": "/lake/${USER}"}, r"write \"/lake/{{ env_var\('USER'\) }}\""),
        ({"schema": "s", "warehouse": "s3:/bucket/x"}, "'s3:/bucket/x' is written s3://bucket/x"),
        ({"schema": "s", "warehouse": "GS:bucket"}, "'GS:bucket' is written gs://bucket"),
        ({"schema": "s", "catalogs": {"prod": "$LAKE"}}, r"catalogs.prod '\$LAKE' has a variable of the shell"),
        ({"schema": "s", "method": "locl"}, "did you mean 'local'"),
        ({"schema": "s", "url": "sc://localhost:15002"}, "'url' belongs to method 'connect'"),
        ({"schema": "s", "method": "connect"}, "needs the server's 'url'"),
        ({"schema": "s", "method": "connect", "url": "sc://h", "host": "h"}, "not by both"),
        ({"schema": "s", "method": "connect", "url": "http://h:15002"}, "begins with 'sc://'"),
        ({"schema": "s", "method": "connect", "url": "sc://h:15002/path"}, "write it as sc://host:port"),
        ({"schema": "s", "method": "connect", "url": "sc://h:hidden"}, "write it as sc://host:port"),
        ({"schema": "s", "method": "connect", "url": "sc://h/;use_ssl"}, "has no value"),
        ({"schema": "s", "method": "connect", "url": "sc://h/;x-api-key=c2Vj=="}, "x-api-key .* has a second '='"),
        ({"schema": "s", "method": "connect", "url": "sc://h/;session_id=x"}, "a session of its own"),
        ({"schema": "s", "method": "connect", "url": "sc://h/;token=a", "token": "b"}, "not in both"),
        ({"schema": "s", "method": "connect", "host": "h", "connect_retries": -1}, "0 or more"),
        ({"schema": "s", "method": "connect", "host": "h", "connect_timeout": 0}, "more than 0"),
        ({"schema": "s", "method": "connect", "host": "h", "connect_timeout": float("nan")}, "more than 0"),
        ({"schema": "s", "method": "connect", "host": "h", "connect_timeout": 1e300}, "at most 86400"),
        ({"schema": "s", "method": "connect", "host": "h", "port": 0}, "from 1 to 65535, not 0"),
        ({"schema": "s", "method": "connect", "host": "h", "port": 70000}, "from 1 to 65535, not 70000"),
        ({"schema": "s", "method": "connect", "host": "h", "spark_config": {"spark.remote": "sc://h"}}, "named by 'url'"),
        ({"schema": "s", "warehose": "x"}, "did you mean 'warehouse'"),
    ],
)
def test_wrong_profile_is_refused(profile: dict[str, str], words: str) -> None:
    with pytest.raises(DbtConfigError, match=words):
        LakehouseCredentials.from_dict(profile)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"schema": 2026}, "'schema' is a text (in quotes, where it looks like a number), not int"),
        ({"warehouse": {"path": "x"}}, "'warehouse' is a text (in quotes, where it looks like a number), not dict"),
        ({"spark_config": ["spark.driver.memory=1g"]}, "'spark_config' is a mapping of keys to values, not list"),
        ({"token": 4711}, "'token' is a text (in quotes, where it looks like a number), not int"),
    ],
)
def test_values_of_a_wrong_kind_are_told_by_their_key_and_not_by_themselves(given: dict[str, Any], words: str) -> None:
    with pytest.raises(DbtConfigError) as caught:
        LakehouseCredentials.validate({"schema": "s", **given})
    assert caught.value.msg == f"The profile key {words}"


def test_booleans_of_spark_config_become_text_as_spark_writes_them() -> None:
    credentials = LakehouseCredentials.from_dict({"schema": "s", "spark_config": {"spark.ui.enabled": True, "n": 2}})
    assert credentials.spark_config == {"spark.ui.enabled": "true", "n": "2"}


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({"url": "sc://h"}, "sc://h:15002"),
        ({"host": "h", "port": 7}, "sc://h:7"),
        ({"host": "::1"}, "sc://[::1]:15002"),
        ({"url": "sc://h:7/;use_ssl=true;token=a%2Fb"}, "sc://h:7/;use_ssl=true;token=a%2Fb"),
        ({"url": "sc://h:7/;use_ssl=true", "token": "a/b"}, "sc://h:7/;use_ssl=true;token=a%2Fb"),
    ],
)
def test_a_server_is_named_by_url_or_by_host_and_port(given: dict[str, object], url: str) -> None:
    assert LakehouseCredentials.from_dict({"schema": "s", "method": "connect", **given}).remote.url == url


def test_a_token_and_headers_are_not_shown() -> None:
    url = "sc://h:7/;use_ssl=true;x-key=hidden1;token=hidden2"
    credentials = LakehouseCredentials.from_dict({"schema": "s", "method": "connect", "url": url})
    shown = dict(credentials.connection_info())
    assert shown["url"] == "sc://h:7/;use_ssl=true;x-key=***"
    assert credentials.token == "hidden2"
    assert not [text for text in (str(shown), repr(credentials), repr(credentials.remote)) if "hidden" in text]


def test_what_is_wrong_with_a_url_is_said_without_its_token() -> None:
    with pytest.raises(DbtConfigError) as caught:
        LakehouseCredentials.from_dict({"schema": "s", "method": "connect", "url": "sc://h/x;token=hidden"})
    assert "hidden" not in str(caught.value)


def test_an_embedded_spark_is_not_started_in_a_process_of_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://h")
    with pytest.raises(DbtRuntimeError, match="use method 'connect'"):
        LocalEnvironment(LakehouseCredentials.from_dict({"schema": "s"})).root_session()


def test_secrets_in_settings_of_spark_are_not_shown() -> None:
    given = {"spark.hadoop.fs.s3a.secret.key": "hidden", "spark.hadoop.fs.s3a.access.key": "hidden", "spark.sql.ansi.enabled": "true"}
    profile = LakehouseCredentials.from_dict({"schema": "s", "spark_config": given})
    shown = dict(profile.connection_info())["spark_config"]
    assert "hidden" not in str(shown)
    assert shown["spark.sql.ansi.enabled"] == "true"
    assert profile.spark_config == given


def test_an_address_that_is_none_is_not_repeated_for_a_token_may_be_in_it() -> None:
    with pytest.raises(DbtConfigError) as caught:
        _ = LakehouseCredentials.from_dict({"schema": "s", "method": "connect", "url": "sc://h:15002,token=hidden"}).remote
    assert "hidden" not in str(caught.value)
    assert caught.value.__cause__ is None
