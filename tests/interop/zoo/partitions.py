"""Partition columns: types, styles of paths, and values that a path could get wrong."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.interop.zoo.kind import FAST, MOR, PARTITIONED, Kind, history, not_read
from tests.interop.zoo.rows import INSTANT, Rows, instant_of, partitioned

HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
DROPPED = {"hoodie.datasource.write.drop.partition.columns": "true"}
ODD = ["a b", "100%", "ünï", "🙂", "%2F", "a+b&c", "it's", "tail "]
NO_COLUMN = not_read("partition columns are not in the data files .* copy the rows with Hudi", "copy with Hudi to a table that keeps them")
PATHS = ["x/y", "x/z", "w"]
BLANK = ["a", None, ""]
PATH_TEXT: dict[str, Any] = {
    "ignore": {"every": ["part"]},
    "note": "Hudi shows the partition column as it reads it from the path, this engine as it is stored",
}
ENCODED_TEXT: dict[str, Any] = {
    "ignore": {"incremental": ["part"], "from_first": ["part"]},
    "note": "Hudi 1.2 shows the partition column in incremental queries as it stands, encoded, in the path",
}


def of_partition(name: str, shown: str, rows: Rows, *options: dict[str, str], **more: Any) -> Kind:
    every = {**PARTITIONED, **FAST}
    for chosen in options:
        every |= chosen
    return Kind(name=f"partition-{name}", shown=f"partition: {shown}", steps=history(every), options=every, rows=rows, **more)


def text(values: list[str | None]) -> Rows:
    return partitioned(pa.string(), values)


KINDS = (
    of_partition("hive", "hive style", text(["a", "b"]), HIVE),
    of_partition("odd", "odd values, plain paths", text(ODD), **PATH_TEXT),
    of_partition("odd-hive", "odd values, hive style", text(ODD), HIVE, **PATH_TEXT),
    of_partition("odd-encoded", "odd values, url-encoded", text([*ODD, *PATHS, "12:30", "k=v"]), ENCODED, **ENCODED_TEXT),
    of_partition(
        "odd-hive-encoded", "odd values, hive style, url-encoded", text([*ODD, *PATHS, "12:30", "k=v"]), HIVE, ENCODED, **ENCODED_TEXT
    ),
    of_partition("slash", "values with a slash, plain paths", text(PATHS)),
    of_partition("slash-hive", "values with a slash, hive style", text(PATHS), HIVE),
    of_partition("blank", "null and empty values", text(BLANK), **PATH_TEXT),
    of_partition("blank-hive", "null and empty values, hive style", text(BLANK), HIVE, MOR, **PATH_TEXT),
    of_partition("date", "a date", partitioned(pa.date32(), [date(2024, 2, 28) + timedelta(days=n) for n in range(3)]), HIVE),
    of_partition("date-plain", "a date, plain paths", partitioned(pa.date32(), [date(1969, 2, 28), date(2024, 2, 29), None])),
    of_partition("int", "an int", partitioned(pa.int32(), [1, -2, None]), HIVE),
    of_partition("long", "a long, plain paths", partitioned(pa.int64(), [1, 2**40])),
    of_partition("boolean", "a boolean", partitioned(pa.bool_(), [True, False]), HIVE),
    of_partition("decimal", "a decimal", partitioned(pa.decimal128(8, 2), [Decimal("1.50"), Decimal("-0.25")]), HIVE),
    of_partition("timestamp", "a timestamp", partitioned(INSTANT, [instant_of(n, 0) for n in range(2)]), HIVE, ENCODED, **PATH_TEXT),
    of_partition("dropped", "`drop.partition.columns=true`", text(["a", "b"]), HIVE, DROPPED, expected=NO_COLUMN),
)
