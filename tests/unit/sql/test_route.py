"""Where statements go, and what the engine's own say once parsed."""

from __future__ import annotations

import pytest

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.sql.grammar.statements import (
    AddColumns,
    AlterColumn,
    Call,
    ColumnDefinition,
    Comment,
    CommentOnSchema,
    CreateIndex,
    CreateSchema,
    CreateTable,
    CreateTableLike,
    CreateView,
    Delete,
    Describe,
    DescribeHistory,
    DescribeSchema,
    DropColumns,
    DropIndex,
    DropPartitions,
    DropSchema,
    DropTable,
    DropView,
    Explain,
    Insert,
    Merge,
    MergeClause,
    MultiInsert,
    NothingToDo,
    Passthrough,
    Place,
    Query,
    Refresh,
    RenameColumn,
    RenameRelation,
    RestoreTable,
    SetProperties,
    ShowColumns,
    ShowCreateTable,
    ShowIndexes,
    ShowPartitions,
    ShowProperties,
    ShowSchemas,
    ShowTables,
    Statement,
    Truncate,
    UnsetProperties,
    Update,
    UseSchema,
)
from lakehouse_engine.sql.router import route
from tests.unit.sql.corpus import BOUND, KNOWN, statement

AB = ("a", "b")
ID = ColumnDefinition("id", "int")


def knows(parts: tuple[str, ...]) -> bool:
    return tuple(part.lower() for part in parts) in KNOWN


