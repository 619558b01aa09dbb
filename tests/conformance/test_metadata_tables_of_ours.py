"""hudi-rs reads files by a metadata table whose HFiles this engine wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_engine.metadata_table import table
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.verify.metadata_table import check_metadata_table
from lakehouse_engine.view.table_state import TableState
from tests.support.fixtures import fixtures_root, unpack_spark_fixture
from tests.support.metadata_tables import write_again
from tests.support.readers import assert_same_rows, read_with_hudi_rs

pytestmark = pytest.mark.skipif(fixtures_root() is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")


@pytest.mark.parametrize("name", ["v9-1.2.0/cow_metadata", "v9-1.2.0/mor_defaults", "v8-1.2.0/mor_metadata"])
def test_hudi_rs_finds_the_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = unpack_spark_fixture(name, tmp_path)
    before = read_with_hudi_rs(folder)
    assert write_again(folder) > 5
    assert_same_rows(read_with_hudi_rs(folder), before)
    # Files written again are shorter than their commits say, for which we refuse them; here their records count.
    monkeypatch.setattr(table, "check_whole", lambda metadata, partition, pending: None)
    lost = {finding.kind for finding in check_metadata_table(TableState.load(LocalStorage(str(folder)))).findings}
    assert lost <= {"key_not_indexed"}


def test_hudi_rs_goes_by_the_metadata_table(tmp_path: Path) -> None:
    folder = unpack_spark_fixture("v9-1.2.0/cow_metadata", tmp_path)
    for path in (folder / ".hoodie" / "metadata" / "files").iterdir():
        path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(Exception, match="HFile"):
        read_with_hudi_rs(folder)
