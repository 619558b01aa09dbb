"""Facts about the table that a write needs, fixed before anything is written; invalid ones are refused."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timezone

import pyarrow as pa

from lakehouse_engine.commit.expected import check_generated
from lakehouse_engine.errors import ConstraintError, MissingOptionError, OptionError, SchemaIncompatibleError, UnsupportedTableError
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.format.avro.arrow_avro import table_avro_schema, with_meta_columns
from lakehouse_engine.format.table_format import format_of
from lakehouse_engine.index.base import Index, StoredKeys
from lakehouse_engine.index.bucket import BucketIndex, BucketLayout
from lakehouse_engine.index.hbase.index import HBaseIndex
from lakehouse_engine.index.record_level import RecordLevelIndex
from lakehouse_engine.index.registry import load_index
from lakehouse_engine.index.simple import GeneratedKeys, MetaColumnKeys
from lakehouse_engine.model.constraints import Generated
from lakehouse_engine.model.keys import COMMIT_SEQNO, DELETED_AT, PARTITION_PATH, RECORD_KEY
from lakehouse_engine.model.table_config import TableConfig, TableType
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.options.write import INSERT_DUP_POLICY
from lakehouse_engine.read.complete_slices import check_complete, check_not_bootstrapped
from lakehouse_engine.read.scan import check_readable
from lakehouse_engine.record.keys.keygen import KeyGenerator, root_columns
from lakehouse_engine.record.merging.deletions import DeleteMarks
from lakehouse_engine.record.merging.mergers import RecordMerger, storing_as_given
from lakehouse_engine.record.merging.ordering_fields import OrderingFields
from lakehouse_engine.record.merging.payloads import Payload, merger_of, payload_of
from lakehouse_engine.record.merging.soft_deletes import SoftDeletes, check_soft_deletes, with_deleted_at
from lakehouse_engine.record.schema import check_reserved, reconcile, typed_nulls
from lakehouse_engine.record.types import canonical_schema
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.batch.arrangement import Arrangement
from lakehouse_engine.write.batch.input import DeleteKeying, Keying
from lakehouse_engine.write.batch.key_form import key_generator_for
from lakehouse_engine.write.request import WriteRequest
from lakehouse_engine.write.tasks.base_files import FileContext

_NEEDS_KEYS = frozenset({WriteOperationType.UPSERT, WriteOperationType.DELETE})
_MATCHES = frozenset({WriteOperationType.UPSERT, WriteOperationType.INSERT})
"""Operations that may meet a stored row of their key (including insert if the table has buckets)."""
_MERGES = _NEEDS_KEYS | {WriteOperationType.INSERT}


@dataclass(frozen=True, slots=True)
class WriteContext:
    """The table as this write sees it. `schema` has the user columns after the write, `table_avro_schema` is the same as Avro text.

    `single_rows` as in `WriteRequest`. With `unsaid_by_logs`, readers would combine logged rows differently than this write stores them, so
    slices are rewritten instead.
    """

    storage: Storage
    config: TableConfig
    schema: pa.Schema
    table_avro_schema: str
    generator: KeyGenerator
    index: Index
    merger: RecordMerger
    ordering: OrderingFields
    marks: DeleteMarks
    options: WriteOptions
    allow_timestamp_ntz: bool
    given_keys: bool
    arrangement: Arrangement
    soft: SoftDeletes | None = None
    unsaid_by_logs: bool = False
    single_rows: bool = False

    @property
    def merges_on_read(self) -> bool:
        return self.config.table_type is TableType.MERGE_ON_READ

    @property
    def keyless(self) -> bool:
        """True if record keys are generated at insert."""
        return not self.config.record_key_fields

    @property
    def is_global(self) -> bool:
        return self.index.is_global

    @property
    def layout(self) -> BucketLayout | None:
        """How keys map to file groups, if the table's index defines that."""
        return self.index.layout if isinstance(self.index, BucketIndex) else None

    @property
    def stored_keys(self) -> StoredKeys:
        if self.config.populates_meta_fields:
            return MetaColumnKeys()
        roots = root_columns(self.config.record_key_fields, self.schema.names)
        return GeneratedKeys(self.generator, pa.schema([self.schema.field(name) for name in roots]))

    def files(self, instant_time: str) -> FileContext:
        """Settings shared by all files of the commit."""
        return FileContext(
            storage=self.storage,
            instant_time=instant_time,
            schema=self.schema,
            avro_schema=with_meta_columns(self.table_avro_schema),
            options=self.options,
            unique_columns=frozenset(self.config.record_key_fields) if len(self.config.record_key_fields) == 1 else frozenset(),
            populate=self.config.populates_meta_fields,
            logs_by_writer=format_of(self.config).logs_by_writer,
        )

    def keying(self, instant_time: str = "") -> Keying:
        """How rows get their keys; without an instant, generated ones are missing (`stage.DatedSource`)."""
        return Keying(
            schema=self.schema,
            generator=self.generator,
            instant_time=instant_time,
            keyless=self.keyless,
            allow_timestamp_ntz=self.allow_timestamp_ntz,
            given_keys=self.given_keys,
            constraints=self.config.constraints,
            soft=self.soft,
        )

    def key_keying(self, incoming: pa.Schema, *, ordering: bool = False) -> DeleteKeying:
        """How rows that only name keys get theirs. With `ordering`, existing ordering columns are kept.

        Raises `MissingOptionError` with a missing key or partition column.
        """
        fields = self.config.record_key_fields if self.is_global else (*self.config.record_key_fields, *self.config.partition_fields)
        names = root_columns(fields, self.schema.names)
        offered = {field.name.lower() for field in incoming}
        given = self.given_keys or "_hoodie_record_key" in offered
        missing = [name for name in names if name.lower() not in offered]
        if given and not self.is_global and PARTITION_PATH not in incoming.names:
            raise MissingOptionError(f"keys that are given need the column {PARTITION_PATH!r}, too", column=PARTITION_PATH)
        if missing and not given:
            raise MissingOptionError(f"a delete needs the column {missing[0]!r}: keys of this table are {names}", column=missing[0])
        if ordering and {name.lower() for name in self.ordering.roots} <= offered:
            names += [name for name in self.ordering.roots if name not in names]
        schema = pa.schema([]) if given else pa.schema([self.schema.field(name) for name in names])
        return DeleteKeying(schema=schema, generator=self.generator, is_global=self.is_global, given_keys=given)


