"""This engine and Apache Hudi write one table at the same time: whatever was acknowledged to either is there, and both go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from tests.interop.beside import BESIDE, SHARED, Acknowledged, Hudi, begin, write_beside
from tests.interop.client import HudiJudge
from tests.support.readers import assert_same_rows, read_with_hudi_rs


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("overlapping", [False, True], ids=["disjoint", "overlapping"])
def test_nothing_that_was_acknowledged_is_lost_and_both_go_on(
    hudi: HudiJudge, tmp_path: Path, table_type: str, overlapping: bool
) -> None:
    table, acknowledged = begin(Lakehouse(str(tmp_path / "w")), table_type, BESIDE)
    write_beside(Hudi(hudi, table, acknowledged, overlapping))
    _check(table, hudi, acknowledged)
    # The table goes on without Hudi, and nothing of its refused writes shows.
    acknowledged.write(table, "ours", [*SHARED, "last"])
    _check(table, hudi, acknowledged)


def _check(table: HoodieTable, hudi: HudiJudge, acknowledged: Acknowledged) -> None:
    read = table.to_arrow(meta_columns=True)
    acknowledged.check(read)
    assert_same_rows(hudi.read(table.path, options={"hoodie.metadata.enable": "false"}), read)
    assert_same_rows(read_with_hudi_rs(Path(table.path)), read)
