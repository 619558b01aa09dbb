"""Each payload class: the same batches, written by Hudi to its table and by us to a copy of it, leave the same rows for either reader."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.table import HoodieTable
from tests.interop.client import HudiError, HudiJudge, Query, copy_table
from tests.support.payload_batches import SCENARIOS, Row, Scenario
from tests.support.readers import user_columns

CLASSES = "org.apache.hudi.common.model."
PAYLOAD = "hoodie.datasource.write.payload.class"
TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
OURS = {"hoodie.parquet.small.file.limit": "0", "hoodie.compact.inline": "false", "hoodie.clean.automatic": "false"}

HUDIS_OWN: dict[tuple[str, str, str], set[str]] = {
    ("0.15.0", "DefaultHoodieRecordPayload", "mor"): {"del_older"},
    ("0.15.0", "PartialUpdateAvroPayload", "mor"): {"older"},
    ("0.15.0", "OverwriteNonDefaultsWithLatestAvroPayload", "mor"): {"older", "twice"},
    ("0.15.0", "FirstValueAvroPayload", "mor"): {"del_equal", "del_older"},
    ("0.15.0", "MySqlDebeziumAvroPayload", "mor"): {"del_equal", "del_older", "twice"},
    ("0.15.0", "PostgresDebeziumAvroPayload", "mor"): {"del_older"},
    ("1.2.0", "PartialUpdateAvroPayload", "mor"): {"older"},
    ("1.2.0", "MySqlDebeziumAvroPayload", "mor"): {"del_older"},
    ("1.2.0", "PostgresDebeziumAvroPayload", "mor"): {"del_older", "toasted"},
}
"""By Hudi, payload and table type: keys that end otherwise when Hudi itself writes them (docs/interop.md)."""

READ_OTHERWISE: dict[tuple[str, str, str], set[str]] = {
    # Hudi 1.2 shows Debezium's mark for a value that is stored.
    ("1.2.0", "PostgresDebeziumAvroPayload", "mor"): {"toasted"},
}
"""Keys of Hudi's own table that we read otherwise than Hudi does (docs/interop.md)."""

MISSING = {("1.2.0", "FirstValueAvroPayload")}
"""Classes that a bundle does not have any more."""


def java_class(scenario: Scenario) -> str:
    return f"{CLASSES}{'debezium.' if 'Debezium' in scenario.payload else ''}{scenario.payload}"


def options(scenario: Scenario, kind: str) -> dict[str, str]:
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": TYPES[kind],
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": scenario.order,
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.metadata.enable": "false",
        "hoodie.index.type": "SIMPLE",
        PAYLOAD: java_class(scenario),
        **OURS,
    }


def by_key(rows: pa.Table) -> dict[Any, Row]:
    return {row["id"]: row for row in user_columns(rows).to_pylist()}


def differing(some: dict[Any, Row], others: dict[Any, Row]) -> set[str]:
    return {key for key in some.keys() | others.keys() if some.get(key) != others.get(key)}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.payload)
def test_hudi_and_we_merge_alike(hudi: HudiJudge, tmp_path: Path, scenario: Scenario, kind: str) -> None:
    theirs, asked = tmp_path / "theirs", options(scenario, kind)
    scenario = replace(scenario, by_1x=not hudi.version.startswith("0."))
    if (hudi.version, scenario.payload) in MISSING:
        with pytest.raises(HudiError, match="ClassNotFoundException"):
            hudi.write(theirs, scenario.table(scenario.batches()[0]), asked, mode="overwrite")
        return
    first, *later = scenario.batches()
    hudi.write(theirs, scenario.table(first), asked, mode="overwrite")
    copy = copy_table(theirs, tmp_path / "ours")
    ours = HoodieTable.open(str(copy))
    for batch in later:
        hudi.write(theirs, scenario.table(batch), asked)
        ours.upsert(scenario.table(batch), options={PAYLOAD: java_class(scenario), "hoodie.parquet.small.file.limit": "0"})
    expected = {row["id"]: row for row in scenario.expected(logs="updates" if kind == "mor" else "")}
    assert by_key(ours.to_arrow()) == expected
    own, read_by_hudi = hudi.read_many([(theirs, Query()), (copy, Query())])
    assert by_key(read_by_hudi) == expected
    case = (hudi.version, scenario.payload, kind)
    assert differing(by_key(HoodieTable.open(str(theirs)).to_arrow()), by_key(own)) == READ_OTHERWISE.get(case, set())
    assert differing(by_key(own), expected) == HUDIS_OWN.get(case, set())
