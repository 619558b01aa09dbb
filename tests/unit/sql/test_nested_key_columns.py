"""The column that holds a nested record key is a key column to SQL: neither updated nor renamed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.sql.grammar.statements import Merge, MergeClause, RenameColumn, Update
from lakehouse_engine.statements.columns import rename_column
from lakehouse_engine.statements.context import Execution, Target
from lakehouse_engine.statements.rows.changes import update
from lakehouse_engine.statements.rows.merge import merge
from lakehouse_engine.table import HoodieTable
from tests.support.untouched import make_table

FIELDS = "hoodie.table.recordkey.fields"
CHANGE = (("who", "named_struct('id', 'x')"),)


class OneTable:
    """A session that knows one table and runs no query."""

    def __init__(self, table: HoodieTable) -> None:
        self._table = table

    def table(self, parts: Any) -> HoodieTable:
        return self._table

    def changed(self, parts: Any) -> Target:
        return Target(self._table, self._table.state)


@pytest.fixture
def run(tmp_path: Path) -> Execution:
    schema = pa.schema([("who", pa.struct([("id", pa.string())])), ("v", pa.int64())])
    make_table(tmp_path / "t", schema, key=("v",))
    file = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    kept = [line for line in file.read_text().splitlines() if not line.startswith(("#", FIELDS))]
    file.write_text("".join(f"{line}\n" for line in [*kept, f"{FIELDS}=who.id"]))
    return cast(Execution, OneTable(HoodieTable.open(str(tmp_path / "t"))))


def test_an_update_cannot_assign_it(run: Execution) -> None:
    with pytest.raises(UnsupportedSqlError, match="cannot change the key column 'who'"):
        update(run, Update(("t",), CHANGE))


def test_a_merge_cannot_assign_it(run: Execution) -> None:
    with pytest.raises(UnsupportedSqlError, match="cannot change the key column 'who'"):
        merge(run, Merge(("t",), "s", "t.who.id = s.id", (MergeClause("matched", "update", None, CHANGE),)))


def test_it_keeps_its_name(run: Execution) -> None:
    with pytest.raises(UnsupportedSqlError, match="keeps its name"):
        rename_column(run, RenameColumn(("t",), "who", "whom"))
