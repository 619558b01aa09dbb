"""Every row of Hudi's bucket-indexed tables is in the bucket that we compute for its key; keys hash as Hudi's classes say."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.errors import OptionError
from lakehouse_engine.format.file_names import bucket_of
from lakehouse_engine.index.bucket import BucketIndex
from lakehouse_engine.index.registry import load_index
from lakehouse_engine.model.keys import FILE_NAME, RECORD_KEY
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.view.table_state import TableState
from tests.support.fixtures import fixtures_root, spark_fixtures, unpack_spark_fixture

pytestmark = pytest.mark.skipif(fixtures_root() is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")

BUCKETED = [name for name in spark_fixtures() if "_bucket" in name and "consistent" not in name]


def options_of(name: str, **more: str) -> dict[str, str]:
    """What the fixture's writer was told (`make_fixtures.py`); Hudi stores none of it."""
    if name.endswith("two_keys"):
        return {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "8", "hoodie.bucket.index.hash.field": "b", **more}
    return {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4", **more}


@pytest.mark.parametrize("name", BUCKETED)
def test_every_row_is_in_its_bucket(name: str, tmp_path: Path) -> None:
    state = TableState.load(LocalStorage(str(unpack_spark_fixture(name, tmp_path))))
    index = load_index(state, WriteOptions.read(options_of(name)))
    assert isinstance(index, BucketIndex)
    rows = read_arrow(plan_query(state, Query()), meta_columns=True)
    keys = pa.concat_arrays(rows.column(RECORD_KEY).cast(pa.string()).chunks)
    stored = [bucket_of(text.split("_")[0]) for text in rows.column(FILE_NAME).to_pylist()]
    assert len(set(stored)) > 1
    assert index.layout.buckets(keys).tolist() == stored


@pytest.mark.parametrize("name", BUCKETED)
def test_a_write_with_other_buckets_is_refused(name: str, tmp_path: Path) -> None:
    state = TableState.load(LocalStorage(str(unpack_spark_fixture(name, tmp_path))))
    with pytest.raises(OptionError, match="is stored in the file group"):
        load_index(state, WriteOptions.read(options_of(name, **{"hoodie.bucket.index.num.buckets": "256"})))
    with pytest.raises(OptionError, match="look like those of Hudi's bucket index"):
        load_index(state, WriteOptions())
