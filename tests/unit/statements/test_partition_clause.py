"""Columns that PARTITION of a statement names, without Spark."""

from __future__ import annotations

import pytest

from lakehouse_engine.errors import SqlError
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.sql.grammar.statements import Insert
from lakehouse_engine.statements.rows.partition_clause import check_clause

NAMED = {"hoodie.table.name": "trips", "hoodie.table.type": "COPY_ON_WRITE", "hoodie.table.version": "6"}
CONFIG = TableConfig({**NAMED, "hoodie.table.partition.fields": "day,Hour"})


def insert(static: tuple[str, ...] = (), dynamic: tuple[str, ...] = ()) -> Insert:
    return Insert(("s", "trips"), "select 1", partition=tuple((name, 1) for name in static), dynamic=dynamic)


@pytest.mark.parametrize(("static", "dynamic"), [((), ()), (("DAY",), ("hour",)), (("hour", "day"), ()), ((), ("day", "hour"))])
def test_partition_columns_are_taken_in_any_case_and_order(static: tuple[str, ...], dynamic: tuple[str, ...]) -> None:
    check_clause(insert(static, dynamic), CONFIG)


@pytest.mark.parametrize(("static", "dynamic"), [(("id",), ()), ((), ("id",)), (("day",), ("hour", "id"))])
def test_another_column_is_refused_with_those_there_are(static: tuple[str, ...], dynamic: tuple[str, ...]) -> None:
    with pytest.raises(SqlError, match="'id', which is no partition column of trips: its partition columns are day, Hour"):
        check_clause(insert(static, dynamic), CONFIG)
    with pytest.raises(SqlError, match="it has no partitions"):
        check_clause(insert(static, dynamic), TableConfig(NAMED))


@pytest.mark.parametrize(("static", "dynamic"), [(("day", "DAY"), ()), (("day",), ("Day",)), ((), ("hour", "day", "hour"))])
def test_a_column_that_is_named_twice_is_refused(static: tuple[str, ...], dynamic: tuple[str, ...]) -> None:
    with pytest.raises(SqlError, match="twice"):
        check_clause(insert(static, dynamic), CONFIG)
