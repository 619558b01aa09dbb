"""Statements for the binding tests, in a small markup from which both the statement and the expected text are derived.

`{a.b}` is a read that gets a pin and the alias `b`; `{a.b!}` a read that gets a pin alone (it has an alias, or may not have one);
`{a.b~}` a column's qualifier that becomes `b`. Everything else must stay as it is.
"""

from __future__ import annotations

import re

KNOWN = {("a", "b"), ("a", "c"), ("d", "b"), ("a", "2ef"), ("a", "two words"), ("from", "select")}
_MARK = re.compile(r"\{([^}!~]+)([!~]?)\}")


def view_name(parts: tuple[str, ...]) -> str:
    return "pin " + ".".join(part.lower() for part in parts)


def statement(marked: str) -> str:
    return _MARK.sub(lambda match: match.group(1), marked)


def expected(marked: str) -> str:
    def replace(match: re.Match[str]) -> str:
        name, mode = match.groups()
        parts = [part.strip("`") for part in re.findall(r"`[^`]*`|[^.`]+", name)]
        parts = parts[1:] if parts[0].lower() == "spark_catalog" else parts
        if mode == "~":
            return f"`{parts[-1]}`"
        return f"`{view_name(tuple(parts))}`" + ("" if mode else f" AS `{parts[-1]}`")

    return _MARK.sub(replace, marked)


