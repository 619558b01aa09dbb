"""A warehouse in an object store: what a profile may say, what is shown of it, and what Spark is told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.config.stores import ObjectStore, jars_in
from dbt.adapters.lakehouse.credentials import LakehouseCredentials
from dbt.adapters.lakehouse.environments import environment_of, jvm
from dbt.adapters.lakehouse.environments.local import default_conf, start_conf, store_conf

CANARY = "CANARYdoNotShow"
KEYS = {
    "endpoint": "http://127.0.0.1:9", "region": "eu-central-1", "access_key_id": f"{CANARY}1", "secret_access_key": f"{CANARY}2",
    "session_token": f"{CANARY}3", "allow_http": True,
}  # fmt: skip
S3 = {"schema": "s", "warehouse": "s3://my.bucket/lake", "storage_options": KEYS}


def profile(**more: Any) -> LakehouseCredentials:
    return LakehouseCredentials.from_dict({**S3, **more})


@pytest.mark.parametrize("address", ["s3://b/p", "s3a://b/p", "gs://b/p", "az://b/p"])
def test_an_address_in_a_store_is_left_as_written(address: str) -> None:
    assert profile(warehouse=address, storage_options={}).warehouse == address


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"warehouse": "lake"}, "not to a directory"),
        ({"warehouse": "file:///lake"}, "not to a directory"),
        ({"warehouse": "hdfs://b/p"}, "'hdfs://' is none of s3://"),
        ({"warehouse": f"s3://key:{CANARY}@b/p"}, "keys stand in storage_options"),
        ({"warehouse": "s3:///p"}, "names no bucket"),
        ({"storage_options": "region=x"}, "a mapping"),
        ({"storage_options": {"secret_acces_key": CANARY}}, "'secret_acces_key' is no option of s3://; did you mean 'secret_access_key'"),
        ({"storage_options": {"aws_endpoint": "x"}}, "'aws_endpoint' is no option of s3://; did you mean 'endpoint'"),
        ({"storage_options": {"virtual_hosted_style_request": "on"}}, "virtual_hosted_style_request is true or false"),
        ({"storage_options": {"skip_signature": "True"}}, "skip_signature is true or false"),
        ({"storage_options": {"secret_access_key": [CANARY]}}, "'secret_access_key' has no plain value"),
        ({"warehouse": "gs://b/p", "jars": "x", "storage_options": {}}, "somewhere else"),
        ({"method": "session", "jars": "x"}, "belongs to method 'local'"),
    ],
)
def test_what_does_not_fit_is_refused_without_showing_it(given: dict[str, Any], words: str) -> None:
    with pytest.raises(DbtConfigError, match=words) as caught:
        profile(**given)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "name"),
    [
        *(("s3://b/p", name) for name in ("metadata_endpoint", "role_session_name", "sse_bucket_key_enabled", "aws_endpoint_url_s3")),
        *(("gs://b/p", name) for name in ("base_url", "bearer_token", "service_account", "service_account_key", "application_credentials")),
        *(("az://b/p", name) for name in ("sas_token", "sas_key", "token", "msi_endpoint", "use_emulator", "use_fabric_endpoint")),
    ],
)
def test_a_name_that_the_store_knows_is_taken_for_no_other(address: str, name: str) -> None:
    found = profile(warehouse=address, storage_options={name: "x"})
    assert found.storage_options == {name: "x"}


def test_a_name_that_is_like_none_is_left_to_the_store() -> None:
    assert profile(storage_options={"imdsv1_fallback": True}).storage_options == {"imdsv1_fallback": "true"}


def test_secrets_are_in_nothing_that_is_shown() -> None:
    shown = profile()
    info = dict(shown.connection_info())
    assert info["storage_options"]["endpoint"] == "http://127.0.0.1:9"
    assert info["storage_options"]["secret_access_key"] == "***"
    assert CANARY not in f"{info} {shown!r} {shown.store!r}"
    assert shown.storage_options["secret_access_key"] == f"{CANARY}2"


def test_keys_of_other_stores_are_not_shown() -> None:
    given = {"account_key": CANARY, "sas_token": CANARY, "client_secret": CANARY, "endpoint": f"http://u:{CANARY}@h"}
    told = profile(warehouse="az://b/p", storage_options=given)
    assert CANARY not in str(dict(told.connection_info()))


def test_spark_is_told_nothing_where_the_engine_reads() -> None:
    told = profile()
    assert not told.spark_reads
    assert store_conf(told) == {}
    assert "lakehouse.read.files" not in told.hoodie


@pytest.mark.parametrize(
    "given",
    [
        {"jars": "x"},
        {"spark_config": {"spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.5.0"}},
        {"hoodie": {"lakehouse.read.files": "SPARK"}},
    ],
)
def test_spark_reads_where_it_is_given_what_it_needs(given: dict[str, Any]) -> None:
    told = profile(**given)
    assert told.spark_reads
    assert told.hoodie["lakehouse.read.files"] == "SPARK"
    assert not profile(**{**given, "hoodie": {"lakehouse.read.files": "engine"}}).spark_reads


def test_settings_are_of_the_bucket_alone() -> None:
    conf = store_conf(profile(jars="x"))
    prefix = "spark.hadoop.fs.s3a.bucket.my.bucket."
    assert {key.removeprefix(prefix): value for key, value in conf.items() if key.startswith(prefix)} == {
        "endpoint": "http://127.0.0.1:9",
        "connection.ssl.enabled": "false",
        "path.style.access": "true",
        "endpoint.region": "eu-central-1",
        "access.key": f"{CANARY}1",
        "secret.key": f"{CANARY}2",
        "session.token": f"{CANARY}3",
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
    }
    assert conf["spark.hadoop.fs.s3.impl"] == "org.apache.hadoop.fs.s3a.S3AFileSystem"


def test_without_keys_s3a_looks_for_them_itself() -> None:
    assert ObjectStore.of("s3://b/p", {"region": "r"}).spark_settings() == {
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.hadoop.fs.s3a.bucket.b.endpoint.region": "r",
    }


def test_spark_hides_what_is_secret_in_every_store() -> None:
    hides = re.compile(default_conf()["spark.redaction.regex"])
    hidden = [*store_conf(profile(jars="x")), "fs.azure.account.key.x", "fs.azure.sas.x", "fs.gs.auth.service.account.private.key"]
    shown = [key.removeprefix("spark.hadoop.fs.s3a.bucket.my.bucket.") for key in hidden if not hides.search(key)]
    assert shown == ["spark.hadoop.fs.s3.impl", "endpoint", "connection.ssl.enabled", "path.style.access", "endpoint.region"]


def test_keys_are_not_on_the_command_line_of_the_jvm() -> None:
    assert CANARY not in " ".join(jvm._arguments(start_conf(profile(jars="x").spark_config)))


def test_profiles_with_other_keys_have_another_spark(tmp_path: Path) -> None:
    first, second = profile(jars=str(tmp_path)), profile(jars=str(tmp_path), storage_options={**KEYS, "region": "other"})
    assert environment_of(first) is not environment_of(second)
    assert environment_of(profile()) is environment_of(profile(storage_options={}))


def test_a_folder_without_what_spark_needs_is_refused_with_the_coordinates(tmp_path: Path) -> None:
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    (home / "jars" / "hadoop-client-api-3.5.0.jar").touch()
    folder = tmp_path / "given"
    wanted = "org.apache.hadoop:hadoop-aws:3.5.0"
    with pytest.raises(DbtConfigError, match=rf"no folder.*{wanted}"):
        jars_in(str(folder), home)
    folder.mkdir()
    (folder / "hadoop-aws-3.3.4.jar").touch()
    with pytest.raises(DbtConfigError, match=rf"no hadoop-aws of Spark's own version.*{wanted}"):
        jars_in(str(folder), home)
    (folder / "org.apache.hadoop_hadoop-aws-3.5.0.jar").touch()
    with pytest.raises(DbtConfigError, match=r"software.amazon.awssdk:bundle"):
        jars_in(str(folder), home)
    (folder / "bundle-2.35.4.jar").touch()
    assert len(jars_in(str(folder), home)) == 3
