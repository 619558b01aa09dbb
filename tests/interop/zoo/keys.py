"""Key generators, and the types that key columns have."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.interop.zoo.kind import CONTINUED, FAST, HISTORY, KEYS, MOR, PARTITIONED, VALIDATION, Kind, Outcome, history, not_written
from tests.interop.zoo.rows import INSTANT, PLAIN, Rows, keyed, marked, moment_key

CLASS = "hoodie.datasource.write.keygenerator.class"
FIELD = "hoodie.datasource.write.partitionpath.field"
RECORD_KEY = "hoodie.datasource.write.recordkey.field"
CONSISTENT = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
TIMED = "hoodie.keygen.timebased"


def of_type(name: str, rows: Rows, shown: str = "", **options: str) -> Kind:
    every = {**PARTITIONED, **FAST, **options}
    return Kind(name=f"key-{name}", shown=f"key: {shown or name}", steps=history(every), options=every, rows=rows)


def generated(
    name: str, shown: str, options: Mapping[str, str], rows: Rows = PLAIN, ours: Mapping[str, Any] | None = None, **more: Any
) -> Kind:
    every = {**PARTITIONED, **FAST, **options}
    return Kind(name=f"keygen-{name}", shown=f"key generator: {shown}", steps=HISTORY, options=every, rows=rows, ours=ours or {}, **more)


def timed(
    name: str, kind: str, rows: Rows, of: str = "", *, expected: Outcome = CONTINUED, more: Mapping[str, Any] | None = None, **settings: str
) -> Kind:
    """A timestamp-based key generator, which 0.15 does not store: our writes are told the same."""
    formats = {f"{TIMED}.timestamp.type": kind, f"{TIMED}.output.dateformat": "yyyy/MM/dd", f"{TIMED}.timezone": "UTC"}
    formats |= {f"{TIMED}.{key.replace('_', '.')}": value for key, value in settings.items()}
    options = {CLASS: "org.apache.hudi.keygen.TimestampBasedKeyGenerator", FIELD: "event", **formats}
    shown = f"timestamp-based, {kind}{f' {of}' if of else ''}"
    return generated(f"timestamp-{name}", shown, options, rows, formats, expected=expected, **FORMATTED, **(more or {}))


def event(kind: pa.DataType, value: Any) -> Rows:
    return marked("event", kind, lambda number, _: value(number % 3))


FORMATTED: dict[str, Any] = {
    "ignore": {"every": ("event",)},
    "note": "Hudi shows the partition column as it reads it from the path (0.15 not in incremental queries), this engine as it is stored",
}
NOT_MILLIS = not_written(
    "its partitions are made of a number of milliseconds; cast it to long, or set hoodie.keygen.timebased.timestamp.type",
    "copy to a table with EPOCHMICROSECONDS: these dates are in the wrong millennium",
)
UNTOLD = not_written(
    f"does not store which of the fields .* pass {FIELD}", "name the fields with their kinds in the write, as in the line above"
)
UNREAD_BY_015 = {"alone": ("1.2.0",)}
"""0.15 takes the text of the path for the number that such a column is, where 1.2 wrote the table."""
SINCE_1 = {"makers": ("1.2.0",), "why_not": "0.15 has no EPOCHMICROSECONDS"}
CUSTOM = {CLASS: "org.apache.hudi.keygen.CustomKeyGenerator"}
MILLIS = 1_704_067_200_000
EPOCH = {f"{TIMED}.timestamp.type": "EPOCHMILLISECONDS", f"{TIMED}.output.dateformat": "yyyyMM", f"{TIMED}.timezone": "UTC"}
LOGICAL = {CONSISTENT: "true"}

KINDS = (
    of_type("long", keyed(pa.int64(), lambda number, _: number * 10**12 - 5)),
    of_type("int", keyed(pa.int32(), lambda number, _: number - 3)),
    of_type("date", keyed(pa.date32(), lambda number, _: date(1969, 12, 28) + timedelta(days=number))),
    of_type("decimal", keyed(pa.decimal128(12, 3), lambda number, _: Decimal(number * 125 - 300) / 1000)),
    of_type("double", keyed(pa.float64(), lambda number, _: number * 1e6 + 0.25)),
    of_type("float", keyed(pa.float32(), lambda number, _: number / 4)),
    of_type("timestamp", keyed(INSTANT, moment_key)),
    of_type("timestamp-mor", keyed(INSTANT, moment_key), "timestamp, merge-on-read", **MOR),
    of_type("timestamp-logical", keyed(INSTANT, moment_key), "timestamp, `consistent.logical.timestamp.enabled=true`", **LOGICAL),
    of_type(
        "timestamp-logical-rows",
        keyed(INSTANT, moment_key),
        "timestamp, the same, with bulk inserts",
        **LOGICAL,
        **{"hoodie.datasource.write.operation": "bulk_insert"},
    ),
    generated("simple", "simple, named", {CLASS: "org.apache.hudi.keygen.SimpleKeyGenerator"}),
    generated("complex", "complex, two keys, two partitions", {RECORD_KEY: "id,day", FIELD: "part,day"}),
    generated("complex-one-key", "complex, one key, two partitions", {FIELD: "part,day", **VALIDATION}),
    generated("complex-named", "complex, one key, one partition", {CLASS: "org.apache.hudi.keygen.ComplexKeyGenerator", **VALIDATION}),
    generated("nested-key", "a field inside a struct", {RECORD_KEY: "who.id"}, PLAIN.but(
        who=marked("who", pa.struct([("id", pa.string())]), lambda number, _: {"id": f"w{number}"}).columns["who"]
    )),
    Kind(
        name="keygen-nonpartitioned",
        shown="key generator: non-partitioned",
        steps=HISTORY,
        options={**KEYS, **FAST, CLASS: "org.apache.hudi.keygen.NonpartitionedKeyGenerator"},
    ),
    generated("custom-simple", "custom, `part:SIMPLE`", {**CUSTOM, FIELD: "part:SIMPLE"}, ours={FIELD: "part:SIMPLE"}),
    generated(
        "custom-untold", "custom, of whose fields we are told nothing", {**CUSTOM, FIELD: "part:SIMPLE"}, expected=UNTOLD
    ),
    generated(
        "custom-timestamp",
        "custom, `part:SIMPLE,event:TIMESTAMP`",
        {**CUSTOM, **EPOCH, FIELD: "part:SIMPLE,event:TIMESTAMP"},
        event(pa.int64(), lambda number: MILLIS + number * 40 * 86_400_000),
        {**EPOCH, FIELD: "part:SIMPLE,event:TIMESTAMP"},
        **FORMATTED,
    ),
    timed("millis", "EPOCHMILLISECONDS", event(pa.int64(), lambda number: MILLIS + number * 86_400_000), more=UNREAD_BY_015),
    timed(
        "micros",
        "EPOCHMICROSECONDS",
        event(pa.int64(), lambda number: (MILLIS + number * 86_400_000) * 1000),
        more={**UNREAD_BY_015, **SINCE_1},
    ),
    timed("unix", "UNIX_TIMESTAMP", event(pa.int64(), lambda number: MILLIS // 1000 + number * 86_400), more=UNREAD_BY_015),
    timed(
        "text", "DATE_STRING", event(pa.string(), lambda number: f"2024-01-{number + 1:02d}"), input_dateformat="yyyy-MM-dd"
    ),
    timed(
        "mixed",
        "MIXED",
        event(pa.string(), lambda number: f"2024-01-{number + 1:02d}T00:00:00Z"),
        input_dateformat="yyyy-MM-dd'T'HH:mm:ssZ",
    ),
    timed(
        "scalar", "SCALAR", event(pa.int64(), lambda number: 19_700 + number), more=UNREAD_BY_015, timestamp_scalar_time_unit="DAYS"
    ),
    timed(
        "timestamp",
        "EPOCHMICROSECONDS",
        event(INSTANT, lambda number: moment_key(number, 0)),
        "of a timestamp column",
        more={**UNREAD_BY_015, **SINCE_1},
    ),
    timed(
        "as-millis",
        "EPOCHMILLISECONDS",
        event(INSTANT, lambda number: moment_key(number, 0)),
        "of a timestamp column, whose microseconds Hudi takes for milliseconds",
        expected=NOT_MILLIS,
    ),
)
