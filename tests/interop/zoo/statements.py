"""Tables made by SQL, and by the DataFrame writer's operations, with the defaults of either."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from tests.interop.zoo.kind import FAST, HISTORY, KEYS, MOR, PARTITIONED, VALIDATION, Kind, Write, history, sql
from tests.interop.zoo.rows import PLAIN

COLUMNS = "id string, ts bigint, name string, n int, amount decimal(10,2), day date, at timestamp, part string"


def literal(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, datetime):
        return f"timestamp'{value:%Y-%m-%d %H:%M:%S.%f}Z'"
    if isinstance(value, date):
        return f"date'{value}'"
    return f"cast({value} as decimal(10,2))" if isinstance(value, Decimal) else repr(value)


def values(numbers: Sequence[int], seed: int, leave_out: Sequence[str] = ()) -> str:
    """A query that gives the rows, in the order of `COLUMNS`."""
    rows = PLAIN.batch(numbers, seed).drop_columns(list(leave_out)).to_pylist()
    texts = ", ".join(f"({', '.join(literal(value) for value in row.values())})" for row in rows)
    return f"select * from values {texts} as rows({', '.join(rows[0])})"


def typed(query: str) -> str:
    """A query's columns in the types of `COLUMNS`, which its literals need not have."""
    casts = (part.split(maxsplit=1) for part in re.split(r", (?=[a-z])", COLUMNS))
    return f"select {', '.join(f'cast({name} as {kind}) as {name}' for name, kind in casts)} from ({query})"


def told(properties: str) -> str:
    """Hudi 1.x takes the version of a table that SQL creates from the table's properties only."""
    return f"tblproperties ({properties}{', ' if properties else ''}hoodie.write.table.version = '6')"


def created(properties: str, partitioned: str = "partitioned by (part)", columns: str = COLUMNS) -> str:
    return f"create table {{t}} ({columns}) using hudi {told(properties)} {partitioned} location '{{path}}'"


def inserted(numbers: Sequence[int], seed: int) -> str:
    return f"insert into {{t}} {values(numbers, seed)}"


KEYED = "primaryKey = 'id', preCombineField = 'ts'"
KEYED_MOR = f"{KEYED}, type = 'mor'"
CHANGED = ("update {t} set name = 'updated', ts = 120 where id in ('k02', 'k05')", "delete from {t} where id = 'k07'")
BEGUN = sql(created(KEYED), inserted(range(8), 0), inserted(range(8, 10), 1), *CHANGED)
MERGED = (
    f"merge into {{t}} using ({values(range(4, 12), 1)}) s on {{t}}.id = s.id and {{t}}.part = s.part"
    " when matched and s.id = 'k05' then delete when matched then update set * when not matched then insert *"
)
PARTLY = (
    f"merge into {{t}} using ({values(range(2, 6), 2)}) s on {{t}}.id = s.id and {{t}}.part = s.part"
    " when matched then update set id = s.id, name = concat(s.name, '!'), ts = s.ts"
)


def of_sql(name: str, shown: str, *statements: str, **more: Any) -> Kind:
    return Kind(name=f"sql-{name}", shown=f"SQL: {shown}", steps=(sql(*statements),), **more)


def of_frame(name: str, shown: str, *steps: Write, options: dict[str, str] | None = None, **more: Any) -> Kind:
    every = options or PARTITIONED
    return Kind(name=f"frame-{name}", shown=f"DataFrame: {shown}", steps=steps or history(every), options=every, **more)


KEYLESS_SQL = {"inserts_only": True, "deletes": False}
STRICT = {"hoodie.sql.insert.mode": "strict"}
SQL_FAST = {"conf": FAST, "options": FAST}
SQL_VALIDATED = {"conf": {**FAST, **VALIDATION}, "options": {**FAST, **VALIDATION}}
DROPPED_BY_015 = {
    "0.15.0": dict.fromkeys(
        ("snapshot", "incremental", "from_first"),
        "Hudi 0.15 stores the meta columns in the schema of the commit that drops a partition, and cannot read the table as of it",
    )
}
FULL = (created(KEYED), inserted(range(8), 0))