PARSED: dict[str, Statement] = {
    "analyze table a.b compute statistics for columns id": NothingToDo(
        "ANALYZE TABLE", AB, "bounds of values are in the footers of its files, which every read looks at"
    ),
    "msck repair table a.b sync partitions": NothingToDo(
        "REPAIR TABLE", AB, "its partitions are known by its commits; CALL repair_table mends damaged metadata"
    ),
    "alter table a.b recover partitions": NothingToDo("RECOVER PARTITIONS", AB, "its partitions are known by its commits"),
    "vacuum a.b": Call("run_clean", (("table", "`a`.`b`"),)),
    "vacuum table z.`y` retain 24 hours dry run": Call(
        "run_clean",
        (("table", "`z`.`y`"), ("clean_policy", "KEEP_LATEST_BY_HOURS"), ("hours_retained", 24), ("dry_run", True)),
    ),
    "restore table a.b to version as of 'monday'": RestoreTable(AB, "monday"),
    "restore z.y timestamp as of '2026-01-01'": RestoreTable(("z", "y"), "2026-01-01"),
    "restore a.b to version as of -1": RestoreTable(AB, "-1"),
    "show indexes from a.b": ShowIndexes(AB),
    "show index in table z.y": ShowIndexes(("z", "y")),
    "create index I on a.b using Record_Index (id)": CreateIndex(AB, "i", "record_index", ("id",)),
    "create index if not exists i on table a.b (id, x)": CreateIndex(AB, "i", None, ("id", "x"), (), True),
    "create index i on a.b using column_stats (ts) options (expr = 'from_unixtime')": CreateIndex(
        AB, "i", "column_stats", ("ts",), (("expr", "from_unixtime"),)
    ),
    "create index bloom_filters on a.b": CreateIndex(AB, "bloom_filters"),
    "drop index if exists i on a.b": DropIndex(AB, "i", True),
    "drop index `i` on table a.b": DropIndex(AB, "i"),
    "call help": Call("help"),
    "call help limit 3": Call("help", (), 3),
    "call help('run_clean')": Call("help", ((None, "run_clean"),)),
    "insert into a.b replace where b.x is not distinct from 1 from q select x": Insert(
        AB, "from q select x", replaced="b.x is not distinct from 1"
    ),
    "insert into a.b (x) replace where case x when 1 then true end values (1)": Insert(
        AB, "values (1)", ("x",), replaced="case x when 1 then true end"
    ),
    "create table if not exists z like a.b tblproperties (type 'mor')": CreateTableLike(("z",), AB, (("type", "mor"),), True),
    "desc history a.b limit 3": DescribeHistory(AB, 3),
    "show table extended from s like 'a*|b'": ShowTables("s", "a*|b", extended=True),
    # schemas
    "create schema s": CreateSchema("s"),
    "CREATE DATABASE IF NOT EXISTS `my s` COMMENT 'x'": CreateSchema("my s", True, "x"),
    "create schema spark_catalog.s": CreateSchema("s"),
    "drop schema s": DropSchema("s"),
    "drop schema if exists s cascade": DropSchema("s", True, True),
    "drop database s restrict": DropSchema("s"),
    "use s": UseSchema("s"),
    "use schema s": UseSchema("s"),
    "describe schema extended s": DescribeSchema("s"),
    "show schemas": ShowSchemas(),
    "show databases like 's*'": ShowSchemas("s*"),
    "show tables": ShowTables(),
    "show tables in s like 'x|y'": ShowTables("s", "x|y"),
    "show views from s": ShowTables("s", views=True),
    # views
    "create view s.v as select * from a.b": CreateView(("s", "v"), "select * from a.b"),
    "create or replace view s.v (x comment 'c', y) comment 'd' as with t as (select 1, 2) select * from t -- end": CreateView(
        ("s", "v"), "with t as (select 1, 2) select * from t", (("x", "c"), ("y", None)), "d", or_replace=True
    ),
    "/* q */ create view if not exists spark_catalog.s.v\n as (select 1);": CreateView(("s", "v"), "(select 1)", if_not_exists=True),
    "drop view a.b": DropView(AB),
    "drop view if exists a.b": DropView(AB, True),
    "alter view a.b as select 2": CreateView(AB, "select 2", or_replace=True),
    "alter view a.b rename to a.z": RenameRelation(AB, ("a", "z"), view=True),
    # tables
    "create table s.t (id int)": CreateTable(("s", "t"), (ID,)),
    "create table if not exists s.t (id int not null comment 'k', d decimal(10, 2), m map<string, array<int>>) using hudi": CreateTable(
        ("s", "t"),
        (
            ColumnDefinition("id", "int", False, "k"),
            ColumnDefinition("d", "decimal(10, 2)"),
            ColumnDefinition("m", "map<string, array<int>>"),
        ),
        if_not_exists=True,
    ),
    "create table s.t (id int, day date) using lakehouse partitioned by (day) comment 'c' "
    "tblproperties (primaryKey = 'id', 'preCombineField' = 'ts', hoodie.index.type 'SIMPLE', n = 3, f = true)": CreateTable(
        ("s", "t"),
        (ID, ColumnDefinition("day", "date")),
        ("day",),
        properties=(("primaryKey", "id"), ("preCombineField", "ts"), ("hoodie.index.type", "SIMPLE"), ("n", "3"), ("f", "true")),
        comment="c",
    ),
    "create table s.t (id int) partitioned by (day date, hour int)": CreateTable(
        ("s", "t"), (ID, ColumnDefinition("day", "date"), ColumnDefinition("hour", "int")), ("day", "hour")
    ),
    "create table s.t (id int primary key not enforced, x string)": CreateTable(
        ("s", "t"), (ID, ColumnDefinition("x", "string")), primary_key=("id",)
    ),
    "create table s.t (id int, constraint pk primary key (id))": CreateTable(("s", "t"), (ID,), primary_key=("id",)),
    "create table s.t as select * from a.b": CreateTable(("s", "t"), query="select * from a.b"),
    "create or replace table s.t using hudi as with q as (select 1 as id) select * from q": CreateTable(
        ("s", "t"), query="with q as (select 1 as id) select * from q", or_replace=True
    ),
    "create table t (id int)": CreateTable(("t",), (ID,)),
    "drop table a.b": DropTable(AB),
    "drop table if exists A.B purge": DropTable(("A", "B"), True),
    "truncate table a.b": Truncate(AB),
    "truncate table a.b partition (day = date '2026-01-01', n = 1)": Truncate(AB, (("day", "2026-01-01"), ("n", 1))),
    "alter table a.b rename to z": RenameRelation(AB, ("z",)),
    "alter table a.b add column x int": AddColumns(AB, (ColumnDefinition("x", "int"),)),
    "alter table a.b add columns (x int comment 'c', y struct<z: int>)": AddColumns(
        AB, (ColumnDefinition("x", "int", comment="c"), ColumnDefinition("y", "struct<z: int>"))
    ),
    "alter table a.b add columns x int, y string": AddColumns(AB, (ColumnDefinition("x", "int"), ColumnDefinition("y", "string"))),
    "alter table a.b drop column x": DropColumns(AB, ("x",)),
    "alter table a.b drop columns (s.x, `y`.element.z)": DropColumns(AB, ("s.x", "y.element.z")),
    "alter table a.b add columns (s.x int comment 'c' first, y int after x)": AddColumns(
        AB, (ColumnDefinition("s.x", "int", comment="c", place=Place()), ColumnDefinition("y", "int", place=Place("x")))
    ),
    "alter table a.b rename column s.x to y": RenameColumn(AB, "s.x", "y"),
    "alter table a.b alter column s.x type bigint": AlterColumn(AB, "s.x", type="bigint"),
    "alter table a.b alter x first": AlterColumn(AB, "x", place=Place()),
    "alter table a.b alter column s.x after y": AlterColumn(AB, "s.x", place=Place("y")),
    "alter table a.b change column x x bigint comment 'c' after y": AlterColumn(AB, "x", type="bigint", comment="c", place=Place("y")),
    "alter table a.b change comment comment string": AlterColumn(AB, "comment", type="string"),
    "describe extended a.b as json": Describe(AB, True, as_json=True),
    "from (select 1 as id) s insert into a.b select id where id = 1 insert overwrite table a.c (id) select id + 1": MultiInsert((
        Insert(AB, "from (select 1 as id) s select id where id = 1"),
        Insert(("a", "c"), "from (select 1 as id) s select id + 1", ("id",), overwrite=True),
    )),
    "with q as (select 1 as id) from q insert into a.b select id": MultiInsert((
        Insert(AB, "with q as (select 1 as id) from q select id"),
    )),
    "update a.b t set t.s.x = 1, s.y = t.s.x": Update(AB, (("s.x", "1"), ("s.y", "t.s.x")), "t"),
    "update a.b set a.b.s.x = 1, b.s.y = 2, spark_catalog.a.b.z = 3": Update(AB, (("s.x", "1"), ("s.y", "2"), ("z", "3"))),
    "merge into a.b t using a.c s on t.id = s.id when matched then update set t.st.x = s.x": Merge(
        AB, "a.c", "t.id = s.id", (MergeClause("matched", "update", None, (("st.x", "s.x"),)),), "t", "s"
    ),
    "alter table a.b drop columns if exists (x, `y z`)": DropColumns(AB, ("x", "y z"), True),
    "alter table a.b rename column x to y": RenameColumn(AB, "x", "y"),
    "alter table a.b alter column x type decimal(12, 2)": AlterColumn(AB, "x", type="decimal(12, 2)"),
    "alter table a.b change column x comment 'c'": AlterColumn(AB, "x", comment="c"),
    "alter table a.b alter x drop not null": AlterColumn(AB, "x", nullable=True),
    "alter table a.b set tblproperties ('k' = 'v', k.l = 2)": SetProperties(AB, (("k", "v"), ("k.l", "2"))),
    "alter table a.b unset tblproperties if exists ('k', l)": UnsetProperties(AB, ("k", "l")),
    "alter table a.b drop if exists partition (x = 1), partition (x = 'y')": DropPartitions(AB, ((("x", 1),), (("x", "y"),)), True),
    "comment on table a.b is 'it''s'": Comment(AB, "it's"),
    "comment on column a.b.id is null": Comment(AB, "", "id"),
    "comment on schema spark_catalog.a is 'x'": CommentOnSchema("a", "x"),
    "comment on database a is null": CommentOnSchema("a", ""),
    # showing
    "describe a.b": Describe(AB),
    "desc table extended spark_catalog.a.b": Describe(AB, True),
    "describe formatted a.b id": Describe(AB, True, "id"),
    "show columns in a.b": ShowColumns(AB),
    "show columns from b in a": ShowColumns(AB),
    "show tblproperties a.b ('k')": ShowProperties(AB, "k"),
    "show create table a.b": ShowCreateTable(AB),
    "show partitions a.b": ShowPartitions(AB),
    "refresh table a.b": Refresh(AB),
    # rows
    "insert into a.b values (1, 'x')": Insert(AB, "values (1, 'x')"),
    "insert into a.b select * from a.c": Insert(AB, "select * from a.c"),
    "insert into table a.b (id, x) select 1, 2;": Insert(AB, "select 1, 2", ("id", "x")),
    "insert into a.b by name select 1 as id": Insert(AB, "select 1 as id", by_name=True),
    "insert overwrite table a.b partition (day = '2026', hour) select 1": Insert(
        AB, "select 1", overwrite=True, partition=(("day", "2026"),), dynamic=("hour",)
    ),
    "insert overwrite a.b (select 1)": Insert(AB, "(select 1)", overwrite=True),
    "insert into a.b table a.c": Insert(AB, "table a.c"),
    "with q as (select 1), r as (select * from q) insert into a.b select * from r": Insert(
        AB, "with q as (select 1), r as (select * from q) select * from r"
    ),
    "insert into a.b with q as (select 1) select * from q": Insert(AB, "with q as (select 1) select * from q"),
    "delete from a.b": Delete(AB),
    "delete from a.b where id in (select id from a.c) and x = 'a;b' -- end": Delete(AB, None, "id in (select id from a.c) and x = 'a;b'"),
    "delete from a.b as t where t.id = :id": Delete(AB, "t", "t.id = :id"),
    "delete from a.b where id = (select x from a.c order by x limit 1) and limit = b.order": Delete(
        AB, None, "id = (select x from a.c order by x limit 1) and limit = b.order"
    ),
    "update a.b set x = 1": Update(AB, (("x", "1"),)),
    "update a.b t set t.x = t.x + f(1, 2), `y` = case when a then b else c end where t.id > 1": Update(
        AB, (("x", "t.x + f(1, 2)"), ("y", "case when a then b else c end")), "t", "t.id > 1"
    ),
    "update a.b set a.b.x = (select max(x) from a.c where 1 = 1), b.y = 2": Update(
        AB, (("x", "(select max(x) from a.c where 1 = 1)"), ("y", "2"))
    ),
    "delete from a.b where a.b.id in (select a.c.id from a.c where a.c.x = a.b.x) or exists (select a.b.x from a.b)": Delete(
        AB, None, "`b`.id in (select a.c.id from a.c where a.c.x = `b`.x) or exists (select a.b.x from a.b)"
    ),
    "update spark_catalog.a.b set x = a.b.x + spark_catalog.a.b.y where a.b.s.z = 1": Update(
        AB, (("x", "`b`.x + `b`.y"),), condition="`b`.s.z = 1"
    ),
    "merge into a.b using a.c on a.b.id = a.c.id when not matched and a.c.x > 0 then insert (a.b.id, x) values (a.c.id, 1)": Merge(
        AB, "a.c", "`b`.id = `c`.id", (MergeClause("not_matched", "insert", "`c`.x > 0", (("id", "`c`.id"), ("x", "1"))),), None, "c"
    ),
    "merge into a.b t using a.c s on t.id = s.id when matched then update set * when not matched then insert *": Merge(
        AB,
        "a.c",
        "t.id = s.id",
        (MergeClause("matched", "update"), MergeClause("not_matched", "insert")),
        "t",
        "s",
    ),
    "merge with schema evolution into a.b using (select * from a.c) as s on b.id = s.id "
    "when matched and case when s.d then true end then delete "
    "when matched then update set b.x = s.x, y = case when s.y then 1 else 2 end "
    "when not matched by target and s.z > 0 then insert (id, x) values (s.id, f(s.x, 1)) "
    "when not matched by source and b.x = 1 then update set x = 0": Merge(
        AB,
        "(select * from a.c)",
        "b.id = s.id",
        (
            MergeClause("matched", "delete", "case when s.d then true end", ()),
            MergeClause("matched", "update", None, (("x", "s.x"), ("y", "case when s.y then 1 else 2 end"))),
            MergeClause("not_matched", "insert", "s.z > 0", (("id", "s.id"), ("x", "f(s.x, 1)"))),
            MergeClause("not_matched_by_source", "update", "b.x = 1", (("x", "0"),)),
        ),
        None,
        "s",
        True,
    ),
    "call show_commits(table => 'a.b', limit => 10)": Call("show_commits", (("table", "a.b"), ("limit", 10))),
    "CALL system.Run_Clean('a.b', retain_commits => -3, x => true, y => null, z => 1.5)": Call(
        "run_clean", ((None, "a.b"), ("retain_commits", -3), ("x", True), ("y", None), ("z", 1.5))
    ),
    "call archive_commits()": Call("archive_commits"),
    "call show_commits('a.b')\n limit 500": Call("show_commits", ((None, "a.b"),), 500),
}

