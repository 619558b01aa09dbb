"""UPDATE and MERGE that change a partition column: a row has one place, whatever the index is."""

from __future__ import annotations

import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import DuplicateKeyError, OptionError

Rows = list[tuple[object, ...]]


@pytest.fixture(params=["cow", "mor"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["SIMPLE", "BLOOM", "BUCKET", "GLOBAL_SIMPLE"])
def shop(request: pytest.FixtureRequest, kind: str, lakehouse: Lakehouse) -> Lakehouse:
    properties = f"primaryKey = 'id', type = '{kind}', hoodie.index.type = '{request.param}', hoodie.bucket.index.num.buckets = '2'"
    lakehouse.sql(f"create table shop.t (id int, v string, p string, q int) partitioned by (p, q) tblproperties ({properties})")
    lakehouse.sql("insert into shop.t values (1, 'a', 'x', 1), (2, 'b', 'x', 1), (3, 'c', 'y', 1), (4, 'd', null, 1)")
    return lakehouse


def rows(lakehouse: Lakehouse) -> Rows:
    found = sorted(tuple(row) for row in lakehouse.sql("select id, v, p, q from shop.t").collect())
    table = HoodieTable.open(lakehouse.table("shop.t").path)
    assert sorted(tuple(row.values()) for row in table.to_arrow().to_pylist()) == found
    return found


def test_an_updated_row_moves_in_one_commit(shop: Lakehouse) -> None:
    before = len(shop.table("shop.t").timeline.completed().writes())
    shop.sql("update shop.t set p = 'z', v = concat(v, '!') where id in (1, 4)")
    assert rows(shop) == [(1, "a!", "z", 1), (2, "b", "x", 1), (3, "c", "y", 1), (4, "d!", "z", 1)]
    assert len(shop.table("shop.t").timeline.completed().writes()) == before + 1
    shop.sql("update shop.t set q = q + id, p = case when id = 1 then null else p end")
    assert rows(shop) == [(1, "a!", None, 2), (2, "b", "x", 3), (3, "c", "y", 4), (4, "d!", "z", 5)]
    shop.sql("update shop.t set p = 'x' where id = 2")  # where it is already
    assert rows(shop)[1] == (2, "b", "x", 3)


def test_a_merged_row_moves_beside_deleted_and_new_ones(shop: Lakehouse) -> None:
    shop.sql(
        "merge into shop.t as t using (select * from values (1, 'A', 'new', 1), (2, 'D', 'x', 1), (9, 'I', 'y', 1) as s(id, v, p, q)) as s"
        " on t.id = s.id when matched and s.v = 'D' then delete when matched then update set * when not matched then insert *"
        " when not matched by source and t.id = 4 then update set p = 'old'"
    )
    assert rows(shop) == [(1, "A", "new", 1), (3, "c", "y", 1), (4, "d", "old", 1), (9, "I", "y", 1)]


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "BUCKET"])
def test_rows_of_one_key_in_two_partitions_stay_two(lakehouse: Lakehouse, kind: str, index: str) -> None:
    properties = f"primaryKey = 'id', type = '{kind}', hoodie.index.type = '{index}', hoodie.bucket.index.num.buckets = '2'"
    lakehouse.sql(f"create table shop.t (id int, v string, p string, q int) partitioned by (p, q) tblproperties ({properties})")
    lakehouse.sql("insert into shop.t values (1, 'a', 'x', 1), (1, 'b', 'y', 1)")
    lakehouse.sql("update shop.t set p = case p when 'x' then 'y' else 'x' end")
    assert rows(lakehouse) == [(1, "a", "y", 1), (1, "b", "x", 1)]
    with pytest.raises(DuplicateKeyError):
        lakehouse.sql("update shop.t set p = 'z'")
    assert rows(lakehouse) == [(1, "a", "y", 1), (1, "b", "x", 1)]


