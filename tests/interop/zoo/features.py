"""Schemas that changed, zones, log formats and the less usual table properties."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from tests.interop.zoo.kind import BOTH, FAST, HISTORY, MOR, PARTITIONED, Kind, Outcome, Step, Write, history, not_read, not_written, sql
from tests.interop.zoo.rows import PLAIN, Column
from tests.interop.zoo.statements import CHANGED, KEYED, created, inserted
from tests.support.readers import META_COLUMNS

RECONCILE = {"hoodie.datasource.write.reconcile.schema": "true"}
ADDED = PLAIN.but(extra=Column(pa.string(), lambda number, seed: f"x{number}-{seed}", since=1))
ADDRESS = pa.struct([("city", pa.string()), ("code", pa.list_(pa.int32()))])
PART = pa.struct([("a", pa.int32()), ("b", pa.string())])
NESTED = PLAIN.but(
    who=Column(ADDRESS, lambda number, seed: None if number % 4 == 1 else {"city": f"c{seed}", "code": [number, seed]}),
    tags=Column(pa.list_(pa.string()), lambda number, seed: [f"t{seed}"] * (number % 3)),
    counts=Column(pa.map_(pa.string(), pa.int64()), lambda number, seed: [(f"m{n}", seed) for n in range(number % 3)]),
    parts=Column(pa.list_(PART), lambda number, seed: [{"a": seed, "b": "p"}] * (number % 2)),
)
OTHER_TYPES = PLAIN.but(
    flag=Column(pa.bool_(), lambda number, seed: number % 2 == seed % 2),
    real=Column(pa.float32(), lambda number, seed: number / 8 + seed),
    wide=Column(pa.float64(), lambda number, seed: float("nan") if number == 2 else number / 3 + seed),
    raw=Column(pa.binary(), lambda number, seed: bytes([number, seed, 255])),
    large=Column(pa.decimal128(38, 10), lambda number, seed: None if number == 3 else number * seed),
)


def of_feature(name: str, shown: str, *steps: Step, options: dict[str, str] | None = None, **more: Any) -> Kind:
    every = {**PARTITIONED, **FAST, **(options or {})}
    return Kind(name=name, shown=shown, steps=steps or history(every), options=every, **more)

NO_HFILE = Outcome(
    read=False,
    inserted=True,
    deleted=True,
    refused="log blocks of type HFILE_DATA .* compact the table with Hudi",
    remedy="compact with Hudi 0.15 (1.2 fails on them itself); write Avro or Parquet blocks",
)


def logs(form: str) -> dict[str, str]:
    return {**MOR, "hoodie.logfile.data.block.format": form}


CDC = {"hoodie.table.cdc.enabled": "true"}
CHANGES = replace(
    not_written("changes of this table are to be recorded .* Update it with Hudi", "update with Hudi; new records can be inserted"),
    inserted=True,
)
NO_META = {"incremental": "refused by Hudi", "from_first": "refused by Hudi"}
SCHEMA_ON_READ = {"hoodie.schema.on.read.enable": "true", **FAST}
TOKYO = {"own_jvm": {"spark.driver.extraJavaOptions": "-Duser.timezone=Asia/Tokyo -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}}
"""In one JVM, Hudi waits until its clock has reached the newest instant that it has seen in any zone."""

KINDS = (
    of_feature("schema-added", "schema: a column added by a write", rows=ADDED, options=RECONCILE),
    of_feature("schema-added-mor", "schema: a column added by a write, merge-on-read", rows=ADDED, options={**RECONCILE, **MOR}),
    of_feature("schema-nested", "schema: structs, lists and maps", rows=NESTED),
    of_feature("schema-nested-mor", "schema: structs, lists and maps, merge-on-read", rows=NESTED, options=MOR),
    of_feature("schema-types", "schema: all other types", rows=OTHER_TYPES, options=MOR),
    Kind(
        name="schema-sql-added",
        shown="schema: `alter table add columns`",
        steps=(sql(created(KEYED), inserted(range(8), 0), "alter table {t} add columns (extra string)"), Write(range(4, 10), 1)),
        options={**FAST, **RECONCILE},
        conf=FAST,
        rows=ADDED,
    ),
    Kind(
        name="schema-on-read",
        shown="schema on read: a column renamed and one dropped",
        expected=not_read("schema-on-read history .* copy the rows with Hudi", "copy with Hudi to a new table"),
        steps=(
            sql(
                created(KEYED),
                inserted(range(8), 0),
                "alter table {t} rename column name to title",
                "alter table {t} drop column amount",
                **{"hoodie.schema.on.read.enable": "true"},
            ),
        ),
        options=SCHEMA_ON_READ,
        conf=SCHEMA_ON_READ,
        own_jvm={},
        makers=("0.15.0",),
        why_not="refuses such changes at version 6",
        rows=PLAIN.but(name=None, amount=None, title=PLAIN.columns["name"]),
    ),
    of_feature("zone-local-mor", "zone LOCAL, Spark in Tokyo, merge-on-read", options=MOR, **TOKYO),
    of_feature("zone-utc", "zone UTC, Spark in Tokyo", options={"hoodie.table.timeline.timezone": "UTC"}, **TOKYO),
    of_feature(
        "virtual-keys",
        "`hoodie.populate.meta.fields=false`",
        Write(range(8), 0, "insert"),
        options={"hoodie.populate.meta.fields": "false"},
        skip=dict.fromkeys(BOTH, NO_META),
        ignore={"every": META_COLUMNS},
    ),
    of_feature("cdc", "change data capture", options=CDC, expected=CHANGES),
    of_feature("cdc-mor", "change data capture, merge-on-read", options={**CDC, **MOR}, expected=CHANGES),
    of_feature("logs-avro", "Avro log blocks", options=logs("avro")),
    of_feature("logs-parquet", "Parquet log blocks", options=logs("parquet")),
    of_feature("logs-hfile", "HFile log blocks", options=logs("hfile"), expected=NO_HFILE),
    of_feature(
        "logs-deleted", "logs with deletions only", *HISTORY, Write([1, 4], 2, "delete"), Write([5], 2, "delete"), options=MOR
    ),
    Kind(
        name="sql-table-of-frames",
        shown="a table of SQL, written by DataFrames with other words",
        steps=(sql(created(KEYED), *CHANGED), Write(range(8), 0, "bulk_insert"), Write(range(4, 10), 1)),
        options={**PARTITIONED, **FAST, "hoodie.datasource.write.hive_style_partitioning": "true"},
        conf=FAST,
    ),
)
