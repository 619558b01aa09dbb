"""The BUCKET index: which bucket a key is in, and which tables and writes it can be used for."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

from lakehouse_engine.errors import OptionError, RecordKeyError
from lakehouse_engine.format.file_names import bucket_file_id, bucket_of
from lakehouse_engine.index.bucket import BucketLayout
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.options import WriteOptions

# What `BucketIdentifier.getBucketId(key, fields, 1000003)` of Hudi 0.15.0 and of 1.2.0 returns (jshell).
HUDI = [
    (("id",), ("id",), "abc", 96385),
    (("id",), ("id",), "a,b", 94710),
    (("id",), ("id",), "ключ\U0001f600", 792619),
    (("a", "b"), ("a", "b"), "a:1,b:2", 2530),
    (("a", "b"), ("b",), "a:1,b:2", 81),
    (("a", "b"), ("a",), "a:1:2,b:3", 48968),
    (("a", "b"), ("b",), "a:1:2,b:3", 82),
    (("a", "b"), ("a",), "a:__null__,b:2", 31),
    (("a", "b"), ("a",), "a:__empty__,b:2", 31),
]


def layout(keys: tuple[str, ...] = ("id",), buckets: int = 8, hashed: str = "") -> BucketLayout:
    fixed = {"hoodie.table.name": "t", "hoodie.table.type": "COPY_ON_WRITE", "hoodie.table.version": "6"}
    fields = {"hoodie.table.recordkey.fields": ",".join(keys)} if keys else {}
    return BucketLayout.of(TableConfig({**fixed, **fields}), WriteOptions(num_buckets=buckets, bucket_hash_field=hashed))


@pytest.mark.parametrize(("fields", "hashed", "key", "bucket"), HUDI)
def test_keys_are_in_hudis_buckets(fields: tuple[str, ...], hashed: tuple[str, ...], key: str, bucket: int) -> None:
    found = layout(fields, 1_000_003, ",".join(hashed)).buckets(pa.array([key, key]))
    assert found.tolist() == [bucket, bucket]


def test_hash_fields_are_taken_in_the_order_of_the_key() -> None:
    keys = pa.array(["a:1,b:2"])
    assert layout(("a", "b"), 1_000_003, "b,a").buckets(keys).tolist() == [2530]


@pytest.mark.parametrize(("fields", "key"), [(("id",), "12:30"), (("id",), "id:1"), (("a", "b"), "a:x,y,b:2"), (("a", "b"), "a:1,b:x,y")])
def test_keys_that_hudis_versions_hash_differently_are_refused(fields: tuple[str, ...], key: str) -> None:
    with pytest.raises(RecordKeyError, match=re.escape(repr(key))):
        layout(fields).buckets(pa.array(["a:1,b:2" if len(fields) > 1 else "k", key]))


def test_rows_by_bucket_covers_every_row_once_in_order() -> None:
    keys = pa.array([f"k{number}" for number in range(500)])
    chosen = np.arange(0, 500, 3)
    groups = layout(buckets=7).rows_by_bucket(keys, chosen)
    assert sorted(np.concatenate(list(groups.values())).tolist()) == chosen.tolist()
    buckets = layout(buckets=7).buckets(keys)
    for bucket, rows in groups.items():
        assert (buckets[rows] == bucket).all()
        assert (np.diff(rows) > 0).all()
    assert layout().rows_by_bucket(pa.array([], pa.string())) == {}


def test_file_ids_name_their_bucket() -> None:
    assert re.fullmatch(r"00000042-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}-0", bucket_file_id(42, "20260101000000000", "p"))
    assert bucket_of(bucket_file_id(42, "20260101000000000", "p")) == 42
    assert bucket_of("7ec5f3a1-40bc-b17d-c9e01825d68b-0") is None


def test_unusable_settings_are_refused() -> None:
    with pytest.raises(OptionError, match="record key fields"):
        layout(())
    with pytest.raises(OptionError, match="' b' is not one of"):
        layout(("a", "b"), hashed="a, b")


