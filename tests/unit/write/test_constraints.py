"""NOT NULL and VARCHAR(n) hold for every write, whatever it is called with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.errors import ConstraintError, PropertiesError
from lakehouse_engine.format.avro.arrow_avro import table_avro_schema
from lakehouse_engine.model.constraints import DEFAULTS_KEY, MAX_LENGTH_KEY, Constraints
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.write.alter import set_constraints
from lakehouse_engine.write.create import TableSpec, create_table

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("code", pa.string()), ("_hoodie_is_deleted", pa.bool_())])
KEPT = Constraints(("name",), (("code", 3),))
EVOLVE = {"hoodie.datasource.write.reconcile.schema": True}

WRITES: dict[str, Callable[[HoodieTable, Any], Any]] = {
    "bulk_insert": lambda table, data: table.bulk_insert(data),
    "insert": lambda table, data: table.insert(data),
    "upsert": lambda table, data: table.upsert(data),
    "insert_overwrite": lambda table, data: table.insert_overwrite(data),
    "insert_overwrite_table": lambda table, data: table.insert_overwrite_table(data),
    "replace_rows": lambda table, data: table.replace_rows(data, replaced=table.to_arrow(meta_columns=True)),
}


def rows(*given: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, (*one, False)[:4], strict=True)) for one in given], schema=SCHEMA)


def make(folder: Path, kind: str = "cow") -> HoodieTable:
    spec = TableSpec(name="t", schema=SCHEMA, record_key=["id"], table_type=kind, constraints=KEPT)
    create_table(LocalStorage(str(folder / "t")), spec)
    return HoodieTable.open(str(folder / "t"))


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("write", WRITES)
def test_every_write_refuses_a_row_that_breaks_one_and_changes_nothing(write: str, kind: str, tmp_path: Path) -> None:
    table = make(tmp_path, kind)
    table.insert(rows((1, "a", "abc")))
    before = table.timeline.instants
    with pytest.raises(ConstraintError, match=r"'name' is null.* 1 row.*record key '7'"):
        WRITES[write](table, rows((6, "x", "abc"), (7, None, "abc")))
    with pytest.raises(ConstraintError, match=r"'code' has more characters than VARCHAR\(3\).*record key '8'"):
        WRITES[write](table, rows((8, "x", "ünïc"), (9, "x", None)).to_pandas())
    assert table.timeline.instants == before
    WRITES[write](table, rows((10, "x", "ünï   "), (11, "y", None)))
    stored = dict(zip(*(table.to_arrow(["id", "code"]).column(name).to_pylist() for name in ("id", "code")), strict=True))
    assert (stored[10], stored[11]) == ("ünï", None)


def test_a_batch_without_a_column_that_is_not_null_is_refused(tmp_path: Path) -> None:
    table = make(tmp_path)
    with pytest.raises(ConstraintError, match="'name' is NOT NULL and is not in the batch"):
        table.upsert(rows((1, "a", "abc")).drop_columns(["name"]), options=EVOLVE)


def test_rows_that_are_deletions_need_not_keep_them(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.insert(rows((1, "a", "abc")))
    table.upsert(rows((1, None, "too long", True)))
    table.delete(pa.table({"id": pa.array([1], pa.int64())}))
    assert table.to_arrow().num_rows == 0


def test_readers_of_the_schema_see_columns_that_may_be_null(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.insert(rows((1, "a", "abc")))
    assert all(field.nullable for field in table.schema)
    assert table.config.properties["hoodie.table.create.schema"] == table_avro_schema("t", SCHEMA, allow_timestamp_ntz=True)


def test_they_can_be_taken_away_and_a_text_that_does_not_parse_is_an_error(tmp_path: Path) -> None:
    table = make(tmp_path)
    set_constraints(table.storage, lambda old: old.without("NAME").with_length("code", 5), lock_timeout_ms=1000)
    table.insert(rows((1, None, "abcde")))
    assert table.config.constraints == Constraints((), (("code", 5),))
    with pytest.raises(PropertiesError, match="column:length"):
        Constraints.of({MAX_LENGTH_KEY: "code=5"})


def test_defaults_are_kept_as_any_text_and_follow_their_columns(tmp_path: Path) -> None:
    table = make(tmp_path)
    text = "concat('a=b, \"c\": \\\\', -- ü\n 'd')"
    set_constraints(table.storage, lambda old: old.with_default("code", text), lock_timeout_ms=1000)
    kept = HoodieTable.open(str(tmp_path / "t")).config.constraints
    assert (kept.default_of("CODE"), kept.default_of("name")) == (text, None)
    assert kept.with_default("CODE", "1").defaults == (("CODE", "1"),)
    assert kept.without("Code").properties()[DEFAULTS_KEY] is None
    assert not Constraints(defaults=(("code", "1"),)), "rows of every kind of write may be without it"
    for damaged in ("{", "[1]", '{"a": 1}'):
        with pytest.raises(PropertiesError, match=DEFAULTS_KEY):
            Constraints.of({DEFAULTS_KEY: damaged})
