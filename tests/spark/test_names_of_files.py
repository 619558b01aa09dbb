"""Names of files that Spark's JVM cannot write down, as its locale has no letters for them: such files are not left out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import Lakehouse
from tests.support.connect_server import classic_only

pytestmark = classic_only("a server has a locale of its own")

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])

READ = """
import sys
from pyspark.sql import SparkSession
from lakehouse_engine import HoodieTable
from lakehouse_engine.errors import UnsupportedSessionError
from lakehouse_engine.spark.frames.logged import merged_files

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
spark = builder.getOrCreate()
for most in (merged_files.MOST_AT_ONCE, merged_files.Weight(0, 0, 0, 0)):
    merged_files.MOST_AT_ONCE = most
    try:
        print(HoodieTable.open(sys.argv[1], spark=spark).dataframe().count())
    except UnsupportedSessionError as error:
        print("UTF-8" in str(error))
"""


@pytest.mark.parametrize(("locale", "said"), [("C", "True"), ("C.UTF-8", "6")])
def test_files_that_spark_cannot_find_are_told(tmp_path: Path, locale: str, said: str) -> None:
    table = Lakehouse(str(tmp_path)).create_table("s.t", schema=SCHEMA, record_key=["id"], partition_by=["day"], table_type="mor")
    table.bulk_insert(pa.table({"id": range(6), "day": ["a", "ä", "b"] * 2}, schema=SCHEMA))
    table.upsert(pa.table({"id": [0, 1], "day": ["a", "ä"]}, schema=SCHEMA))
    env = {**os.environ, "LC_ALL": locale, "PYTHONUTF8": "1"}
    run = subprocess.run([sys.executable, "-c", READ, table.path], env=env, capture_output=True, text=True, check=True, timeout=300)
    assert run.stdout.split() == [said] * 2
