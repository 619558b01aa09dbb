"""Statements that change rows, and the query of plain Spark over `before` (the rows as they were) that has the rows afterwards.

Written over a target {t} of the columns (id int, x int, s string, day string, st struct<f: int, g: string>, xs array<int>, ts bigint), and
`src` of (id int, x int, s string, day string, st struct<f: int, g: string>, xs array<int>, ts bigint), a temporary view with other rows.
"""

from __future__ import annotations

ALL = "id, x, s, day, st, xs, ts"

CONDITIONS = {
    "a comparison": "x > 20",
    "a key": "id = 2",
    "several keys": "id in (1, 3, 99)",
    "nothing": "id = 1234",
    "everything": "true",
    "a partition": "day = '2026-01-02'",
    "partitions": "day between '2026-01-01' and '2026-01-02' and x <> 10",
    "null": "s is null",
    "not null": "s is not null and s like 'b%'",
    "three values": "not (x > 20)",
    "or": "x = 10 or day = '2026-01-03' or s = 'nobody'",
    "a field": "st.f >= 2",
    "a struct": "st = named_struct('f', 1, 'g', 'one')",
    "an item": "get(xs, 0) = 2 and size(xs) > 1",
    "a function": "length(coalesce(s, '')) = 3",
    "an escape": r"s rlike '^b\\w+$'",
    "a case": "case when x is null then true else x % 20 = 0 end",
    "a sub-query": "id in (select id from src)",
    "no sub-query": "id not in (select id from src where id is not null)",
    "a scalar": "x >= (select max(x) from src where day = '2026-01-01')",
    "exists": "exists (select 1 from src where src.id = {q}.id)",
    "not exists": "not exists (select 1 from src where src.id = {q}.id and src.x > 100)",
    "its own rows": "x = (select max(x) from {own})",
    "null safe": "s <=> null",
}

ASSIGNMENTS = {
    "a literal": {"x": "7"},
    "itself": {"x": "x + 1", "s": "concat(s, '!')"},
    "null": {"s": "null", "st": "null"},
    "each other": {"x": "length(s)", "s": "cast(x as string)"},
    "a cast": {"x": "'12'", "ts": "cast(coalesce(x, 0) as bigint) + 100"},
    "a case": {"s": "case when x > 20 then 'big' when x is null then s else 'small' end"},
    "an array": {"xs": "array_append(coalesce(xs, array()), id)"},
    "a struct": {"st": "named_struct('f', x, 'g', s)"},
    "the partition": {"day": "'2026-01-03'"},
    "a scalar": {"x": "(select count(*) from src)"},
}

NESTED_ASSIGNMENTS = {
    "a field": ("st.f = 9", "named_struct('f', 9, 'g', st.g)"),
    "a field of itself": ("st.f = st.f + x", "named_struct('f', st.f + x, 'g', st.g)"),
    "both fields": ("st.f = id, st.g = 'new'", "named_struct('f', id, 'g', 'new')"),
    "a field, qualified": ("{q}.st.g = upper({q}.s)", "named_struct('f', st.f, 'g', upper(s))"),
}


def updates() -> dict[str, tuple[str, str]]:
    """Each condition with the plainest assignment, each assignment with a condition."""
    pairs = [(name, condition, "itself", ASSIGNMENTS["itself"]) for name, condition in CONDITIONS.items()]
    pairs += [("a comparison", CONDITIONS["a comparison"], name, given) for name, given in ASSIGNMENTS.items()]
    pairs += [("everything", "", name, given) for name, given in ASSIGNMENTS.items()]
    made = {}
    for where, condition, what, given in pairs:
        text = f"update {{t}} set {', '.join(f'{column} = {value}' for column, value in given.items())}"
        text += f" where {condition}" if condition else ""
        made[f"update {what} where {where}"] = (_over(text, "{n}", "{t}"), _updated(condition or "true", given))
    for what, (assigned, value) in NESTED_ASSIGNMENTS.items():
        for alias in ("", " as u"):
            text = f"update {{t}}{alias} set {assigned} where x > 10"
            made[f"update {what}{alias}"] = (_over(text, "u" if alias else "{n}", "{t}"), _updated("x > 10", {"st": value}))
    return made


def _updated(condition: str, given: dict[str, str]) -> str:
    kinds = {"x": "int", "ts": "bigint", "s": "string", "st": "struct<f: int, g: string>", "xs": "array<int>", "day": "string"}
    condition = _over(condition, "before", "before")
    columns = [
        f"if({condition}, cast({given[name]} as {kinds[name]}), {name}) as {name}" if name in given else name for name in ALL.split(", ")
    ]
    return f"select {', '.join(columns)} from before"


def deletes() -> dict[str, tuple[str, str]]:
    made = {}
    for name, condition in CONDITIONS.items():
        kept = f"select {ALL} from before where not coalesce(({_over(condition, 'before', 'before')}), false)"
        made[f"delete {name}"] = (_over(f"delete from {{t}} where {condition}", "{n}", "{t}"), kept)
    aliased = "delete from {t} as d where d.x > 20 and exists (select 1 from src s where s.id = d.id)"
    kept = f"select {ALL} from before where not coalesce(x > 20 and exists (select 1 from src s where s.id = before.id), false)"
    made["delete with an alias"] = (aliased, kept)
    made["truncate"] = ("truncate table {t}", f"select {ALL} from before where false")
    return made