KINDS = (
    Kind(name="sql", shown="SQL: `create table`, `insert`, `update`, `delete`", steps=(BEGUN,)),
    of_sql("mor", "the same, merge-on-read", created(KEYED_MOR), *BEGUN.statements[1:]),
    of_sql("nonpartitioned", "without partitions", created(KEYED, ""), inserted(range(8), 0), *CHANGED, **SQL_FAST),
    of_sql("no-precombine", "without `preCombineField`", created("primaryKey = 'id'"), inserted(range(8), 0), *CHANGED, **SQL_FAST),
    of_sql(
        "no-precombine-mor",
        "without `preCombineField`, merge-on-read",
        created("primaryKey = 'id', type = 'mor'"),
        inserted(range(8), 0),
        *CHANGED,
        **SQL_FAST,
    ),
    of_sql("no-key", "without `primaryKey`", created(""), inserted(range(8), 0), inserted(range(4), 1), **KEYLESS_SQL, **SQL_FAST),
    of_sql(
        "no-key-mor", "without `primaryKey`, merge-on-read", created("type = 'mor'"), inserted(range(8), 0), **KEYLESS_SQL, **SQL_FAST
    ),
    of_sql("two-keys", "two key columns", created("primaryKey = 'id,day', preCombineField = 'ts'"), inserted(range(8), 0), **SQL_FAST),
    of_sql(
        "ctas",
        "`create table as select`",
        f"create table {{t}} using hudi {told(KEYED)} partitioned by (part) location '{{path}}' as {typed(values(range(8), 0))}",
        *CHANGED,
    ),
    of_sql(
        "ctas-mor",
        "`create table as select`, merge-on-read",
        f"create table {{t}} using hudi {told(KEYED_MOR)} location '{{path}}' as {typed(values(range(8), 0))}",
        *CHANGED,
        **SQL_FAST,
    ),
    of_sql("merge", "`merge into`", *FULL, MERGED, PARTLY),
    of_sql("merge-mor", "`merge into`, merge-on-read", created(KEYED_MOR), inserted(range(8), 0), MERGED),
    of_sql("insert-strict", "`hoodie.sql.insert.mode=strict`", *FULL, inserted(range(8, 10), 1), conf={**FAST, **STRICT}, options=FAST),
    of_sql(
        "insert-bulk",
        "`hoodie.spark.sql.insert.into.operation=bulk_insert`",
        *FULL,
        inserted(range(8, 10), 1),
        conf={**FAST, "hoodie.spark.sql.insert.into.operation": "bulk_insert"},
        options=FAST,
    ),
    of_sql(
        "insert-upsert",
        "`hoodie.spark.sql.insert.into.operation=upsert`",
        *FULL,
        inserted(range(4, 10), 1),
        conf={**FAST, "hoodie.spark.sql.insert.into.operation": "upsert"},
        options=FAST,
    ),
    of_sql(
        "overwrite-partition",
        "`insert overwrite ... partition`",
        *FULL,
        f"insert overwrite {{t}} partition (part = 'a') {values([2, 12], 1, ['part'])}",
        **SQL_FAST,
    ),
    of_sql("overwrite-table", "`insert overwrite`", *FULL, f"insert overwrite table {{t}} {values(range(3), 1)}", **SQL_FAST),
    of_sql(
        "drop-partition",
        "`alter table drop partition`",
        *FULL,
        "alter table {t} drop partition (part = 'b')",
        skip=DROPPED_BY_015,
        **SQL_FAST,
    ),
    of_sql("truncate", "`truncate table`", *FULL, "truncate table {t}", inserted(range(2), 1), **SQL_FAST),
    of_sql("empty", "an empty table", created(KEYED), **SQL_FAST),
    of_sql(
        "two-partitions",
        "two partition columns",
        created(KEYED, "partitioned by (day, part)"),
        inserted(range(8), 0),
        *CHANGED,
        **SQL_VALIDATED,
    ),
    of_frame("defaults", "`upsert` with all defaults"),
    of_frame("mor", "`upsert`, merge-on-read", options={**PARTITIONED, **MOR}),
    of_frame("nonpartitioned", "without partitions", options={**KEYS, **FAST}),
    of_frame("nonpartitioned-mor", "without partitions, merge-on-read", options={**KEYS, **MOR, **FAST}),
    of_frame("nothing-said", "no key, no partition", Write(range(8), 0, None), Write(range(4), 1, None), options=FAST, **KEYLESS_SQL),
    of_frame("bulk-insert", "`bulk_insert`", Write(range(8), 0, "bulk_insert"), Write(range(8, 12), 1, "bulk_insert")),
    of_frame(
        "bulk-insert-mor", "`bulk_insert`, merge-on-read", Write(range(8), 0, "bulk_insert"), options={**PARTITIONED, **MOR, **FAST}
    ),
    of_frame("deleted", "`delete`", *HISTORY, Write([1, 4], 2, "delete"), options={**PARTITIONED, **FAST}),
    of_frame("deleted-mor", "`delete`, merge-on-read", *HISTORY, Write([1, 4], 2, "delete"), options={**PARTITIONED, **MOR, **FAST}),
    of_frame(
        "overwritten", "`insert_overwrite`", *HISTORY, Write([2, 30], 2, "insert_overwrite"), options={**PARTITIONED, **FAST}
    ),
    of_frame(
        "overwritten-mor",
        "`insert_overwrite`, merge-on-read",
        *HISTORY,
        Write([2, 30], 2, "insert_overwrite"),
        options={**PARTITIONED, **MOR, **FAST},
    ),
    of_frame(
        "overwritten-table",
        "`insert_overwrite_table`",
        *HISTORY,
        Write([2, 31], 2, "insert_overwrite_table"),
        options={**PARTITIONED, **FAST},
    ),
    of_frame(
        "partition-deleted",
        "`delete_partition`",
        *HISTORY,
        Write([2], 2, "delete_partition", {"hoodie.datasource.write.partitions.to.delete": "b"}),
        options={**PARTITIONED, **FAST},
        skip=DROPPED_BY_015,
    ),
)
