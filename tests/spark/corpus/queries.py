"""Queries as people write them, over a.b, a.c and d.b.

Their columns are (id int, x int, y int, ts timestamp, s string, xs array<int>, m map<string, int>, st struct<z: int>). Each has one answer
whatever the order of its rows: no LIMIT without an order that tells rows apart, nothing random.
"""

from __future__ import annotations

WRITTEN = r"""
select * from a.b where id = 1
select id, x + y as z from a.b where x + y > 20 order by z
select distinct x % 20 from a.b
select b.* except (ts, m) from a.b
select a.b.* except (ts) from a.b
select id as b, x as a from a.b where b.id > 1
select count(*), count(x), count(distinct x), sum(x), avg(y), min(ts), max(s) from a.b
select x % 20 as k, count(*) from a.b group by x % 20
select x % 20 as k, count(*) from a.b group by k having count(*) > 1
select x % 20 as k, count(*) from a.b group by 1 order by 2 desc, 1
select s, x, count(*) from a.b group by all
select s, x, sum(y) from a.b group by rollup (s, x)
select s, x, sum(y) from a.b group by cube (s, x)
select s, x, sum(y), grouping_id() from a.b group by grouping sets ((s), (x), ())
select s, grouping(s), sum(y) from a.b group by s with rollup
select count(*) filter (where x > 20), sum(y) filter (where s <> 's1') from a.b
select max_by(s, x), min_by(s, x), any_value(1) from a.b
select sort_array(collect_list(x)), sort_array(collect_set(x % 20)) from a.b
select percentile(x, 0.5), median(x), stddev(x), variance(x) from a.b
select approx_count_distinct(x), bool_and(x > 0), bool_or(x > 40), every(id > 0) from a.b
select listagg(s, ',') within group (order by s) from a.b
select string_agg(s, '-') within group (order by s desc) from a.b
select mode(x % 20, true), kurtosis(x), skewness(x), corr(x, y) from a.b
select id, rank() over (order by x % 20) from a.b
select id, dense_rank() over (partition by x % 20 order by id) from a.b
select id, lag(x) over (order by id), lead(x, 2, -1) over (order by id) from a.b
select id, sum(x) over (order by id rows between 1 preceding and current row) from a.b
select id, sum(x) over (order by x range between 10 preceding and 10 following) from a.b
select id, first_value(s) over w, last_value(s) over w, nth_value(s, 2) over w from a.b window w as (partition by x % 20 order by id)
select id, ntile(2) over (order by id), percent_rank() over (order by id), cume_dist() over (order by id) from a.b
select id, avg(x) over () from a.b qualify row_number() over (order by id desc) <= 2
select * from (select id, row_number() over (partition by x % 20 order by id desc) as n from a.b) where n = 1
select id, sum(sum(x)) over (order by id) from a.b group by id
select id, count(*) over (partition by b.st.z % 2) from a.b
select id from a.b where id in (1, 3, 5)
select id from a.b where id not in (1, 3)
select id from a.b where id between 2 and 4
select id from a.b where id not between 2 and 4
select id from a.b where s like 's_'
select id from a.b where s not like '%1'
select id from a.b where s ilike 'S%' and s rlike '[1-3]'
select id from a.b where s like any ('s1', 's2%')
select id from a.b where s like all ('s%', '%2')
select id from a.b where s regexp '\\d'
select id from a.b where s rlike r'\d$'
select regexp_replace(s, '(\\w)(\\d)', '$2$1') from a.b
select regexp_extract(s, 's(\\d+)', 1), regexp_extract_all(s, '(\\d)', 1), regexp_count(s, '\\d'), regexp_instr(s, '\\d') from a.b
select regexp_substr(s, r'\d+'), split(s, '\\d'), s rlike '\\' || 'd' from a.b
select s like 's\\_%', s like 's#_' escape '#', replace(s, '\\', '/'), 'a\tb' = concat('a', chr(9), 'b') from a.b
select 'it''s', "it's", 'a\'b', '\u0041', r'\n', id from a.b
select id from a.b where x is null or x is not null
select id from a.b where x is distinct from 10
select id from a.b where x is not distinct from 10
select id from a.b where x <=> 10 and not x <=> null
select id from a.b where (x > 10 and y > 10) or not (id > 2)
select id from a.b where not exists (select 1 from a.c where a.c.id = a.b.id)
select id from a.b where x > (select avg(x) from a.b)
select id from a.b where (id, x) in (select id, x from a.c)
select id from a.b where id in (select id from a.c union all select id from d.b where id > 3)
select id from a.b where id in (with q as (select id from a.c) select id from q)
select id from a.b where exists (select 1 from a.c join d.b using (id) where a.c.id = a.b.id)
select id from a.b o where exists (select 1 from a.b i where i.x = o.x and i.id <> o.id)
select id from a.b where id = (select max(id) from a.c where a.c.x <= a.b.x)
select id, (select count(*) from a.c where a.c.id <= a.b.id) as n from a.b
select id, (select max(d.b.x) from d.b where d.b.id = a.b.id) as m, a.b.x from a.b
select (select count(*) from a.b) + (select count(*) from a.c) as n
select id, exists (select 1 from a.c where a.c.id = a.b.id) as e from a.b
select id, id in (select id from a.c) as e from a.b
select case when id in (select id from a.c) then 'both' else 'one' end, id from a.b
select coalesce((select max(x) from a.c where id > 100), -1)
select case x when 10 then 'ten' when 20 then 'twenty' end, id from a.b
select if(x > 20, 'big', 'small'), nvl(null, x), nullif(x, 10), nvl2(null, 1, id), greatest(x, y), least(x, y) from a.b
select id, cast(x as string), cast(s as binary), cast(x as decimal(10, 2)) / 3, x :: bigint, try_cast(s as int) from a.b
select id, x / 3, x div 3, x % 3, -x, +x, ~x, x & 3, x | 3, x ^ 3, x << 1, x >> 1 from a.b
select round(x / 7, 2), ceil(x / 7), floor(x / 7), abs(-x), power(x, 2), sqrt(x), sign(x), mod(x, 7), pmod(-x, 7) from a.b
select upper(s), lower(s), initcap(s), length(s), reverse(s), trim(s), lpad(s, 5, '*'), rpad(s, 5, '-'), repeat(s, 2) from a.b
select substring(s, 1, 1), substring(s from 2), substr(s, -1), left(s, 1), right(s, 1), position('1' in s), locate('s', s), instr(s, '1') from a.b
select trim(both 's' from s), trim(leading 's' from s), trim(trailing '1' from s), overlay(s placing 'X' from 1), translate(s, 's', 'S') from a.b
select concat(s, '-', x), concat_ws('/', s, x, null), s || x, format_string('%s-%d', s, x), md5(s), sha2(s, 256), hash(s, x) from a.b
select split(s, '')[0], split_part('a-b-c', '-', id), ascii(s), char_length(s), soundex(s), levenshtein(s, 's1') from a.b
select year(ts), month(ts), day(ts), hour(ts), minute(ts), dayofweek(ts), date_trunc('month', ts), to_date(ts), date_format(ts, 'yyyy-MM-dd HH') from a.b
select extract(year from ts), extract(second from ts), date_part('day', ts), ts + interval 1 day, ts - interval '2' hours, datediff(ts, date '2025-12-31') from a.b
select date_add(to_date(ts), id), add_months(ts, 1), last_day(ts), trunc(ts, 'YEAR'), months_between(ts, timestamp '2025-01-01') from a.b
select unix_timestamp(ts), from_unixtime(0), to_timestamp('2026-01-01 00:00:00'), make_date(2026, 1, id), timestampadd(hour, id, ts), timestampdiff(hour, ts, ts) from a.b
select ts between timestamp '2026-01-01' and timestamp '2026-01-03', ts > '2026-01-02', to_date(ts) = date '2026-01-02' from a.b
select id from a.b where ts >= timestamp '2026-01-03' and ts < date '2026-01-05'
select xs[0], xs[1], element_at(xs, -1), size(xs), array_contains(xs, 2), sort_array(xs, false), array_max(xs), array_sum from (select *, aggregate(xs, 0, (acc, e) -> acc + e) as array_sum from a.b)
select transform(xs, e -> e * 2), filter(xs, e -> e > 2), exists(xs, e -> e = 2), forall(xs, e -> e > 0), zip_with(xs, xs, (l, r) -> l + r) from a.b
select transform(xs, (e, i) -> e + i + a.b.id), aggregate(xs, 0, (a, e) -> a + e, a -> a * 10) from a.b
select array_distinct(concat(xs, xs)), array_union(xs, array(9)), array_except(xs, array(id)), slice(xs, 1, 1), flatten(array(xs, xs)), array_join(xs, ',') from a.b
select m['k'], m.k, element_at(m, 'k'), map_keys(m), map_values(m), map_contains_key(m, 'k'), cardinality(m) from a.b
select transform_values(m, (k, v) -> v + 1), transform_keys(m, (k, v) -> upper(k)), map_filter(m, (k, v) -> v > 1), map_concat(m, map('j', 1)) from a.b
select st.z, b.st.z, a.b.st.z, st.* from a.b
select struct(id, x), named_struct('i', id, 'st', st), struct(st.z as zz).zz, (id, x) from a.b
select id from a.b where st = named_struct('z', 2)
select id from a.b where st <> named_struct('z', 2) and struct(id, x) = struct(3, 30)
select id from a.b where st > named_struct('z', 2) and st <= named_struct('z', 4)
select id from a.b where (id, x) = (2, 20)
select id from a.b where st in (named_struct('z', 1), named_struct('z', 3))
select st, count(*) from a.b group by st
select xs, count(*) from a.b group by xs
select distinct st from a.b union select st from a.c
select max(st), min(st), max(xs) from a.b
select b.id, c.id from a.b join a.c on b.st = c.st
select b.id, c.id from a.b join a.c on struct(b.id, b.x) = struct(c.id, c.x)
select id, st from a.b order by st desc, id limit 2
select to_json(st), to_json(m), from_json('{"z": 1}', 'z int').z, get_json_object('{"a": {"b": 2}}', '$.a.b') from a.b
select schema_of_json('{"a": 1}'), json_array_length('[1, 2]'), id from a.b
select parse_json('{"a": 1}'):a :: int, id from a.b
select explode(xs) from a.b
select id, explode(xs) as e from a.b
select id, posexplode(xs) as (p, e) from a.b
select id, explode(m) as (k, v) from a.b
select id, inline(array(st)) from a.b
select id, stack(2, 'x', x, 'y', y) as (k, v) from a.b
select id, e from a.b lateral view explode(xs) t as e
select id, e, k, v from a.b lateral view explode(xs) t as e lateral view explode(m) u as k, v
select id, e from a.b lateral view outer explode(array_remove(xs, id)) t as e where e is null or e > 2
select b.id, t.e from a.b b lateral view explode(b.xs) t as e where t.e in (select id from a.c)
select id, e from a.b, lateral explode(xs) as t(e)
select id, e from a.b, lateral (select explode(xs) as e)
select id, t.* from a.b, lateral (select a.b.x + 1 as p, a.b.y + 1 as q) t
select b.id, l.n from a.b left join lateral (select count(*) as n from a.c where a.c.id >= b.id) l
select id, col from a.b join lateral explode(b.xs) where col > 2
select * from range(3) r join a.b on r.id = a.b.id
select * from values (1, 'one'), (2, 'two') as v(id, w) join a.b using (id)
select * from a.b pivot (max(y) as my, min(y) as mn for x in (10 as ten, 20 as twenty))
select * from (select id % 2 as k, x, y from a.b) pivot (sum(y) for x in (10, 20, 30))
select * from (select id, x, y from a.b) unpivot (v for k in (x, y))
select * from (select id, x, y from a.b) unpivot include nulls (v for k in (x as ex, y as why))
select id, x from a.b union select id, x from a.c
select id, x from a.b union all select id, x from a.c union all select id, x from d.b
select id from a.b intersect select id from a.c
select id from a.b except all select id from a.c
(select id from a.b union select id from a.c) minus select id from d.b where id > 2
select id from a.b intersect select id from a.c union select id from d.b
select * from (select id from a.b union all select id from a.c) order by id desc limit 3
with t as (select * from a.b where x > 10) select count(*) from t
with t as (select id from a.b), u as (select id from t where id > 1) select * from u union all select * from t
with t as (select id from a.b) select * from t x join t y on x.id = y.id + 1
with b as (select id from a.b where id > 2) select * from b
with a as (select 1 as id) select * from a join a.b using (id)
with t(i, j) as (select id, x from a.b) select i + j from t
with t as (with u as (select id from a.b) select id + 1 as id from u) select * from t
with recursive t(n) as (select min(id) from a.b union all select n + 1 from t where n < (select max(id) from a.b)) select * from t
select * from (with t as (select id from a.b) select * from t) q join a.c using (id)
from a.b select id where x > 10
from a.b b join a.c c on b.id = c.id select b.id, c.x
from a.b |> where x > 10 |> select id, x |> order by id
from a.b |> aggregate sum(x) as sx group by x % 20 as k |> where sx > 10
from a.b |> extend x + y as z |> set x = 0 |> drop ts |> select id, x, z
from a.b |> join a.c using (id) |> select id
from a.b |> as t |> where t.id > 1 |> union all (select * from a.c) |> select id
table a.b
table a.b |> where id = 1
select id from a.b order by id desc nulls last limit 2 offset 1
select id from a.b order by x % 20, id limit 3
select id, x from a.b order by all
select id from a.b sort by id
select id from a.b distribute by x sort by id
select id from a.b cluster by x
select /*+ broadcast(c) */ b.id from a.b b join a.c c on b.id = c.id
select /*+ merge(a.b) */ a.b.id from a.b join a.c on a.b.id = a.c.id
select /*+ repartition(2) */ id from a.b
select /*+ coalesce(1), shuffle_hash(b) */ b.id from a.b join a.c using (id)
select id from a.b where 'a.b' = 'a.b' and s <> 'a.b'
select `id`, `b`.`x`, `a`.`b`.`y` from `a`.`b`
select B.ID, A.B.X from A.B
SELECT a.B.id FROM A.b WHERE A.B.X > 10
select id id, x x from a.b b
select b.id from a.b as b where b.id = 1
select a.id from a.b as a where a.x = 10
select x.id from a.b x, a.c y, d.b z where x.id = y.id and y.id = z.id
select spark_catalog.a.b.id from spark_catalog.a.b
select a.b.id, c.id from spark_catalog.a.b, a.c where a.b.id = c.id
select sum(a.b.x * a.c.x) from a.b, a.c where a.b.id = a.c.id group by a.b.id
select max(x) over (partition by a.b.id) from a.b
select id, a.b.x as `a.b.x` from a.b order by `a.b.x` desc
select count(distinct a.b.x, a.b.y) from a.b
select count(distinct struct(id, x)) from a.b
select t.id from (select a.b.id from a.b where a.b.x > 10) t where t.id < 4
select t.n from (select count(*) as n, x % 20 as k from a.b group by x % 20) t where t.k = 0
select u.id from (select * from (select * from a.b) t) u
select id from (select id, x as y from a.b) where y > 20
select id from (select id, x from a.b union all select id, y from a.b) where x > 20
select id from (select id, max(x) as x from a.b group by id) where id > 2 and x > 10
select id from (select id, x from a.b order by id limit 3) where x > 10
select id from (select id, row_number() over (order by id) as r from a.b) where id > 2 and r > 2
select id from (select distinct id, x from a.b) where id = 2
select t.id, t.e from (select id, explode(xs) as e from a.b) t where t.id > 2 and t.e > 3
select b.id, c.id from a.b left join a.c on b.id = c.id where c.id is null
select b.id, c.id from a.b left join a.c on b.id = c.id and c.x > 10 where b.x > 10
select b.id, c.id from a.b full join a.c on b.id = c.id where coalesce(b.id, c.id) > 1
select b.id, c.id from a.b right join a.c on b.id = c.id where b.id > 1
select id from a.b where x > 10 and id in (select id from a.c where x > 10) and exists (select 1 from d.b where d.b.x > a.b.x)
select id from a.b where true and 1 = 1 and id > 0
select id from a.b where false or id = 1
select id from a.b where x > '10'
select id from a.b where x = 10.0 or x = 2e1
select id from a.b where id = 1 or (id = 2 and (x = 20 or y = 0))
select id from a.b where id <> 1 and id != 2 and not id = 3 and !(id = 4)
select id from a.b where array_contains(xs, 3) or m['k'] = 1
select try_divide(x, 0), try_add(x, 1), try_element_at(xs, 9), x from a.b
select typeof(id), typeof(xs), typeof(st), typeof(ts), id from a.b
select equal_null(x, 10), isnull(x), isnotnull(x), ifnull(null, s), zeroifnull(null), decode(x, 10, 'a', 'b') from a.b
select any_value(id) from a.b where id = 1
select bit_and(x), bit_or(x), bit_xor(x), count_if(x > 20), sum(distinct x % 20) from a.b
select width_bucket(x, 0, 50, 5), conv(id, 10, 2), bin(id), hex(s), unhex(hex(s)), base64(cast(s as binary)) from a.b
select sequence(1, id), array_repeat(id, 2), arrays_zip(xs, xs), map_from_arrays(array('a'), array(id)), shuffle_free from (select *, 1 as shuffle_free from a.b)
select sum(x) as x from a.b having sum(x) > 0
select x % 20 as x, count(*) c from a.b group by 1 having c >= 1 order by c, x
select id, lateral_alias * 2 from (select id, x as lateral_alias from a.b)
select x as p, p + 1 as q, q * 2 from a.b
select id, b.x, c.x from a.b join a.c using (id) where b.x = c.x
select id, c.s from a.b full outer join a.c using (id)
select id from a.b semi join d.b using (id)
select id from a.b anti join a.c using (id) where id > 3
select collect_list(id) over (order by id rows between unbounded preceding and 1 preceding) from a.b
select a.b.id, inner_b.id from a.b, (select * from d.b) inner_b where a.b.id = inner_b.id
select b.id from a.b where b.id = (select b.id from d.b where b.id = 2)
select id from a.b where s = (select max(s) from a.c where a.c.st.z = a.b.st.z)
select m.k, st.z, xs[st.z] from a.b where st.z = 1
select timestamp '2026-01-01 00:00:00' as t, date '2026-01-01' d, interval 1 day i, x'41' h, 1.5bd n, 1e3 f, 10L l, id from a.b
""".strip("\n").split("\n")  # noqa: E501 - a statement a line

