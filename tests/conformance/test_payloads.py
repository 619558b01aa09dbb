"""hudi-rs and tables of every payload class: it reads what we read, or refuses to merge logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.payload_batches import SCENARIOS, Scenario
from tests.support.readers import assert_same_rows, read_with_hudi_rs

MERGED = ("OverwriteWithLatestAvroPayload", "DefaultHoodieRecordPayload", "EventTimeAvroPayload")


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.payload)
def test_hudi_rs_reads_the_same_rows_or_none(tmp_path: Path, scenario: Scenario, table_type: str) -> None:
    properties = {"hoodie.datasource.write.payload.class": scenario.payload, "hoodie.parquet.small.file.limit": "0"}
    spec = TableSpec(
        "t", scenario.schema, record_key=["id"], ordering_fields=[scenario.order], table_type=table_type, properties=properties
    )
    create_table(LocalStorage(str(tmp_path / "t")), spec)
    table = HoodieTable.open(str(tmp_path / "t"))
    for batch in scenario.batches():
        table.upsert(scenario.table(batch))
    if table_type == "cow" or scenario.payload in MERGED:
        assert_same_rows(read_with_hudi_rs(table.path), table.to_arrow(meta_columns=True))
    else:
        with pytest.raises(Exception, match="merges with a merger of its own"):
            read_with_hudi_rs(table.path)