@pytest.mark.parametrize("column", ["p string", "s string, p string generated always as (concat('of ', s))"])
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "BUCKET"])
def test_a_row_does_not_move_onto_another_one_of_its_key(lakehouse: Lakehouse, kind: str, index: str, column: str) -> None:
    name = column.split()[0]
    properties = f"primaryKey = 'id', preCombineField = 'v', type = '{kind}', hoodie.index.type = '{index}'"
    lakehouse.sql(f"create table shop.t (id int, v int, q int, {column}) partitioned by (p) tblproperties ({properties})")
    lakehouse.sql(f"insert into shop.t (id, v, q, {name}) values (1, 1, 0, 'a'), (1, 2, 0, 'b'), (2, 5, 0, 'a')")
    before = sorted(map(tuple, lakehouse.sql(f"select id, v, {name} from shop.t").collect()))
    for text in (
        f"update shop.t set {name} = 'b' where id = 1 and {name} = 'a'",
        f"update shop.t set {name} = 'b', v = 9 where {name} = 'a'",
        f"merge into shop.t as t using (select 1 as id) as s on t.id = s.id and t.{name} = 'a' when matched then update set {name} = 'b'",
    ):
        with pytest.raises(DuplicateKeyError, match=r"the key '1' would be moved to the partition 'p=(of )?b', which holds another"):
            lakehouse.sql(text)
        assert sorted(map(tuple, lakehouse.sql(f"select id, v, {name} from shop.t").collect())) == before
    # One that makes room in the same statement is no obstacle, unless it is newer.
    text = (
        "merge into shop.t as t using (select 1 as id) as s on t.id = s.id when matched and t.{name} = 'b' then delete"
        " when matched then update set {name} = 'b', v = {v}"
    )
    swap = f"update shop.t set {name} = case {name} when 'a' then 'b' else 'a' end where id = 1"
    for refused in (text.format(name=name, v=1), swap):
        with pytest.raises(DuplicateKeyError, match="a newer row of that key by the ordering fields"):
            lakehouse.sql(refused)
        assert sorted(map(tuple, lakehouse.sql(f"select id, v, {name} from shop.t").collect())) == before
    lakehouse.sql(text.format(name=name, v=2))
    lakehouse.sql(f"update shop.t set {name} = 'b' where id = 2")
    assert sorted(map(tuple, lakehouse.sql(f"select id, v, {name} from shop.t").collect())) == [(1, 2, "b"), (2, 5, "b")]


def test_a_row_does_not_move_onto_another_one_in_a_partition_of_many_values(lakehouse: Lakehouse, kind: str) -> None:
    generator = "hoodie.table.keygenerator.class = 'org.apache.hudi.keygen.TimestampBasedKeyGenerator', "
    generator += "hoodie.keygen.timebased.timestamp.type = 'EPOCHMILLISECONDS', hoodie.keygen.timebased.output.dateformat = 'yyyy-MM-dd'"
    properties = f"primaryKey = 'id', type = '{kind}', hoodie.index.type = 'SIMPLE', {generator}"
    lakehouse.sql(f"create table shop.t (id int, at bigint) partitioned by (at) tblproperties ({properties})")
    first, second = 1704067200000, 1704153600000
    lakehouse.sql(f"insert into shop.t values (1, {first}), (1, {second + 5}), (2, {second + 7})")
    with pytest.raises(DuplicateKeyError, match="the key '1' would be moved to the partition 'at=2024-01-02', which holds another"):
        lakehouse.sql(f"update shop.t set at = {second + 1} where id = 1 and at = {first}")
    lakehouse.sql(f"update shop.t set at = {first + 1} where id = 2")
    assert sorted(map(tuple, lakehouse.sql("select * from shop.t").collect())) == [(1, first), (1, second + 5), (2, first + 1)]


def test_a_row_that_is_updated_and_deleted_at_once_is_refused(shop: Lakehouse) -> None:
    before = rows(shop)
    with pytest.raises(DuplicateKeyError, match="match the row of the key '1': one updates it, and one deletes it"):
        shop.sql(
            "merge into shop.t as t using (select * from values (1, 'U'), (1, 'D'), (2, 'D') as s(id, v)) as s on t.id = s.id"
            " when matched and s.v = 'D' then delete when matched then update set v = s.v"
        )
    assert rows(shop) == before


def test_the_index_of_buckets_is_not_set_or_taken_away(shop: Lakehouse) -> None:
    kept = shop.table("shop.t").config.prefixed("lakehouse.default.")["hoodie.index.type"]
    other = "GLOBAL_SIMPLE" if kept == "BUCKET" else "BUCKET"
    refused = [f"set tblproperties (hoodie.index.type = '{other}')", "unset tblproperties (hoodie.index.type)"]
    refused += ["set tblproperties (hoodie.bucket.index.num.buckets = '3')"] if kept == "BUCKET" else []
    for clause in refused:
        with pytest.raises(OptionError, match="for the life of the table"):
            shop.sql(f"alter table shop.t {clause}")
    assert shop.table("shop.t").config.prefixed("lakehouse.default.")["hoodie.index.type"] == kept
