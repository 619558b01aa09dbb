"""What a warehouse that allows no files refuses, in any spelling, and what it leaves."""

from __future__ import annotations

import pytest

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.sql.binding.files import check_no_files
from lakehouse_engine.sql.grammar.references import Parts
from lakehouse_engine.sql.router import route

ON_FILES = [
    "select * from csv.`/etc/passwd`",
    "SELECT * FROM `CSV`.`/etc/passwd`",
    "select * from spark_catalog.`text`./* x */`/etc/passwd` t",
    "table parquet.`a`",
    "select * from `org.apache.spark.sql.json`.`a`",
    "select 1 union all (select v from t join Parquet.`s3://b/k` using (id))",
    "with c as (select * from orc.`/x`) select * from c",
    "select (select max(value) from text.`/etc/passwd`)",
    "select 1 where exists (select 1 from avro.`x`)",
    "explain select * from json.`/x`",
    "describe csv.`/etc/passwd`",
    "cache table c as select * from csv.`/x`",
    "insert overwrite directory '/tmp/out' using csv select 1",
    "insert overwrite local directory '/tmp/out' select 1",
    "from t insert overwrite directory '/tmp/out' select *",
    "with c as (select 1) insert into other select * from c",
    "insert into csv.`/tmp/x` select 1",
    "add jar '/tmp/x.jar'",
    "ADD FILE /etc/passwd",
    "add archive '/x'",
    "list jars",
    "load data local inpath '/etc/passwd' into table t",
    "create temporary view v using csv options (path '/etc/passwd')",
    "create or replace temp view v (a string) using text options (path '/etc/passwd')",
    "create table t using parquet location '/tmp/x' as select 1",
    "create external table t (a int) location '/x'",
    "create function f as 'a.B' using jar '/x.jar'",
    "create temporary function f as 'a.B'",
    "create temporary view v as select * from csv.`/etc/passwd`",
    "select reflect('java.nio.file.Files', 'readString', 'x')",
    "select `java_method`('java.lang.System', 'getenv', 'HOME')",
    "select try_reflect('a', 'b')",
    "select transform(a) using 'cat /etc/passwd' as (x) from t",
    "from t map a using 'sh' as b",
    "select * from read_files('/etc')",
    "select * from t with (path = '/etc/passwd')",
    "set spark.sql.runSQLOnFiles=true",
    "SET `spark.sql.runSQLOnFiles`=true",
    "set spark.sql.catalog.x=org.apache.X",
    "reset",
    "reset spark.sql.runSQLOnFiles",
    "analyze table csv.`/x` compute statistics",
    "refresh '/etc'",
    "merge into delta.`/x` t using s on true when matched then delete",
    "delete from delta.`/x`",
    "begin select * from csv.`/x`; end",
    "execute immediate 'select 1'",
]
LEFT = [
    "select * from t where path = 'csv.`/etc/passwd`' -- csv.`/x`",
    "with c as (select 1 as a) select * from c join shop.orders o on c.a = o.id",
    "select transform(array(1), x -> x + 1), map('a', 1), `reflect` from t",
    "values (1), (2)",
    "from t select *",
    "(select 1) union (select 2)",
    "explain extended select 1",
    "show tables",
    "describe other.t",
    "create or replace temporary view v as select 1 as a",
    "set spark.sql.shuffle.partitions=3",
    "set",
    "cache table c as select 1",
    "select text.a, csv.b from shop.orders as text, t as csv",
    "select * from range(3)",
]


def knows(parts: Parts) -> bool:
    return parts == ("shop", "orders")


@pytest.mark.parametrize("text", ON_FILES)
def test_statements_on_files_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedSqlError, match="allow_files"):
        check_no_files(text, knows)


@pytest.mark.parametrize("text", LEFT)
def test_others_are_left(text: str) -> None:
    check_no_files(text, knows)


@pytest.mark.parametrize(
    "text", ["select 1; select 2", "insert into shop.orders values (1);\n-- more\nselect 2;", "drop table shop.orders; ; select 1"]
)
def test_several_statements_in_one_text_are_refused_as_such(text: str) -> None:
    with pytest.raises(UnsupportedSqlError, match=r"several statements.*select"):
        route(text, knows)


@pytest.mark.parametrize("text", ["select ';' as a;", "select 1 ; -- end\n;/* x */", "begin select 1; select 2; end", "set a=b;c", ";"])
def test_a_semicolon_at_the_end_and_scripts_are_no_second_statement(text: str) -> None:
    route(text, knows)
