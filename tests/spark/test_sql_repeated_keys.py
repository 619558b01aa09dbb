"""UPDATE, DELETE and MERGE on tables that hold a key more than once change the rows that they mean, and MERGE on tables without a key."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import DuplicateKeyError
from lakehouse_engine.table import HoodieTable
from tests.support.readers import assert_same_rows, read_with_hudi_rs

KINDS = ("cow SIMPLE", "mor GLOBAL_SIMPLE", "mor BUCKET")
FIRST = [(1, "a", 1, "x"), (1, "b", 2, "x"), (1, "c", 3, "x"), (2, "d", 4, "x"), (3, "e", 5, "y")]
"""`id`, the key; `v`; `n`; `p`, the partition."""


def rows(lakehouse: Lakehouse) -> list[tuple[object, ...]]:
    """Those of the table, as hudi-rs sees them, too."""
    found = sorted(tuple(row) for row in lakehouse.sql("select id, v, n, p from shop.t").collect())
    table = HoodieTable.open(lakehouse.table("shop.t").path)
    assert_same_rows(read_with_hudi_rs(Path(table.path)), table.to_arrow(meta_columns=True))
    return found


def keys(lakehouse: Lakehouse) -> dict[str, str]:
    """The record key of each value."""
    stored = lakehouse.table("shop.t").to_arrow(meta_columns=True)
    return dict(zip(stored["v"].to_pylist(), stored["_hoodie_record_key"].to_pylist(), strict=True))


def changed(*changes: tuple[tuple[object, ...], tuple[object, ...] | None]) -> list[tuple[object, ...]]:
    """`FIRST` with rows in the place of others; None: they go."""
    new = dict(changes)
    return sorted(row for old in FIRST if (row := new.get(old, old)) is not None)


@pytest.fixture(params=KINDS)
def lake(request: pytest.FixtureRequest, lakehouse: Lakehouse) -> Lakehouse:
    kind, index = request.param.split()
    lakehouse.sql(
        "create table shop.t (id int, v string, n int, p string) using hudi partitioned by (p) tblproperties (primaryKey = 'id',"
        f" type = '{kind}', 'hoodie.index.type' = '{index}', 'hoodie.bucket.index.num.buckets' = '1')"
    )
    lakehouse.sql(f"insert overwrite shop.t values {', '.join(map(str, FIRST))}")
    return lakehouse


def test_a_statement_changes_the_rows_that_meet_its_condition(lake: Lakehouse) -> None:
    lake.sql("update shop.t set n = n + 100 where v in ('b', 'd')")
    assert rows(lake) == changed((FIRST[1], (1, "b", 102, "x")), (FIRST[3], (2, "d", 104, "x")))
    lake.sql("delete from shop.t where v = 'b'")
    assert rows(lake) == changed((FIRST[1], None), (FIRST[3], (2, "d", 104, "x")))
    lake.sql("update shop.t set p = 'z', v = 'moved' where v = 'c'")
    assert rows(lake) == changed((FIRST[1], None), (FIRST[2], (1, "moved", 3, "z")), (FIRST[3], (2, "d", 104, "x")))
    result = lake.sql("update shop.t set n = 0 where id = 2")
    assert (result.updates, result.inserts, result.deletes) == (1, 0, 0)
    lake.sql("delete from shop.t where id in (1, 3)")
    assert rows(lake) == [(2, "d", 0, "x")]


def test_merge_changes_the_rows_that_it_matches(lake: Lakehouse) -> None:
    lake.sql(
        "merge into shop.t t using (select * from values (1, 'b', 'go'), (1, 'c', 'up'), (3, 'e', 'up'), (4, 'new', 'up')"
        " as (id, v, what)) s on t.id = s.id and t.v = s.v when matched and s.what = 'go' then delete when matched then update"
        " set t.n = 100 when not matched then insert (id, v, n, p) values (s.id, s.v, 9, 'y')"
    )
    merged = changed((FIRST[1], None), (FIRST[2], (1, "c", 100, "x")), (FIRST[4], (3, "e", 100, "y")))
    assert rows(lake) == [*merged, (4, "new", 9, "y")]
    lake.sql("merge into shop.t t using (select 1 as id) s on t.id = s.id when matched then update set t.n = t.n + 1, t.p = 'w'")
    moved = [(1, "a", 2, "w"), (1, "c", 101, "w")]
    assert rows(lake) == sorted([*moved, (2, "d", 4, "x"), (3, "e", 100, "y"), (4, "new", 9, "y")])


def test_merge_refuses_what_cannot_be_told_apart_and_changes_nothing(lake: Lakehouse) -> None:
    before = lake.table("shop.t").timeline
    source = "merge into shop.t t using (select * from values (1, 'b', 1), {} as (id, v, n)) s on t.id = s.id and t.v = s.v "
    update, insert = "when matched then update set t.n = s.n ", "when not matched then insert (id, v, n, p) values (s.id, s.v, s.n, 'x')"
    for more, clauses, said in (
        ("(1, 'b', 2)", update, "have a key that another row has|several rows of the source match the row of the key '1'"),
        ("(2, 'other', 2)", update + insert, "inserts a row of the key id=2.*which is stored"),
        ("(7, 'q', 2), (7, 'r', 2)", update + insert, "have a key that another row has|two rows that MERGE inserts have one key"),
    ):
        with pytest.raises(DuplicateKeyError, match=said):
            lake.sql(source.format(more) + clauses)
    assert lake.table("shop.t").timeline == before
    assert rows(lake) == FIRST


@pytest.mark.parametrize(
    "how", ["tblproperties (type = 'cow')", "partitioned by (p) tblproperties (type = 'mor', 'hoodie.index.type' = 'SIMPLE')"]
)
def test_merge_into_a_table_without_a_key_changes_single_rows(lakehouse: Lakehouse, how: str) -> None:
    lakehouse.sql(f"create table shop.t (id int, v string, n int, p string) using hudi {how}")
    lakehouse.sql(f"insert into shop.t values {', '.join(map(str, FIRST))}")
    before = keys(lakehouse)
    result = lakehouse.sql(
        "merge into shop.t t using (select * from values (1, 'b', 'go'), (1, 'c', 'up'), (1, 'x', 'up'), (1, 'x', 'up'), (2, 'd', 'move')"
        " as (id, v, what)) s on t.id = s.id and t.v = s.v when matched and s.what = 'go' then delete"
        " when matched and s.what = 'move' then update set t.p = 'q' when matched then"
        " update set t.n = 100 when not matched then insert (id, v, n, p) values (s.id, s.v, 9, 'y')"
    )
    assert result.inserts >= 2
    merged = changed((FIRST[1], None), (FIRST[2], (1, "c", 100, "x")), (FIRST[3], (2, "d", 4, "q")))
    assert rows(lakehouse) == sorted([*merged, (1, "x", 9, "y"), (1, "x", 9, "y")])
    stored = lakehouse.table("shop.t").to_arrow(meta_columns=True)
    made = keys(lakehouse)
    assert len(set(stored["_hoodie_record_key"].to_pylist())) == stored.num_rows
    assert {name: made[name] for name in "acde"} == {name: before[name] for name in "acde"}
    both = "merge into shop.t t using (select * from values (2, 1), (2, 2) as (id, n)) s on t.id = s.id"
    with pytest.raises(DuplicateKeyError):
        lakehouse.sql(f"{both} when matched then update set t.n = s.n")
