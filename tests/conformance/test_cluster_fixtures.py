"""Tables of Hudi, each clustered by this engine: rows, their meta columns and what is left to write on stay as they are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.errors import LakehouseError, UnsupportedTableError
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.verify import verify
from tests.support.fixtures import EVERY_VERSION, fixtures_root, spark_fixtures, unpack_spark_fixture
from tests.support.readers import assert_same_rows

pytestmark = pytest.mark.skipif(fixtures_root() is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")

REFUSED: dict[str, tuple[type[LakehouseError], str]] = {
    "bootstrap_metadata_only": (UnsupportedTableError, "METADATA_ONLY"),
    "bucket_consistent": (UnsupportedTableError, "consistent hashing buckets"),
    "schema_on_read": (UnsupportedTableError, "schema-on-read"),
}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 4}
TABLES = [name for kind in ("cow", "mor") for name in spark_fixtures(EVERY_VERSION, kind)]


def kind_of(name: str) -> str:
    return name.rpartition("/")[2].partition("_")[2]


def opened(name: str, folder: Path) -> HoodieTable:
    options = {**(BUCKETS if kind_of(name) == "bucket" else {}), "hoodie.clean.automatic": False, "hoodie.archive.automatic": False}
    return HoodieTable.open(str(unpack_spark_fixture(name, folder)), options=options)


@pytest.mark.parametrize("name", [name for name in TABLES if kind_of(name) not in REFUSED and kind_of(name) != "bucket_two_keys"])
def test_a_table_of_hudi_is_clustered(name: str, tmp_path: Path) -> None:
    table = opened(name, tmp_path)
    before = table.to_arrow(meta_columns=True)
    columns = [field.name for field in table.schema if not pa.types.is_nested(field.type)][:2]
    while table.cluster("run").instant is not None:
        pass
    result = table.cluster(order_by=columns, layout="hilbert" if len(columns) > 1 else "linear")
    assert result.state == "completed"
    file_name = ["_hoodie_file_name"]
    assert_same_rows(table.to_arrow(meta_columns=True).drop_columns(file_name), before.drop_columns(file_name))
    assert verify(table.state).ok
    assert table.cluster(order_by=columns, layout="hilbert" if len(columns) > 1 else "linear").state == "none"


@pytest.mark.parametrize("name", [name for name in TABLES if kind_of(name) in REFUSED])
def test_others_are_refused_and_stay_as_they_are(name: str, tmp_path: Path) -> None:
    table = opened(name, tmp_path)
    before = list(table.timeline)
    kind, says = REFUSED[kind_of(name)]
    with pytest.raises(kind, match=says):
        table.cluster()
    assert list(table.timeline) == before
