"""What TBLPROPERTIES of CREATE TABLE say of key, order, partitions and type."""

from __future__ import annotations

import pytest

from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.errors import OptionError, UnknownOptionError
from lakehouse_engine.options import TABLE_KEYS, check_known
from lakehouse_engine.sql.grammar.statements import CreateTable
from lakehouse_engine.sql.grammar.types import arrow_schema
from lakehouse_engine.sql.router import route
from lakehouse_engine.statements.definitions import table_spec
from lakehouse_engine.write.create import TableSpec


def spec(properties: str, clauses: str = "") -> TableSpec:
    made = route(f"create table s.t (id int, ts bigint, day string) {clauses} tblproperties ({properties})", lambda parts: False)
    assert isinstance(made, CreateTable)
    return table_spec(RelationName("s", "t"), made, arrow_schema(made.columns))


@pytest.mark.parametrize("key", ["primaryKey", "hoodie.datasource.write.recordkey.field", "hoodie.table.recordkey.fields"])
@pytest.mark.parametrize("order", ["preCombineField", "hoodie.datasource.write.precombine.field", "hoodie.table.precombine.field"])
def test_keys_of_hudi_mean_what_its_sql_names_do(key: str, order: str) -> None:
    made = spec(f"'{key}' = 'ID, day', '{order}' = 'ts', 'hoodie.table.type' = 'MERGE_ON_READ', 'hoodie.index.type' = 'SIMPLE'")
    assert (made.record_key, tuple(made.ordering_fields), made.table_type) == (("id", "day"), ("ts",), "mor")
    assert made.properties == {"hoodie.index.type": "SIMPLE"}


@pytest.mark.parametrize("key", ["hoodie.datasource.write.partitionpath.field", "hoodie.table.partition.fields"])
def test_partition_fields_may_stand_in_place_of_the_clause_and_beside_it(key: str) -> None:
    assert tuple(spec(f"'{key}' = 'day'").partition_by) == ("day",)
    assert tuple(spec(f"'{key}' = 'Day'", "partitioned by (day)").partition_by) == ("day",)
    with pytest.raises(OptionError, match="PARTITIONED BY names day, and the table properties name ts"):
        spec(f"'{key}' = 'ts'", "partitioned by (day)")


def test_how_a_key_generator_makes_paths_stays_an_option() -> None:
    made = spec("'hoodie.datasource.write.partitionpath.field' = 'day:simple'", "partitioned by (day)")
    assert made.properties == {"hoodie.datasource.write.partitionpath.field": "day:simple"}


def test_two_properties_may_say_the_same_and_nothing_else() -> None:
    same = spec("primaryKey = 'id', 'hoodie.table.recordkey.fields' = 'id', type 'cow', 'hoodie.table.type' 'COPY_ON_WRITE'")
    assert (same.record_key, same.table_type) == (("id",), "cow")
    with pytest.raises(OptionError, match=r"primaryKey = 'id' and hoodie\.table\.recordkey\.fields = 'day' differ"):
        spec("primaryKey = 'id', 'hoodie.table.recordkey.fields' = 'day'")
    made = CreateTable(("s", "t"), primary_key=("id",), properties=(("hoodie.table.recordkey.fields", "day"),))
    with pytest.raises(OptionError, match="PRIMARY KEY names id, and the table properties name day"):
        table_spec(RelationName("s", "t"), made, arrow_schema(()))


@pytest.mark.parametrize("key", TABLE_KEYS)
def test_elsewhere_they_are_refused_by_what_to_write(key: str) -> None:
    with pytest.raises(UnknownOptionError, match=f"give it as {TABLE_KEYS[key]}"):
        check_known({key: "id"})
