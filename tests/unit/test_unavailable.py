"""What Hudi has and this version has not is refused by its name, on every surface, and nothing is changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import OptionError, UnavailableError, UnknownOptionError
from lakehouse_engine.options import check_known

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
ROWS = pa.table({"id": [1, 2], "v": ["a", "b"]}, schema=SCHEMA)


def made(tmp_path: Path, **properties: Any) -> HoodieTable:
    table = Lakehouse(str(tmp_path)).create_table("s.t", schema=SCHEMA, record_key=["id"], properties=properties)
    table.upsert(ROWS)
    return table


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("hoodie.metadata.record.level.index.enable", "true", "a record index for each partition"),
        ("hoodie.metadata.record.index.min.filegroup.count", "4", "this option of the metadata table is"),
        ("hoodie.metadata.index.secondary.enable", True, "this option of the metadata table is"),
        ("hoodie.table.cdc.enabled", "true", "change data capture"),
    ],
)
def test_the_keys_that_ask_for_it_are_refused_with_the_reason(tmp_path: Path, key: str, value: Any, says: str) -> None:
    with pytest.raises(UnavailableError, match=f"{key}=.*{says}.* in this version"):
        made(tmp_path / "new", **{key: value})
    assert not (tmp_path / "new" / "s" / "t").exists()
    table = made(tmp_path)
    before = len(table.timeline)
    with pytest.raises(UnavailableError, match=f"{key}=.*{says}"):
        table.upsert(ROWS, options={key: value})
    assert len(HoodieTable.open(table.path).timeline) == before


def test_clustering_in_the_background_is_refused_with_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"hoodie\.clustering\.async\.enabled='true': .*hoodie\.clustering\.schedule\.inline plans"):
        made(tmp_path, **{"hoodie.clustering.async.enabled": "true"})


def test_keys_that_turn_it_off_are_no_reason_to_refuse_and_are_not_stored(tmp_path: Path) -> None:
    off = {
        "hoodie.metadata.record.level.index.enable": "false",
        "hoodie.clustering.async.enabled": False,
        "hoodie.table.cdc.enabled": "false",
    }
    table = made(tmp_path, **off)
    table.upsert(ROWS, options=off)
    stored = table.config.properties
    assert (stored["hoodie.table.version"], stored["hoodie.table.cdc.enabled"]) == ("6", "false")
    assert [key for key in stored if "metadata" in key or "clustering" in key] == []
    assert check_known(off) == []


def test_a_key_that_is_like_one_of_them_and_none_is_unknown() -> None:
    with pytest.raises(UnknownOptionError):
        check_known({"hoodie.metadataa.record.level.index.enable": "false"})


def test_queries_of_change_data_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="query='cdc': change data capture is not available in this version"):
        made(tmp_path).to_arrow(query="cdc")