QUERIES = [
    "create temp view z as select * from a.b",
    "create table z using parquet as select * from a.b",
    "insert into z select * from a.b",
    "select * from hudi_table_changes('z.y', 'latest_state', 'earliest')",
]

PASSED_ON = [
    "select 1",
    "/* from a.b */ select 1 -- from a.b",
    "select * from z.y",
    "set x = 1",
    "create temporary view z as select 1",
    "create table z (id int) using parquet",
    "create external table z (id int) stored as parquet location '/x'",
    "create table mycat.s.t (id int)",
    "create view mycat.s.v as select 1",
    "create function f as 'x.Y'",
    "create temporary function f(x int) returns int return x + 1",
    "drop table z",
    "load data inpath '/x' into table z",
    "describe detail z.y",
    "drop view if exists z",
    "insert into z values (1)",
    "delete from z.y where id = 1",
    "describe z",
    "show functions",
    "use catalog spark_catalog",
    "cache table z",
    "",
    "-- nothing",
]

REFUSED = {
    "create table s.t (id int) location '/x'": "LOCATION",
    "create table s.t (id int generated always as ())": "expression in the brackets behind GENERATED",
    "create table s.t (id int generated always as id)": "expression in brackets behind GENERATED",
    "create table s.t (id int generated as (1))": "GENERATED ALWAYS AS expected",
    "create table s.t (id bigint generated always as identity (start with 1))": "no counter",
    "alter table a.b change column n n int generated always as (1)": "GENERATED in CHANGE COLUMN",
    "create table s.t (id bigint generated by default as identity)": "IDENTITY of the column id",
    "alter table a.b change x x int default 1": "SET DEFAULT 1",
    "create table s.t (id int, check (id > 0))": "CHECK",
    "create table s.t (id int) partitioned by (bucket(4, id))": "partition transform",
    "create table s.t (id int) clustered by (id) into 4 buckets": "CLUSTERED",
    "create table a.z like a.b using parquet": "USING hudi",
    "create table a.z like a.b location '/x'": "USING or TBLPROPERTIES",
    "create table a.b using parquet as select 1": "cannot be made anew with parquet",
    "create or replace table a.b (id int) using delta": "cannot be made anew with delta",
    "create view s.v with schema binding as select 1": "AS, COMMENT",
    "create view s.v": "AS, COMMENT",
    "create function f() returns table (x int) return select * from a.b": "CREATE FUNCTION",
    "alter table a.b add constraint c check (x > 1)": "RENAME, ADD COLUMNS",
    "alter table a.b change column x y int": "RENAME COLUMN x TO y",
    "alter table a.b change x x int not null": "SET NOT NULL",
    "alter table a.b add column `s.x` int": "a column's name",
    "alter table a.b alter column x after": "the name of a column beside it",
    "describe table a.b as json": "takes EXTENDED",
    "from a.c insert into a.b select id insert into a.b select x": "target of two inserts",
    "from a.c insert into a.b values (1)": "SELECT in each INSERT",
    "merge into a.b using a.c on 1 = 1 when matched then update set s.x = 1, s = null": "twice",
    "create index i on a.b using record_index (id) where id > 1": "the end of the statement",
    "create index i on a.b (s.x)": "nested fields are not supported",
    "refresh index i on a.b": "REFRESH INDEX on a.b",
    "select * from hudi_metadata('a.b')": "hudi_metadata(...) is not supported: hoodie.metadata.enable says",
    "select * from hudi_query_timeline('a.b', 'true')": "hudi_query_timeline(...) is not supported: CALL show_timeline",
    "select * from hudi_filesystem_view('a.b')": "hudi_filesystem_view(...) is not supported: `lakehouse files`",
    "restore table a.b": "VERSION AS OF or TIMESTAMP AS OF",
    "restore table a.b to version as of current_date()": "as a literal",
    "vacuum a.b retain 10": "HOURS",
    "show indexes from a.b where 1": "the end of the statement",
    "cache table a.b": "CACHE TABLE",
    "explain delete from a.b": "EXPLAIN DELETE",
    "begin insert into a.b values (1); end": "BEGIN INSERT",
    "from a.c insert into a.b select id insert into z select x": "several targets",
    "insert into a.b with ('k' = 'v') select 1": "options",
    "insert into a.b partition (x = 1) if not exists select 1": "IF NOT EXISTS",
    "insert into a.b replace where x in (select 1) select 1": "without a sub-query",
    "insert overwrite a.b replace where x = 1 select 1": "a query",
    "describe history a.b limit 'x'": "a number of instants",
    "insert into a.b set x = 1": "a query",
    "with q as (select 1) delete from a.b where id in (select * from q)": "WITH before DELETE",
    "update a.b set s.x = 1, s = null": "twice",
    "update a.b set `s.x` = 1": "a column's name",
    "update a.b set x = 1, X = 2": "twice",
    "delete from a.b where": "an expression",
    "delete from a.b where id = 1 limit 5": "DELETE with LIMIT",
    "update a.b set x = 1 where id = 1 order by id limit 5": "UPDATE with ORDER",
    "update a.b set x = 1 limit 5": "UPDATE with LIMIT",
    "load data inpath '/x' into table a.b": "LOAD DATA is not supported on a.b",
    "load data local inpath '/x' overwrite into table a.b partition (x = 1)": "LOAD DATA is not supported on a.b",
    "describe detail a.b": "DESCRIBE DETAIL is Delta's",
    "merge into a.b using a.c on 1 = 1 when matched then insert *": "an action",
    "merge into a.b using a.c on 1 = 1 when not matched then insert (x, y) values (1)": "2 columns and gives 1",
    "merge into a.b using a.c on 1 = 1": "WHEN",
    "merge into a.b using d.b on a.b.id = d.b.id when matched then delete": "both called b",
    "truncate table a.b partition (x)": "a value",
    "call show_commits(table => concat('a', 'b'))": "a literal",
    "drop schema identifier('x')": "IDENTIFIER",
    "create table s.t (": "a column's name",
}