def _over(text: str, name: str, own: str) -> str:
    return text.replace("{q}", name).replace("{own}", own)


INSERTS = {
    "values": (
        "insert into {t} values (90, 1, 'n', '2026-01-01', null, array(1), 1)",
        "select 90, 1, 'n', '2026-01-01', null, array(1), 1L",
    ),
    "values, two": (
        "insert into {t} (id, day, ts) values (90, '2026-01-05', 1), (91, '2026-01-01', 2)",
        "select 90, null, null, '2026-01-05', null, null, 1L union all select 91, null, null, '2026-01-01', null, null, 2L",
    ),
    "a query": ("insert into {t} select * from src where id > 50", f"select {ALL} from src where id > 50"),
    "a cast": (
        "insert into {t} (ts, id, x, day) select '5', 92L, '17', date'2026-01-01'",
        "select 92, 17, null, '2026-01-01', null, null, 5L",
    ),
    "by name": (
        "insert into {t} by name select 1L as ts, 'q' as s, 93 as id, '2026-01-09' as day, 3 as x, null as st, array(2) as xs",
        "select 93, 3, 'q', '2026-01-09', null, array(2), 1L",
    ),
    "a CTE before": ("with q as (select id + 500 as id from {t}) insert into {t} (id, day, ts) select id, 'd', 1 from q",
                     "select id + 500, null, null, 'd', null, null, 1L from before"),
    "a CTE inside": ("insert into {t} (id, day, ts) with q as (select 94 as id) select id, 'd', 1 from q",
                     "select 94, null, null, 'd', null, null, 1L"),
    "a table": ("insert into {t} table src_far", f"select {ALL} from src_far"),
    "a union": ("insert into {t} (id, day, ts) select 95, 'd', 1 union all select 96, 'e', 1",
                "select 95, null, null, 'd', null, null, 1L union all select 96, null, null, 'e', null, null, 1L"),
    "itself": ("insert into {t} select id + 1000, x, s, day, st, xs, ts from {t}", "select id + 1000, x, s, day, st, xs, ts from before"),
    "nothing": ("insert into {t} select * from src where false", f"select {ALL} from before where false"),
    "a partition": (
        "insert into {t} partition (day = '2026-02-02') select 97, 1, 's', null, null, 1",
        "select 97, 1, 's', '2026-02-02', null, null, 1L",
    ),
    "identifier": ("insert into identifier('{t}') (id, day, ts) values (98, 'd', 1)", "select 98, null, null, 'd', null, null, 1L"),
    "from": ("from src insert into {t} select * where id > 50", f"select {ALL} from src where id > 50"),
}  # fmt: skip

OVERWRITES = {
    "the table": ("insert overwrite {t} select * from src", f"select {ALL} from src"),
    "the table by itself": ("insert overwrite table {t} select * from {t} where x > 10", f"select {ALL} from before where x > 10"),
    "a partition": (
        "insert overwrite {t} partition (day = '2026-01-01') select 90, 1, 'n', null, null, 1",
        f"select {ALL} from before where day <> '2026-01-01' union all select 90, 1, 'n', '2026-01-01', null, null, 1L",
    ),
    "where": (
        "insert into {t} replace where x > 20 select id + 600, 21, s, day, st, xs, ts from src",
        f"select {ALL} from before where not coalesce(x > 20, false) union all select id + 600, 21, s, day, st, xs, ts from src",
    ),
    "where a partition": (
        "insert into {t} replace where day = '2026-01-02' select 99, 1, 's', '2026-01-02', null, array(1), 1",
        f"select {ALL} from before where day <> '2026-01-02' union all select 99, 1, 's', '2026-01-02', null, array(1), 1L",
    ),
    "where, by nothing": (
        "insert into {t} replace where s is null select * from src where false",
        f"select {ALL} from before where s is not null",
    ),
    "a dropped partition": ("alter table {t} drop partition (day = '2026-01-01')", f"select {ALL} from before where day <> '2026-01-01'"),
    "a truncated partition": ("truncate table {t} partition (day = '2026-01-02')", f"select {ALL} from before where day <> '2026-01-02'"),
}