def prepare(state: TableState, request: WriteRequest) -> WriteContext:
    """Determine schema, keys, index and merger of a write, or refuse it. Nothing has been written yet."""
    config, request = state.config, with_ordering(state, request)
    _check_possible(state, request)
    schema = _write_schema(state, request)
    moved = not request.options.update_partition_path
    generator = key_generator_for(state, table_schema(state) or schema, request.options.key_generator, moved=moved)
    ntz = _has_ntz(schema)
    payload = _payload(config, request.options, schema)
    _check_columns(config, request, OrderingFields.of(config.ordering_fields, table_schema(state) or schema))
    _check_update_columns(config, request, schema)
    updated = _updated_columns(config, request, schema)
    index = load_index(state, request.options)
    if request.operation in _MERGES and looks_everywhere(request, index) and not _checks_itself(request, index):
        check_complete(state)
    marks = payload.delete_marks({**config.properties, **request.options.delete_marker})
    return WriteContext(
        storage=state.storage,
        config=config,
        schema=schema,
        table_avro_schema=table_avro_schema(config.name, schema, allow_timestamp_ntz=ntz),
        generator=generator,
        index=index,
        merger=merger_of(config, request.options.payload_class, update_columns=updated, as_given=request.as_given),
        ordering=payload.ordering(config, schema),
        marks=marks,
        soft=SoftDeletes(marks, datetime.now(timezone.utc)) if config.deletes_softly else None,
        options=request.options,
        allow_timestamp_ntz=ntz,
        given_keys=request.given_keys,
        arrangement=_arrangement(config, request, schema),
        single_rows=request.single_rows,
        unsaid_by_logs=request.as_given and storing_as_given(payload.merger) is not payload.merger,
    )


def _check_possible(state: TableState, request: WriteRequest) -> None:
    """Raise what rules the write out without its schema: by the table, its generated columns, or the given columns."""
    _check_table(state.config, request)
    check_generated(state, generated_columns(state, request), request.generated)
    check_readable(state)
    if request.operation in _MERGES:
        check_not_bootstrapped(state)
    _check_given_columns(state.config, request)


def _payload(config: TableConfig, options: WriteOptions, schema: pa.Schema) -> Payload:
    """The payload by which the write merges. Raises for columns, a delete marker or soft deletes that do not go with it."""
    payload = payload_of(config, options.payload_class)
    payload.check_columns(schema)
    payload.check_marker(options.delete_marker)
    if config.deletes_softly:
        check_soft_deletes(config, payload)
    return payload


def _arrangement(config: TableConfig, request: WriteRequest, schema: pa.Schema) -> Arrangement:
    """Raises as `Arrangement.of`. A write that finds its file groups by key takes no order, and needs no columns for one."""
    arranges = request.data is not None and request.operation not in _MERGES
    return Arrangement.of(request.options if arranges else WriteOptions(), config, schema)