BOUND = r"""
select * from {a.b}
SELECT * FROM {A.B}
select 1 as x, b.id from {a.b}
select * from {`a`.`b`}
select * from {`a`.b}
select * from {a.2ef}
select * from {a.`two words`}
select * from {`from`.`select`}
select * from {spark_catalog.a.b}
select * from {SPARK_CATALOG.a.b} where {spark_catalog.a.b~}.id = 1
select * from {a.b!} x
select * from {a.b!} as x
select * from {a.b!} `x y`
select * from {a.b!} as x (i, j)
select x.id from {a.b!} x where x.id > 1
select b.id, {a.b~}.id, {a.b~}.s.z from {a.b} where {a.b~}.id > 1
select {a.b~}.* from {a.b}
select {a.b~}.*, c.* from {a.b}, {a.c!} c
select * from {a.b}, {a.c}
select * from {a.b}, {a.c!} as c2, {d.b!} x
select * from {a.b} join {a.c} on {a.b~}.id = {a.c~}.id
select * from {a.b!} l join {a.c!} r on l.id = r.id
select * from {a.b!} l left outer join {a.c!} r using (id)
select * from {a.b} natural join {a.c}
select * from {a.b} left semi join {a.c} on {a.b~}.id = {a.c~}.id
select * from {a.b} left anti join {a.c} using (id)
select * from {a.b} cross join {a.c}
select * from {a.b} full outer join {a.c} using (id) right join {d.b!} z using (id)
select * from {a.b} inner join {a.c} using (id), {d.b!} e
select * from {a.b!} x, {a.b!} y where x.id = y.id
select * from {a.b!} x join {a.b!} y on x.id = y.id
select * from ({a.b} join {a.c} using (id))
select * from (({a.b} join {a.c} using (id)))
select * from ({a.b!} as x)
select * from (select * from {a.b})
select * from (select * from {a.b}) t
select * from ((select * from {a.b}) union all (select * from {a.c})) t
(select * from {a.b}) union (select * from {a.c})
((select * from {a.b}))
select * from {a.b} union all select * from {a.c}
select * from {a.b} where {a.b~}.id = 1 union select * from {a.c} where {a.c~}.id = 2
select id from {a.b} except select id from {a.c}
select id from {a.b} minus select id from {a.c}
select id from {a.b} intersect all select id from {a.c}
select * except (id) from {a.b}
select count(*) from {a.b} group by {a.b~}.id having count(*) > 1 order by {a.b~}.id limit 3 offset 1
select sum(x) over (partition by {a.b~}.id order by {a.b~}.ts) from {a.b}
select sum(x) over w from {a.b} window w as (partition by id)
select * from {a.b} where id in (select id from {a.c})
select * from {a.b} where id in (select {a.c~}.id from {a.c} where {a.c~}.x = {a.b~}.x)
select * from {a.b} where exists (select 1 from {a.c} where {a.c~}.id = {a.b~}.id)
select * from {a.b} where not exists (from {a.c})
select (select max(id) from {a.b}) as m
select (select max(id) from {a.b}), (select min(id) from {a.c}) from {d.b!} t
select case when exists (select 1 from {a.b}) then 1 else 2 end
select * from {a.b} where (id, x) in (select id, x from {a.c})
select * from {a.b} where id > all (select 1)
with t as (select * from {a.b}) select * from t
with t as (select * from {a.b}), u as (select * from t) select * from u, {a.c}
with t (x, y) as (select * from {a.b}) select x from t
with b as (select * from {a.b}) select * from b
with b as (select * from {a.b}) select * from b, {a.b}
with t (select * from {a.b}) select * from t
with a as (select 1 as b) select a.b from a
with a as (select named_struct('b', 1) as s) select a.s.b from a
with t as (with u as (select * from {a.b}) select * from u) select * from t
with recursive r as (select 1 as n union all select n + 1 from r where n < 5) select * from r join {a.b} on true
with recursive r (n) max recursion level 9 as (select 1 union all select n + 1 from r where n < 5) select * from r, {a.b}
select * from (with t as (select * from {a.b}) select * from t)
from {a.b}
from {a.b} select id
from {a.b} select {a.b~}.id where {a.b~}.id > 1
from {a.b!} x join {a.c!} y using (id) select x.id, y.id
table {a.b!}
table {a.b!} union all table {a.c!}
select * from (table {a.b!})
select * from f(table({a.b!}))
select * from f(table {a.b!}, 1)
select * from f(1, table({a.b!}) partition by id order by id)
select * from f(t => table({a.b!})), {a.c}
select * from f(table(select * from {a.b}))
select * from range(10), {a.b}
select * from range(1, 10) r join {a.b} using (id)
select * from explode(array(1, 2)) t(x), {a.b}
select * from {a.b}, lateral (select * from {a.c} where {a.c~}.id = {a.b~}.id)
select * from {a.b} join lateral (select {a.b~}.id + 1 as n) l
select * from {a.b}, lateral explode({a.b~}.xs) e
select * from {a.b} lateral view explode(xs) e as x
select * from {a.b} lateral view outer explode({a.b~}.xs) e as x, y where x > 1
select * from {a.b!} t lateral view explode(t.xs) e as x join {a.c} using (id)
select * from values (1), (2) as t(x), {a.b}
values (1, 2), ((select max(id) from {a.b}), 3)
select * from {a.b} pivot (sum(x) for y in (1, 2))
select * from {a.b} pivot (sum(x) as s for y in ('a.b')) p, {a.c}
select * from {a.b} unpivot (v for k in (x, y))
select * from {a.b!} tablesample (100 percent) x
select * from {a.b!} tablesample (10 percent) repeatable (3) as x join {a.c} using (id)
select /*+ broadcast(b) */ * from {a.b}
select /*+ BROADCAST({a.b~}), MERGE({a.c~}) */ * from {a.b} join {a.c} using (id)
select /*+ repartition(3) */ {a.b~}.id from {a.b}
select /*+ coalesce(1), broadcast(x) */ 1 from {a.b!} x
select 'a.b', "a.c", 'it''s a.b', 'it\'s from a.b' from {a.b}
select r'\', * from {a.b}
select * from {a.b} where s = 'x from a.b y' -- from a.c
select * from {a.b} -- a 'quote
select * from {a.b} /* from a.c */
select * from {a.b} /* /* from a.c */ from a.c */ where x = 1
select * from /* a.c */ {a.b}
select 1 -- from a.b \
select '🎉', `🎉`.x from {a.b!} `🎉`
select extract(year from {a.b~}.ts) from {a.b}
select extract(day from ts), trim(both 'x' from s), trim(from s) from {a.b}
select substring(s from 1 for 2), overlay(s placing 'x' from 2), position('x' in s) from {a.b}
select * from {a.b} where x is distinct from y
select * from {a.b} where x is not distinct from {a.b~}.y
select transform(xs, x -> x.a.b.c) from {a.b}
select xs[0].a.b, (s).a.b.c, f(x).a.b from {a.b}
select * from {a.b} where id = :id and x = ? and y = :y
select * from {a.b} where ts > timestamp '2026-01-01' - interval 1 day
select x::int, y::decimal(10, 2) from {a.b}
select a.b.z from (select s as b from {a.c}) a
select a.b.z from {a.c!} as a
select t.a.b from {a.b!} t
select distinct {a.b~}.id from {a.b}
select all id from {a.b} distribute by id sort by id
select * from {a.b} cluster by id
select current_date, date '2026-01-01', x between 1 and 2 from {a.b}
select count(*) filter (where {a.b~}.x > 1) from {a.b}
select listagg(x, ',') within group (order by {a.b~}.id) from {a.b}
select * from {a.b} group by grouping sets ((id), ()), rollup (x)
select id, count(*) from {a.b} group by all
from {a.b} |> where {a.b~}.id > 2
from {a.b} |> select id |> join {a.c} using (id)
from {a.b} |> where x = 1 |> union all table {a.c!}
from {a.b} |> aggregate sum(x) as s group by id |> order by s
from {a.b!} t |> extend id + 1 as z |> drop x
explain select * from {a.b}
explain extended with t as (select * from {a.b}) select * from t
describe query select * from {a.b}
desc select * from {a.b}
cache table z as select * from {a.b}
cache lazy table z options ('storageLevel' 'DISK_ONLY') as select * from {a.b}
create temp view z as select * from {a.b}
create or replace temporary view z (i) as with t as (select * from {a.b}) select i from t
create table z using parquet as select * from {a.b}
create table z using parquet partitioned by (x) as with t as (select 1) select * from {a.b}, t
insert into z select * from {a.b}
insert into table z (i, j) select * from {a.b}
insert into z (i, j) with q as (select * from {a.b}) select * from q
insert into z table {a.b!}
insert overwrite z partition (x = 1) select * from {a.b}
insert overwrite directory '/x' using parquet select * from {a.b}
with q as (select * from {a.b}) insert into z select * from q
from {a.b} insert into z select id insert into y select {a.b~}.id
insert into a.c select * from {a.b}
merge into z t using {a.b!} s on t.id = s.id when matched then update set *
merge into z using {a.b} on z.id = {a.b~}.id when not matched then insert *
merge into z t using (select * from {a.b}) s on t.id = s.id when matched then delete
delete from z where id in (select id from {a.b})
update z set x = (select max(x) from {a.b}) where id = 1
begin declare x int; set x = (select max(id) from {a.b}); select x; end
begin if exists (select 1 from {a.b}) then select * from {a.c}; end if; end
begin for r as select * from {a.b} do select r.id; end for; end
set var x = (select max(id) from {a.b})
select * from {a.b} order by (select max(id) from {a.c})
select * from {a.b!} as values, {a.c}
select `b`.`id`, {`a`.`b`~}.`id` from {a.b}
select * from {a.b} where {a.b~}.m['k'] = 1 and {a.b~}.xs[0] = 2
select stream.id from {a.b!} stream
select * from {a.b} left join (select * from {a.c}) c2 on c2.id = {a.b~}.id
select * from {a.b} anti join {a.c} on {a.b~}.id = {a.c~}.id
select * from {a.b}, z.y where {a.b~}.id = z.y.id
select * from z join {a.b} on z.id = b.id
select * from {a.b} where x like 'a.b%' escape '!' and y rlike '.*'
""".strip("\n").split("\n")

