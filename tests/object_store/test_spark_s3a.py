"""Spark that reads s3:// itself: with the jars of a folder that the profile names (LAKEHOUSE_S3A_JARS), and what is said without them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from lakehouse_engine import Lakehouse
from tests.object_store.dbt_store import Store, s3_store, secrets_below
from tests.support.dbt_project import Project

__all__ = ["s3_store"]
pytestmark = pytest.mark.dbt

SPARK = {"spark.driver.memory": "1g", "spark.master": "local[2]", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
JARS = os.environ.get("LAKEHOUSE_S3A_JARS")
MODEL = "{{ config(materialized='incremental', unique_key='id', table_type='mor') }} select id, concat('n', id) as name from range(10)"


def project(folder: Path, store: Store, place: str, **profile: object) -> Project:
    made = Project(folder, {"spark_config": SPARK, "warehouse": store.place(place), "storage_options": store.options, **profile})
    (made.folder / "models" / "t.sql").write_text(MODEL)
    return made


@pytest.mark.skipif(not JARS, reason="LAKEHOUSE_S3A_JARS names no folder with hadoop-aws and the bundle of the AWS SDK")
def test_spark_reads_the_files_itself(s3_store: Store, tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    ours = project(tmp_path, s3_store, "s3a", jars=JARS)
    profiles = tmp_path / "profiles.yml"
    told = yaml.safe_load(profiles.read_text())
    log = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": events.as_uri(), "spark.eventLog.compress": "false"}
    told["shop"]["outputs"]["dev"]["spark_config"].update(log)
    profiles.write_text(yaml.safe_dump(told))
    said = ours.dbt("build", "--log-level", "debug", alone=True)
    said += ours.dbt("build", "--log-level", "debug", alone=True)
    shown = ours.dbt("show", "--inline", "explain select name from s.t where id < 3", "--limit", "-1", "--output", "json", alone=True)
    assert "FileScan parquet" in shown
    assert f"s3://{s3_store.bucket}/s3a/s/t" in shown
    answer = ours.dbt("show", "--inline", "select count(name) as counted, max(id) as most from s.t", "--output", "json", alone=True)
    assert '"counted": 10' in answer
    assert Lakehouse(s3_store.place("s3a"), storage_options=s3_store.options).table("s.t").to_arrow().num_rows == 10
    assert not [secret for secret in s3_store.secrets if secret in (said + shown + answer).encode()]
    assert "fs.s3a.bucket" in "".join(path.read_text() for path in events.rglob("*") if path.is_file())
    assert secrets_below(tmp_path, s3_store, but=("profiles.yml",)) == []


def test_without_jars_the_coordinates_are_named(s3_store: Store, tmp_path: Path) -> None:
    ours = project(tmp_path, s3_store, "nothing", hoodie={"lakehouse.read.files": "SPARK"})
    said = ours.dbt("run", fails=True, alone=True)
    assert "org.apache.hadoop:hadoop-aws:" in said
    assert "'jars'" in said
    assert not Lakehouse(s3_store.place("nothing"), storage_options=s3_store.options).tables()
