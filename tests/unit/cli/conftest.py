"""A warehouse with one small table, and the command line over it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.cli.main import cli

SCHEMA = pa.schema(
    [
        ("order_id", pa.int64()),
        ("status", pa.string()),
        ("amount", pa.decimal128(10, 2)),
        ("changed_on", pa.timestamp("us", tz="UTC")),
        ("tags", pa.list_(pa.string())),
        ("day", pa.string()),
    ]
)


def orders(numbers: range, status: str) -> pa.Table:
    return pa.table(
        {
            "order_id": list(numbers),
            "status": [status] * len(numbers),
            "amount": [Decimal("9.90")] * len(numbers),
            "changed_on": [1_767_225_600_000_000] * len(numbers),
            "tags": [["a", None]] * len(numbers),
            "day": [f"2026-01-0{number % 2 + 1}" for number in numbers],
        },
        schema=SCHEMA,
    )


@dataclass(frozen=True)
class Warehouse:
    root: Path
    table: HoodieTable
    first: str
    second: str

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(cli, ["--warehouse", str(self.root), *arguments])

    def json(self, *arguments: str) -> Any:
        result = self.run(*arguments, "--json")
        assert result.exit_code == 0, result.stderr
        assert result.stderr == ""
        return json.loads(result.stdout)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    lakehouse = Lakehouse(str(tmp_path / "lake"))
    table = lakehouse.create_table(
        "analytics.orders", schema=SCHEMA, record_key=["order_id"], ordering_fields=["changed_on"], partition_by=["day"]
    )
    first = table.upsert(orders(range(30), "new"))
    second = table.upsert(orders(range(3), "paid"))
    lakehouse.create_view("analytics.open_orders", "select * from analytics.orders where status = 'new'")
    assert first.instant is not None
    assert second.instant is not None
    return Warehouse(tmp_path / "lake", table, first.instant, second.instant)