PAIRS = {
    "alias follows the sample": (
        "select * from a.b tablesample (100 percent) where x = 1",
        "select * from `pin a.b` tablesample (100 percent) AS `b` where x = 1",
    ),
    "alias follows repeatable": (
        "select * from a.b tablesample (5 rows) repeatable (3), a.c",
        "select * from `pin a.b` tablesample (5 rows) repeatable (3) AS `b`, `pin a.c` AS `c`",
    ),
    "same last name, told apart by columns": (
        "select a.b.id, d.b.id from a.b, d.b",
        "select `a.b`.id, `d.b`.id from `pin a.b` AS `a.b`, `pin d.b` AS `d.b`",
    ),
    "same last name as a relation of Spark's": (
        "select a.b.id, z.b.id from a.b, z.b",
        "select `a.b`.id, z.b.id from `pin a.b` AS `a.b`, z.b",
    ),
    "same last name, columns unqualified": (
        "select * from a.b join d.b using (id)",
        "select * from `pin a.b` AS `b` join `pin d.b` AS `b` using (id)",
    ),
    "comment inside a name": ("select * from a./* x */b", "select * from `pin a.b` AS `b`"),
    "line comment inside a name": ("select * from a.--x\nb", "select * from `pin a.b` AS `b`"),
    "comment continued over a backslash": ("select 1 -- x \\\n from a.c\n from a.b", "select 1 -- x \\\n from a.c\n from `pin a.b` AS `b`"),
    "code after a line comment": ("select * -- from a.c\nfrom a.b", "select * -- from a.c\nfrom `pin a.b` AS `b`"),
    "dollar-quoted string": ("select $$ from a.c $$ from a.b", "select $$ from a.c $$ from `pin a.b` AS `b`"),
    "query comment of dbt": (
        '/* {"app": "dbt", "from": "a.c"} */\nselect * from a.b',
        '/* {"app": "dbt", "from": "a.c"} */\nselect * from `pin a.b` AS `b`',
    ),
    "timestamp": (
        "select * from a.b timestamp as of '2026-01-01' where x = 1",
        "select * from `pin a.b@timestamp 2026-01-01`  AS `b` where x = 1",
    ),
    "timestamp, typed literal, alias": (
        "select * from a.b TIMESTAMP AS OF timestamp '2026-01-01 10:00:00' as t",
        "select * from `pin a.b@computed timestamp timestamp '2026-01-01 10:00:00'`  as t",
    ),
    "an expression": (
        "select a.b.id from a.b timestamp as of current_timestamp() where x = 1",
        "select `b`.id from `pin a.b@computed timestamp current_timestamp()`  AS `b` where x = 1",
    ),
    "an expression, alias": (
        "select t.id from a.b timestamp as of date '2026-01-01' - interval 1 day t join a.c using (id)",
        "select t.id from `pin a.b@computed timestamp date '2026-01-01' - interval 1 day`  t join `pin a.c` AS `c` using (id)",
    ),
    "an expression in parentheses": (
        "select * from a.b for timestamp as of (cast('2026-01-01' as timestamp) - make_interval(0, 0, 1)) as t",
        "select * from `pin a.b@computed timestamp (cast('2026-01-01' as timestamp) - make_interval(0, 0, 1))`  as t",
    ),
    "date literal": (
        "select * from a.b timestamp as of date '2026-01-01' t",
        "select * from `pin a.b@computed timestamp date '2026-01-01'`  t",
    ),
    "system_time": ("select * from a.b for system_time as of '2026' t", "select * from `pin a.b@timestamp 2026`  t"),
    "version number": ("select * from a.b version as of 20260101000000 t", "select * from `pin a.b@version 20260101000000`  t"),
    "version name, for": ("select * from a.b for version as of 'before load' t", "select * from `pin a.b@version before load`  t"),
    "now and then of one table": (
        "select * from a.b n join a.b version as of '1' o using (id)",
        "select * from `pin a.b` n join `pin a.b@version 1`  o using (id)",
    ),
    "column of a travelled table": (
        "select a.b.id from a.b version as of '1' where a.b.x = 1",
        "select `b`.id from `pin a.b@version 1`  AS `b` where `b`.x = 1",
    ),
    "changes": (
        "select * from hudi_table_changes('a.b', 'latest_state', 'earliest') t",
        "select * from `pin a.b@changes latest_state earliest None` t",
    ),
    "changes with an end, unaliased, joined": (
        "select * from hudi_table_changes('a.b', 'cdc', '2026', '2027') join a.c using (id)",
        "select * from `pin a.b@changes cdc 2026 2027` AS `hudi_table_changes` join `pin a.c` AS `c` using (id)",
    ),
    "changes of a quoted name": (
        "select * from HUDI_TABLE_CHANGES('`a`.`b`', 'latest_state', 20260101)",
        "select * from `pin a.b@changes latest_state 20260101 None` AS `HUDI_TABLE_CHANGES`",
    ),
}