_JOINS = (
    *("join", "inner join", "left join", "left outer join", "right join", "full outer join"),
    *("left semi join", "left anti join", "cross join"),
)
_SIDES = (
    ("a.b", "a.c", "a.b.id", "a.c.id"),
    ("a.b l", "a.c r", "l.id", "r.id"),
    ("a.b as `l x`", "(select * from a.c) r", "`l x`.id", "r.id"),
    ("(select id, x from a.b where x > 10) l", "d.b", "l.id", "d.b.id"),
    ("a.b", "d.b", "a.b.id", "d.b.id"),
)
_LOWER = ("x > 10", "id in (1, 2)", "id is null")


def joins() -> list[str]:
    """Every kind of join with every way to name its sides, and a condition above it on what is left or right of it."""
    made = []
    for join in _JOINS:
        one_side = join.endswith(("semi join", "anti join"))
        for number, (left, right, own, other) in enumerate(_SIDES):
            columns = own if one_side else f"{own}, {other}"
            on = "" if join == "cross join" else f" on {own} = {other}"
            made.append(f"select {columns} from {left} {join} {right}{on}")
            lower = _LOWER[number % len(_LOWER)]
            above = f"{own.rpartition('.')[0]}.{lower}"
            made.append(f"select {columns} from {left} {join} {right}{on} where {above}")
    return made


QUERIES = [*WRITTEN, *joins()]
