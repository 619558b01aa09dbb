"""Every payload class, as copy-on-write and merge-on-read, with rows that come late and with nulls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from tests.interop.zoo.kind import FAST, MOR, PARTITIONED, Kind, Property, Step, Write, not_read
from tests.interop.zoo.rows import LATE, Column, Rows, marked

PAYLOAD = "hoodie.datasource.write.payload.class"
MODEL = "org.apache.hudi.common.model"
THREE: tuple[Step, ...] = (Write(range(8), 0, "insert"), Write(range(4, 10), 1), Write(range(2, 8), 2))

LATE_PARTS = {"1.2.0": {"from_first": "shows a late row itself, not what it was merged to; 0.15 and every snapshot do"}}
BY_EVENT_TIME = ("unsaid", "event-time", "event-time-avro", "partial", "postgres", "mysql")
HIDDEN = {"0.15.0": ("name", "n")}
"""Under the payload of non-defaults a logged row of Hudi 0.15 hides what an older log row had brought."""
OWN = not_read(
    "merged by com.example.OwnPayload, .* Go on writing it with Hudi", "go on with Hudi, or name the class above that does the same"
)
OPERATIONS = Column(pa.string(), lambda number, seed: "D" if seed >= 2 and number in (4, 7) else "I" if seed == 0 else "U")
DMS = marked("Op", pa.string(), OPERATIONS.value, LATE)
DEBEZIUM = LATE.but(
    _change_operation_type=Column(pa.string(), lambda number, seed: "d" if seed >= 2 and number in (4, 7) else "c" if seed == 0 else "u"),
    _event_lsn=Column(pa.int64(), lambda number, seed: 50 if seed >= 2 and number % 3 == 0 else 100 + 10 * seed),
    _event_bin_file=Column(pa.string(), lambda number, seed: f"mysql-bin.{9 + seed:06d}"),
    _event_pos=Column(pa.int64(), lambda number, seed: 500 + number),
    _event_seq=Column(pa.string(), lambda number, seed: f"{9 if seed >= 2 and number % 3 == 0 else 10 + seed}.{500 + number}"),
)


NOT_IN_1X: dict[str, Any] = {"makers": ("0.15.0",), "why_not": "its bundle has no such class"}


def of_payload(
    name: str, shown: str, payload: str | None, *, rows: Rows = LATE, more: Mapping[str, str] | None = None, deletes: bool = True
) -> Iterator[Kind]:
    for table_type, options in (("cow", {}), ("mor", MOR)):
        said = {PAYLOAD: payload} if payload else {}
        yield Kind(
            name=f"payload-{name}-{table_type}",
            shown=f"payload: {shown}, {'copy-on-write' if table_type == 'cow' else 'merge-on-read'}",
            steps=THREE,
            options={**PARTITIONED, **FAST, **options, **said, **(more or {})},
            # A copy-on-write table of 0.15 does not say which class its writers use, so each of them has to be told.
            ours=said,
            rows=rows,
            deletes=deletes,
            skip=LATE_PARTS if table_type == "mor" and name in BY_EVENT_TIME else {},
            hidden=HIDDEN if table_type == "mor" and name == "non-defaults" else {},
            **(NOT_IN_1X if name == "first-value" else {}),
            alone=("0.15.0",) if table_type == "mor" and name == "first-value" else (),
        )


def all_kinds() -> Sequence[Kind]:
    lsn = {"hoodie.datasource.write.precombine.field": "_event_lsn"}
    sequence = {"hoodie.datasource.write.precombine.field": "_event_seq"}
    merge = "hoodie.write.record.merge.mode"
    return [
        *of_payload("unsaid", "none named", None),
        *of_payload("overwrite", "OverwriteWithLatestAvroPayload", f"{MODEL}.OverwriteWithLatestAvroPayload"),
        *of_payload("event-time", "DefaultHoodieRecordPayload", f"{MODEL}.DefaultHoodieRecordPayload"),
        *of_payload("event-time-avro", "EventTimeAvroPayload", f"{MODEL}.EventTimeAvroPayload"),
        *of_payload("partial", "PartialUpdateAvroPayload", f"{MODEL}.PartialUpdateAvroPayload"),
        *of_payload("non-defaults", "OverwriteNonDefaultsWithLatestAvroPayload", f"{MODEL}.OverwriteNonDefaultsWithLatestAvroPayload"),
        *of_payload("first-value", "FirstValueAvroPayload", f"{MODEL}.FirstValueAvroPayload"),
        *of_payload("dms", "AWSDmsAvroPayload", f"{MODEL}.AWSDmsAvroPayload", rows=DMS),
        *of_payload("postgres", "PostgresDebeziumAvroPayload", f"{MODEL}.debezium.PostgresDebeziumAvroPayload", rows=DEBEZIUM, more=lsn),
        *of_payload("mysql", "MySqlDebeziumAvroPayload", f"{MODEL}.debezium.MySqlDebeziumAvroPayload", rows=DEBEZIUM, more=sequence),
        Kind(
            name="payload-custom",
            shown="payload: a class of the user's own, stored in the table",
            steps=(*THREE, Property("hoodie.compaction.payload.class", "com.example.OwnPayload")),
            options={**PARTITIONED, **FAST, **MOR},
            rows=LATE,
            expected=OWN,
        ),
        Kind(
            name="merge-mode-commit-time",
            shown="`hoodie.record.merge.mode=COMMIT_TIME_ORDERING`",
            steps=THREE,
            options={**PARTITIONED, **FAST, **MOR, merge: "COMMIT_TIME_ORDERING"},
            rows=LATE,
            makers=("1.2.0",),
            why_not="has no such option",
        ),
        Kind(
            name="spark-merger",
            shown="`HoodieSparkRecordMerger`, Parquet log blocks",
            steps=THREE,
            options={
                **PARTITIONED,
                **FAST,
                **MOR,
                "hoodie.datasource.write.record.merger.impls": "org.apache.hudi.HoodieSparkRecordMerger",
                "hoodie.logfile.data.block.format": "parquet",
            },
            # Hudi 0.15 writes decimals to such logs in a form that it cannot read.
            rows=LATE.but(amount=None),
            makers=("0.15.0",),
            why_not="not tried: 1.x has no use for the option",
        ),
    ]


KINDS = tuple(all_kinds())