UNTOUCHED = r"""
select 1
select a.b from a
select a.b.c from a
select x.b from x.y.z
select 'from a.b'
select * from z
select * from z.y
select * from parquet.`/a/b`
select * from mycat.a.b
with b as (select 1 as id) select * from b
select a.b(1)
select * from a.b(1)
select * from `a.b`
set spark.sql.shuffle.partitions = 4
show functions
use catalog spark_catalog
select extract(year from a.b)
select trim(both from a.b)
select x is distinct from a.b
select date '2026-01-01'
/* from a.b */ select 1
-- from a.b
drop table if exists a.b
truncate table a.b
describe extended a.b
describe a.b
show create table a.b
show columns in a.b
show columns from b from a
show tables from a
alter table a.b rename to a.z
alter table a.b add column x int
refresh table a.b
analyze table a.b compute statistics
delete from a.b where a.b.id = 1
update a.b set x = 1
insert into a.b values (1, 2)
insert into a.b (x, y) values (1, 'from a.c')
insert overwrite table a.b partition (x = 1) select 1
create table a.b (id int) using hudi
create table a.b using hudi as select 1 as id
comment on table a.b is 'x'
comment on column a.b.id is 'x'
call show_commits(table => 'a.b')
""".strip("\n").split("\n")

REFUSED = {
    "select * from identifier('a.b')": "IDENTIFIER",
    "select * from a.b, identifier(:name) t": "IDENTIFIER",
    "insert into identifier('a.b') select * from a.c": "IDENTIFIER",
    "execute immediate 'select * from a.b'": "EXECUTE IMMEDIATE",
    "begin execute immediate 'select 1'; end": "EXECUTE IMMEDIATE",
    "select * from ${schema}.b": "${",
    "select * from a.b where x = ${y}": "${",
    "select * from a.b with ('k' = 'v')": "WITH",
    "select * from a.b watermark ts delay of interval 1 minute": "WATERMARK",
    "select * from stream a.b": "STREAM",
    "select * from stream(a.b)": "STREAM",
    "select * from a.b timestamp as of (select max(ts) from a.c)": "sub-query",
    "select * from a.b timestamp as of coalesce((select max(ts) from a.c), current_date())": "sub-query",
    "select * from a.b timestamp as of ? - interval 1 day": "without a name",
    "select * from a.b version as of concat('1', '2')": "only a literal",
    "select * from a.b version as of :v": "only a literal",
    "select * from hudi_table_changes('a.b', 'latest_state')": "takes",
    "select * from hudi_table_changes('a.b', 'other', 'earliest')": "'other'",
    "select * from hudi_table_changes('a.b', concat('latest', '_state'), 'earliest')": "the mode concat('latest', '_state')",
    "select * from hudi_table_changes(concat('a', '.b'), 'latest_state', 'earliest')": "no table name",
    "select * from hudi_table_changes('a.b', 'latest_state', (select max(ts) from a.c))": "sub-query",
    "select * from hudi_table_changes('a.b', 'latest_state', 'earliest', ? - interval 1 day)": "without a name",
    "select * from hudi_read_optimized('a.b', (select max(ts) from a.c))": "sub-query",
    "select * from hudi_table_changes('a.b', 'latest_state', current_date(": "closing parenthesis",
    "select * from hudi_table_changes('select 1', 'latest_state', 'earliest')": "no table name",
    "select * from a.b where x = 'open": "not closed",
    "select * from a.b /* open": "not closed",
    "select * from a.b where `x = 1": "not closed",
}
