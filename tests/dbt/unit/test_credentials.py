"""The profile: what is required, what is refused and with which words."""

from __future__ import annotations

import os

import pytest
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.credentials import LakehouseCredentials


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
        ({"schema": "s", "method": "locl"}, "did you mean 'local'"),
        ({"schema": "s", "method": "connect"}, "not available in this version"),
        ({"schema": "s", "method": "connect", "url": "sc://localhost:15002"}, "not available in this version"),
        ({"schema": "s", "warehose": "x"}, "did you mean 'warehouse'"),
    ],
)
def test_wrong_profile_is_refused(profile: dict[str, str], words: str) -> None:
    with pytest.raises(DbtConfigError, match=words):
        LakehouseCredentials.from_dict(profile)


def test_booleans_of_spark_config_become_text_as_spark_writes_them() -> None:
    credentials = LakehouseCredentials.from_dict({"schema": "s", "spark_config": {"spark.ui.enabled": True, "n": 2}})
    assert credentials.spark_config == {"spark.ui.enabled": "true", "n": "2"}