def generated_columns(state: TableState, request: WriteRequest) -> tuple[Generated, ...]:
    """Generated columns of the table that the request's rows must have."""
    if request.data is None or request.redefines or request.operation is WriteOperationType.DELETE:
        return ()
    constraints = state.config.constraints
    return constraints.generated_among(table_schema(state).names) if constraints.generated else ()


def with_ordering(state: TableState, request: WriteRequest) -> WriteRequest:
    """The request with ordering columns added to the updated ones: otherwise the winning row's ordering value would be lost, and a later
    late row would win. With soft deletes, the deletion time is added too.
    """
    if request.update_columns is None or request.data is None:
        return request
    known = {name.lower() for name in (*request.update_columns, *state.config.record_key_fields)}
    wanted = (*ordering_columns(state, request), *_soft_columns(state.config))
    return replace(request, update_columns=(*request.update_columns, *(name for name in wanted if name.lower() not in known)))


def ordering_columns(state: TableState, request: WriteRequest) -> list[str]:
    """Columns with the ordering values of the request's rows."""
    return payload_of(state.config, request.options.payload_class).ordering(state.config, table_schema(state)).roots


def _soft_columns(config: TableConfig) -> tuple[str, ...]:
    """Columns that every row of a batch has, given or not."""
    return (DELETED_AT,) if config.deletes_softly else ()


def looks_everywhere(request: WriteRequest, index: Index) -> bool:
    """True if keys may be looked up in partitions that the batch does not name."""
    looks_up = request.operation is not WriteOperationType.INSERT or looks_up_inserts(request.operation, request.options)
    return request.replaced_rows is not None or (index.is_global and looks_up)


def _checks_itself(request: WriteRequest, index: Index) -> bool:
    """True if the index checks what it finds; a batch that is planned in shares does not ask it (`write.routes`)."""
    return request.replaced_rows is None and isinstance(index, RecordLevelIndex | HBaseIndex) and index.checks_partitions


def looks_up_inserts(operation: WriteOperationType, options: WriteOptions) -> bool:
    """True if inserted rows are compared with stored ones."""
    return operation is WriteOperationType.INSERT and options.insert_dup_policy != INSERT_DUP_POLICY.default


def _updated_columns(config: TableConfig, request: WriteRequest, schema: pa.Schema) -> tuple[str, ...] | None:
    """Columns that a matched row takes from the batch; None for all.

    A column that the batch leaves out is not null: stored rows keep theirs, and only new rows have none.
    """
    if request.update_columns is not None or request.data is None or request.operation not in _MATCHES:
        return request.update_columns
    offered = {field.name.lower() for field in request.data.schema} | {*_soft_columns(config)}
    named = tuple(name for name in schema.names if name.lower() in offered)
    return None if len(named) == len(schema) else named


def _check_table(config: TableConfig, request: WriteRequest) -> None:
    _check_storage(config)
    check_payload(config, request.options)
    if request.redefines and not request.replace_schema:
        raise OptionError("redefines is of a write with replace_schema", table=config.name)
    if request.replace_schema and request.operation is not WriteOperationType.INSERT_OVERWRITE_TABLE:
        raise OptionError(f"only insert_overwrite_table can replace the schema, not {request.operation}", table=config.name)
    if request.replaced_rows is not None:
        if not config.populates_meta_fields:
            raise UnsupportedTableError("rows of a table without meta columns have no numbers to replace them by", table=config.name)
        return
    if not config.record_key_fields and looks_up_inserts(request.operation, request.options):
        policy = f"{INSERT_DUP_POLICY.key}={request.options.insert_dup_policy}"
        raise OptionError(f"{policy} needs a table with record key fields; this one has generated keys", table=config.name)
    if not config.record_key_fields and request.operation in _NEEDS_KEYS and not request.given_keys:
        raise OptionError(f"{request.operation} needs a table with record key fields; this one has generated keys", table=config.name)


def _check_storage(config: TableConfig) -> None:
    """Raise `UnsupportedTableError` for base files that are not Parquet, and `PropertiesError` if no instant could be archived."""
    if config.base_file_format != "PARQUET":
        raise UnsupportedTableError(
            f"hoodie.table.base.file.format={config.base_file_format}: base files are read and written as Parquet only, and a table has"
            " files of one kind; let Hudi rewrite the table with PARQUET, or copy its rows into a new one",
            table=config.name,
        )
    _ = config.archive_folder


