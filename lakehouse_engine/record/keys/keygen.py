"""Makes record keys and partition paths of a batch like Hudi's key generators (table format, "Record key encoding").

The classes differ in two independent things: how key fields become one text, and how each partition field becomes its part of the path.
`key_generator_of` reads both from the table's properties.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.errors import PartitionValueError, RecordKeyError, UnsupportedTableError
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.record.keys.partition_path import encode_partition_values, join_pieces
from lakehouse_engine.record.keys.record_key import composite_keys, single_keys
from lakehouse_engine.record.keys.timestamp_partition import PREFIX, TimestampFormat
from lakehouse_engine.record.text import java_text, timestamp_text

PARTITION_FIELD_OPTION = "hoodie.datasource.write.partitionpath.field"


class KeyGenerator(Protocol):
    """Makes keys and partition paths of canonical tables. Picklable; equal input gives equal text on every machine."""

    @property
    def record_key_fields(self) -> tuple[str, ...]:
        """Columns of the record key; empty if keys are generated (`generated_keys`)."""

    @property
    def partition_fields(self) -> tuple[str, ...]:
        """Columns of the partition path; empty for a table without partitions."""

    def record_keys(self, table: pa.Table) -> pa.Array:
        """One text per row, never null. Raises `RecordKeyError`."""

    def partition_paths(self, table: pa.Table) -> pa.Array:
        """One text per row, relative to the table, "" without partitions. Raises `PartitionValueError`."""


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One column of the partition path; with `moments` its values are formatted dates (the TIMESTAMP kind)."""

    name: str
    moments: TimestampFormat | None = None
    timestamps_as_text: bool = False

    def texts(self, table: pa.Table) -> pa.Array:
        values = column_of(table, self.name, PartitionValueError)
        if self.moments is not None:
            return self.moments.texts(values, self.name)
        return timestamp_text(values) if self.timestamps_as_text and pat.is_timestamp(values.type) else java_text(values)


@dataclass(frozen=True, slots=True)
class FieldKeyGenerator:
    """Keys and paths from columns.

    `prefix_single` writes the key of a single field as `field:value` (Hudi's `ComplexKeyGenerator` up to 0.14.0 and from 1.1 on); the
    default is the bare value. `timestamps_as_text` writes timestamps in keys as text, not numbers
    (`hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled`, and every bulk insert of Hudi's row writer).
    `_hoodie_record_key` of any row shows which form a foreign table has.
    """

    record_key_fields: tuple[str, ...]
    partitioning: tuple[PartitionField, ...] = ()
    hive_style: bool = False
    url_encode: bool = False
    prefix_single: bool = False
    timestamps_as_text: bool = False

    @property
    def partition_fields(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.partitioning)

    def record_keys(self, table: pa.Table) -> pa.Array:
        if not self.record_key_fields:
            raise RecordKeyError("the table has no record key fields: its keys are generated when rows are inserted, not made of columns")
        columns = [column_of(table, name, RecordKeyError) for name in self.record_key_fields]
        if len(columns) == 1 and not self.prefix_single:
            return single_keys(columns[0], self.record_key_fields[0], timestamps_as_text=self.timestamps_as_text)
        return composite_keys(columns, self.record_key_fields, timestamps_as_text=self.timestamps_as_text)

    def partition_paths(self, table: pa.Table) -> pa.Array:
        if not self.partitioning:
            return pa.array([""], pa.string()).take(pa.array(np.zeros(table.num_rows, np.int32)))
        pieces = [
            encode_partition_values(
                field.texts(table), field.name, hive_style=self.hive_style, url_encode=self.url_encode, first=field is self.partitioning[0]
            )
            for field in self.partitioning
        ]
        return join_pieces(pieces)


def key_generator_of(config: TableConfig, options: Mapping[str, str] | None = None, *, prefix_single: bool = False) -> FieldKeyGenerator:
    """Key generator that the table's properties name.

    Write options `hoodie.keygen.timebased.*` and the partition field option (`region:SIMPLE,at:TIMESTAMP`) override the properties, because
    Hudi 0.15 does not store them. `prefix_single` matters for `ComplexKeyGenerator` only. Raises `UnsupportedTableError` for an unknown
    class, or a custom one whose field kinds are unknown.
    """
    given = dict(options or {})
    keys, names = config.record_key_fields, config.partition_fields
    name = config.key_generator or choose_key_generator(keys, names)
    if name not in KEY_GENERATORS:
        known = ", ".join(sorted(set(KEY_GENERATORS.values())))
        raise UnsupportedTableError(f"the key generator {name} is not known; the engine has {known}", table=config.name)
    family = KEY_GENERATORS[name]
    kinds: tuple[tuple[str, str], ...] = ()
    if family == "CustomKeyGenerator":
        kinds = _custom_kinds(config, given)
    elif family != "NonpartitionedKeyGenerator":
        kinds = tuple((field, _PARTITION_KINDS[family]) for field in names)
    return FieldKeyGenerator(
        record_key_fields=keys,
        partitioning=_partitioning(kinds, config, given),
        hive_style=config.hive_style_partitioning,
        url_encode=config.url_encode_partitioning,
        prefix_single=prefix_single and family == "ComplexKeyGenerator",
    )