CLAUSES = {
    "update star": ("when matched then update set *", "src", None, None),
    "insert star": ("when not matched then insert *", None, "src", None),
    "both stars": ("when matched then update set * when not matched then insert *", "src", "src", None),
    "update some": (
        "when matched then update set x = t.x + s.x, s = upper(s.s)",
        "b.id, b.x + c.x, upper(c.s), b.day, b.st, b.xs, b.ts",
        None,
        None,
    ),
    "update a field": (
        "when matched then update set t.st.f = s.x, st.g = t.s",
        "b.id, b.x, b.s, b.day, named_struct('f', c.x, 'g', b.s), b.xs, b.ts",
        None,
        None,
    ),
    "delete": ("when matched then delete", "", None, None),
    "insert some": ("when not matched then insert (id, day, ts) values (s.id, s.day, s.ts + 1)", None,
                    "c.id, null, null, c.day, null, null, c.ts + 1", None),
    "by source deleted": ("when not matched by source then delete", None, None, ""),
    "by source updated": (
        "when not matched by source then update set s = 'alone'",
        None,
        None,
        "b.id, b.x, 'alone', b.day, b.st, b.xs, b.ts",
    ),
    "all three": (
        "when matched then update set s = s.s when not matched then insert * when not matched by source then delete",
        "b.id, b.x, c.s, b.day, b.st, b.xs, b.ts",
        "src",
        "",
    ),
    "a condition": (
        "when matched and s.x > 20 then delete when matched then update set x = s.x",
        "b.id, c.x, b.s, b.day, b.st, b.xs, b.ts | not coalesce(c.x > 20, false)",
        None,
        None,
    ),
    "several updates": (
        "when matched and t.x > 20 then update set s = 'big' when matched and t.x = 20 then update set s = t.s, x = 0"
        " when matched then update set s = 'rest'",
        "b.id, if(b.x = 20, 0, b.x), case when b.x > 20 then 'big' when b.x = 20 then b.s else 'rest' end, b.day, b.st, b.xs, b.ts",
        None,
        None,
    ),
    "several inserts": (
        "when not matched and s.id = 77 then insert (id, day, ts, s) values (s.id, s.day, s.ts, 'first')"
        " when not matched and s.x > 30 then insert (id, day, ts, s) values (s.id, 'other', s.ts, s.s)",
        None,
        "c.id, null, if(c.id = 77, 'first', c.s), if(c.id = 77, c.day, 'other'), null, null, c.ts | c.id = 77 or c.x > 30",
        None,
    ),
    "several by source": (
        "when not matched by source and t.x > 20 then delete when not matched by source and t.x is null then update set x = 0",
        None,
        None,
        "b.id, coalesce(b.x, 0), b.s, b.day, b.st, b.xs, b.ts | not coalesce(b.x > 20, false)",
    ),
    "what never is": ("when matched and 1 = 2 then delete when not matched and null then insert *", None, "src | false", None),
    "some inserts": ("when not matched by target and length(s.s) > 0 then insert *", None, "src | length(c.s) > 0", None),
}  # fmt: skip
"""Clauses, and what they make of a matched row (b: before, c: source), a source row alone, a stored row alone: "" deletes, None leaves.

What is behind `|` is true of the rows that are there then.
"""

KEYS = {
    "the key": "t.id = s.id",
    "the key, turned round": "s.id = t.id",
    "the key as text": "cast(t.id as string) = cast(s.id as string)",
    "a null-safe key": "t.id <=> s.id",
    "an expression": "t.id + 0 = s.id",
}
LESS = {
    "the key and a partition": "t.id = s.id and t.day = '2026-01-02'",
    "the key and both sides": "t.id = s.id and s.x > 20 and t.x is not null",
    "the key and a text": "t.id = s.id and t.s is not null",
    "nothing": "t.id = s.id and t.id > 1000",
}
"""Less than the key's equality: a row that is inserted then takes the place of the stored one of its key, which no query says."""


def merges() -> dict[str, tuple[str, str]]:
    made = {}
    for on_name, on in {**KEYS, **LESS}.items():
        for name, (clauses, matched, lonely, stored) in CLAUSES.items():
            if on_name in LESS and lonely is not None:
                continue
            condition = on.replace("t.", "b.").replace("s.", "c.")
            alone = f"not exists (select 1 from src c where {condition})"
            parts = []
            if matched != "":
                columns, where = _made(matched, "c" if matched == "src" else "b")
                parts.append(f"select {columns} from before b join src c on {condition} where {where}")
            if stored != "":
                columns, where = _made(stored, "b")
                parts.append(f"select {columns} from before b where {alone} and {where}")
            if lonely is not None:
                columns, where = _made(lonely, "c")
                parts.append(f"select {columns} from src c where not exists (select 1 from before b where {condition}) and {where}")
            text = f"merge into {{t}} as t using src as s on {on} {clauses}"
            made[f"merge on {on_name}, {name}"] = (text, " union all ".join(parts))
    return made


def _made(said: str | None, side: str) -> tuple[str, str]:
    """Columns, and the condition that they come with."""
    columns, _, where = (said or "").partition(" | ")
    return (_row(side) if columns in ("", "src") else columns), f"({where or 'true'})"


def _row(side: str) -> str:
    return ", ".join(f"{side}.{name}" for name in ALL.split(", "))


def with_own(cases: dict[str, tuple[str, str]], what: str, keeps: bool) -> dict[str, tuple[str, str]]:
    kept = f"select {ALL} from before union all " if keeps else ""
    return {f"{what} {name}": (text, kept + wanted) for name, (text, wanted) in cases.items()}


CHANGES = {
    **updates(),
    **deletes(),
    **with_own(INSERTS, "insert", True),
    **with_own(OVERWRITES, "overwrite", False),
    **merges(),
}