def _check_given_columns(config: TableConfig, request: WriteRequest) -> None:
    """Check that rows that name stored ones have the columns to do so."""
    needed = [(request.data, RECORD_KEY)] if request.given_keys else []
    needed += [(request.replaced_rows, COMMIT_SEQNO)] if request.replaced_rows is not None else []
    for rows, column in needed:
        if rows is not None and column not in rows.schema.names:
            raise MissingOptionError(f"rows that name stored rows need the column {column!r}", table=config.name, column=column)


def check_payload(config: TableConfig, options: WriteOptions) -> None:
    """Refuse merge rules of the write's own, because readers merge logs by the table's rules. Raises `OptionError`."""
    override, marker = options.payload_class, options.delete_marker
    if config.table_type is not TableType.MERGE_ON_READ:
        return
    if override and payload_of(config, override) != payload_of(config):
        raise OptionError(
            f"a merge-on-read table is merged as its properties say, not by the {override} of a write; set"
            " hoodie.compaction.payload.class in the table",
            table=config.name,
        )
    payload = payload_of(config)
    if marker and payload.delete_marks({**config.properties, **marker}) != payload.delete_marks(config.properties):
        raise OptionError(
            f"deletions of a merge-on-read table are told as its properties say, not by the {' and '.join(marker)} of a write; set them in"
            " the table",
            table=config.name,
        )


def refuse_cdc(config: TableConfig) -> None:
    """Raise `UnsupportedTableError` for a table whose changes have to be recorded (`hoodie.table.cdc.enabled`)."""
    if config.cdc_enabled:
        raise UnsupportedTableError(
            "the changes of this table are to be recorded (hoodie.table.cdc.enabled=true), which this engine does not do: only new"
            " records can be inserted. Update it with Hudi, or copy its rows into a table without change data capture",
            table=config.name,
        )


def _write_schema(state: TableState, request: WriteRequest) -> pa.Schema:
    table = table_schema(state)
    if request.data is None or request.operation is WriteOperationType.DELETE:
        return table
    offered = request.data.schema
    if request.given_keys:
        offered = pa.schema([field for field in offered if not field.name.startswith("_hoodie_record_key")])
    if state.config.deletes_softly:
        offered, table = with_deleted_at(offered), with_deleted_at(table) if len(table) else table
    if not request.replace_schema:
        offered = typed_nulls(offered, table)
    incoming = canonical_schema(offered, allow_timestamp_ntz=request.options.allow_timestamp_ntz or _has_ntz(table))
    check_reserved(incoming)
    if request.replace_schema or not len(table):
        return pa.schema([field.with_nullable(True) for field in incoming])
    evolve, partial = request.options.schema_evolution, request.update_columns is not None
    return pa.schema([field.with_nullable(True) for field in reconcile(table, incoming, evolve=evolve, partial=partial)])


def _check_columns(config: TableConfig, request: WriteRequest, ordering: OrderingFields) -> None:
    """Refuse to fill key, partition and ordering columns with nulls, whatever else a batch may leave out.

    Hudi 0.15 sets an ordering field `ts` in tables without such a column and inserts into them; so does this engine.
    """
    if request.data is None or request.operation is WriteOperationType.DELETE:
        return
    offered = {field.name.lower() for field in request.data.schema}
    needed = (*config.record_key_fields, *config.partition_fields)
    for name in (*needed, *(ordering.roots if request.operation not in _NEEDS_KEYS else config.ordering_fields)):
        if name.split(".")[0].lower() not in offered:
            raise SchemaIncompatibleError(f"the table's key, partition or ordering column {name!r} is not in the batch", column=name)
    for name in () if request.replace_schema else config.constraints.not_null:
        if name.lower() not in offered:
            raise ConstraintError(f"the column {name!r} is NOT NULL and is not in the batch", column=name)


def _check_update_columns(config: TableConfig, request: WriteRequest, schema: pa.Schema) -> None:
    offered = None if request.data is None else {field.name.lower() for field in request.data.schema} | {*_soft_columns(config)}
    for name in request.update_columns or ():
        if name not in schema.names:
            raise OptionError(f"the column to update {name!r} is not in the table; it has {', '.join(schema.names)}", column=name)
        if offered is not None and name.lower() not in offered:
            raise OptionError(f"the column to update {name!r} is not in the batch, so that there is nothing to update it to", column=name)
        if name in config.record_key_fields:
            raise OptionError(f"{name!r} is part of the record key and cannot be among the columns to update", column=name)


def _has_ntz(schema: pa.Schema) -> bool:
    def nested(kind: pa.DataType) -> bool:
        if pa.types.is_timestamp(kind):
            return kind.tz is None
        return any(nested(kind.field(number).type) for number in range(kind.num_fields))

    return any(nested(field.type) for field in schema)