KEY_GENERATORS: dict[str, str] = {
    "SimpleKeyGenerator": "SimpleKeyGenerator",
    "SimpleAvroKeyGenerator": "SimpleKeyGenerator",
    "SIMPLE": "SimpleKeyGenerator",
    "SIMPLE_AVRO": "SimpleKeyGenerator",
    "ComplexKeyGenerator": "ComplexKeyGenerator",
    "ComplexAvroKeyGenerator": "ComplexKeyGenerator",
    "COMPLEX": "ComplexKeyGenerator",
    "COMPLEX_AVRO": "ComplexKeyGenerator",
    "NonpartitionedKeyGenerator": "NonpartitionedKeyGenerator",
    "NonpartitionedAvroKeyGenerator": "NonpartitionedKeyGenerator",
    "NON_PARTITION": "NonpartitionedKeyGenerator",
    "NON_PARTITION_AVRO": "NonpartitionedKeyGenerator",
    "TimestampBasedKeyGenerator": "TimestampBasedKeyGenerator",
    "TimestampBasedAvroKeyGenerator": "TimestampBasedKeyGenerator",
    "TIMESTAMP": "TimestampBasedKeyGenerator",
    "TIMESTAMP_AVRO": "TimestampBasedKeyGenerator",
    "CustomKeyGenerator": "CustomKeyGenerator",
    "CustomAvroKeyGenerator": "CustomKeyGenerator",
    "CUSTOM": "CustomKeyGenerator",
    "CUSTOM_AVRO": "CustomKeyGenerator",
}
"""Class names (0.x) and type words (1.x) in properties, and the class whose rules apply."""

_PARTITION_KINDS = {
    "SimpleKeyGenerator": "SIMPLE",
    "ComplexKeyGenerator": "SIMPLE",
    "TimestampBasedKeyGenerator": "TIMESTAMP",
}


def choose_key_generator(record_key: Sequence[str], partition_by: Sequence[str]) -> str:
    """Class (last name) for a new table, like `KeyGenUtils.inferKeyGeneratorType`."""
    if not partition_by:
        return "NonpartitionedKeyGenerator"
    if len(record_key) <= 1 and len(partition_by) == 1:
        return "SimpleKeyGenerator"
    return "ComplexKeyGenerator"


def generated_keys(instant: str, task: int, count: int, first_row: int = 0) -> pa.Array:
    """Keys `<instant>_<task>_<row>` for `count` rows of one task, in tables without record key fields.

    `first_row` is the number of the first, for a task that makes keys batch by batch.
    """
    rows = pa.array(np.arange(first_row, first_row + count, dtype=np.int64)).cast(pa.string())
    return pc.binary_join_element_wise(f"{instant}_{task}_", rows, "")


def column_of(table: pa.Table, name: str, error: type[RecordKeyError] | type[PartitionValueError]) -> pa.ChunkedArray:
    """A column by name (ignoring case), or a struct field by dotted name. Raises `error` if there is none."""
    positions = {column.lower(): index for index, column in enumerate(table.column_names)}
    if name.lower() in positions:
        return table.column(positions[name.lower()])
    parts = name.split(".")
    if parts[0].lower() in positions:
        column = table.column(positions[parts[0].lower()])
        try:
            return pc.struct_field(column, parts[1:])
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, KeyError) as reason:
            raise error(f"the column {parts[0]!r} of type {column.type} has no field {name!r}", column=name) from reason
    raise error(f"the rows have no column {name!r}; they have {table.column_names}", column=name)


def root_columns(fields: Iterable[str], columns: Sequence[str]) -> list[str]:
    """Columns that hold the fields, each once, spelled as in `columns`; a nested field (`who.id`) is in its struct."""
    spelled = {column.lower(): column for column in columns}
    roots = (field if field.lower() in spelled else field.split(".")[0] for field in fields)
    return list(dict.fromkeys(spelled.get(root.lower(), root) for root in roots))


def type_of(schema: pa.Schema, field: str) -> pa.DataType | None:
    """Type of a column or nested field, found like `column_of`; None if there is none."""
    try:
        return column_of(schema.empty_table(), field, RecordKeyError).type
    except RecordKeyError:
        return None


def _partitioning(kinds: Sequence[tuple[str, str]], config: TableConfig, given: Mapping[str, str]) -> tuple[PartitionField, ...]:
    if not any(kind == "TIMESTAMP" for _, kind in kinds):
        return tuple(PartitionField(field) for field, _ in kinds)
    properties = config.prefixed(PREFIX) | {key[len(PREFIX) :]: value for key, value in given.items() if key.startswith(PREFIX)}
    moments = TimestampFormat.read(properties)
    return tuple(PartitionField(field, moments if kind == "TIMESTAMP" else None) for field, kind in kinds)


def _custom_kinds(config: TableConfig, given: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """(field, SIMPLE | TIMESTAMP) pairs. Version 6 stores the fields without kinds, and 0.15 stores no date format."""
    stored = config.properties.get("hoodie.table.partition.fields", "")
    text = given.get(PARTITION_FIELD_OPTION, stored).replace("\\", "")
    pairs = [part.strip().partition(":") for part in text.split(",") if part.strip()]
    fields = tuple(field for field, _, _ in pairs)
    if fields != config.partition_fields:
        raise UnsupportedTableError(
            f"{PARTITION_FIELD_OPTION}={text!r} is not about the table's partition fields {config.partition_fields}"
        )
    kinds = [kind.strip().upper() for _, _, kind in pairs]
    if any(kind not in ("SIMPLE", "TIMESTAMP") for kind in kinds):
        raise UnsupportedTableError(
            f"the table's CustomKeyGenerator does not store which of the fields {list(fields)} are timestamps; pass"
            f" {PARTITION_FIELD_OPTION}, as in {','.join(f'{field}:SIMPLE' for field in fields)}",
            table=config.name,
        )
    return tuple(zip(fields, kinds, strict=True))
