"""The command line over a warehouse in an object store, with the environment's credentials."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pyarrow as pa

from lakehouse_engine import Lakehouse
from tests.object_store.dbt_store import Store


def test_tables_are_shown_served_and_taken_back(s3_store: Store, tmp_path: Path) -> None:
    place = s3_store.place(uuid.uuid4().hex)
    lake = Lakehouse(place, storage_options=s3_store.options)
    table = lake.create_table("s.t", schema=pa.schema([("id", pa.int64()), ("n", pa.int64())]), record_key=["id"], table_type="mor")
    table.upsert(pa.table({"id": [1, 2], "n": [10, 20]}))

    def said(*arguments: str) -> str:
        command = [sys.executable, "-m", "lakehouse_engine.cli.main", "--warehouse", place, *arguments]
        done = subprocess.run(
            command, env={**os.environ, **s3_store.environment}, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert not [secret for secret in s3_store.secrets if secret.decode() in done.stdout + done.stderr]
        return done.stdout

    assert "s.t" in said("tables")
    said("savepoint", "create", "s.t")
    table.upsert(pa.table({"id": [2], "n": [21]}))
    said("compact", "s.t", "--option", "hoodie.compact.inline.max.delta.commits=1")
    rows = said("read", "s.t", "--columns", "id,n", "--format", "csv").split()
    assert sorted(rows[1:]) == ["1,10", "2,21"]
    said("verify", "s.t")
    last = lake.table("s.t").timeline.completed().last()
    assert last is not None
    assert last.action.value == "commit"
    said("restore", "s.t", "--savepoint", "latest", "--yes")
    assert said("read", "s.t", "--columns", "id,n", "--format", "csv").split()[1:] == ["1,10", "2,20"]