@pytest.mark.parametrize("text", PARSED)
def test_statements_of_the_engine_are_parsed(text: str) -> None:
    assert route(text, knows) == PARSED[text]


@pytest.mark.parametrize("text", QUERIES)
def test_statements_that_only_read_known_relations_are_queries(text: str) -> None:
    assert route(text, knows) == Query(text)


def test_what_a_query_reads_is_explained_where_it_reads_a_known_relation() -> None:
    assert route("explain formatted select * from a.b", knows) == Explain("explain formatted select * from a.b")
    assert route("explain select 1", knows) == Passthrough("explain select 1")


@pytest.mark.parametrize("text", PASSED_ON)
def test_statements_without_known_relations_are_passed_on(text: str) -> None:
    assert route(text, knows) == Passthrough(text)


@pytest.mark.parametrize("text", REFUSED)
def test_what_the_engine_has_no_reading_of_is_refused_by_name(text: str) -> None:
    with pytest.raises(UnsupportedSqlError) as caught:
        route(text, knows)
    assert REFUSED[text] in str(caught.value)


@pytest.mark.parametrize("marked", [one for one in BOUND if "{" in one and one.startswith(("select", "with t", "table", "(", "values"))])
def test_queries_that_read_known_relations_are_queries(marked: str) -> None:
    assert route(statement(marked), knows) == Query(statement(marked))
