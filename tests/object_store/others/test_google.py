"""What Google alone has: keys of accounts in files."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import Lakehouse
from tests.object_store.dbt_store import Store


@pytest.mark.parametrize("how", ["service_account", "service_account_key", "GOOGLE_SERVICE_ACCOUNT"])
def test_the_key_of_an_account_is_enough(google_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    file = tmp_path / "key.json"
    file.write_text(google_store.account_key)
    options = {"service_account": {"service_account": str(file)}, "service_account_key": {"service_account_key": google_store.account_key}}
    if how.isupper():
        monkeypatch.setenv(how, str(file))
    lake = Lakehouse(google_store.place(uuid.uuid4().hex), storage_options={"allow_http": "true", **options.get(how, {})})
    table = lake.create_table("s.t", schema=pa.schema([("id", pa.int64())]), record_key=["id"])
    table.upsert(pa.table({"id": [1, 2]}))
    assert sorted(table.to_arrow(["id"])["id"].to_pylist()) == [1, 2]
    assert lake.drop_table("s.t")
