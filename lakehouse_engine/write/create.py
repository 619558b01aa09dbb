"""Makes a new, empty table: its `hoodie.properties`, in a form that every Hudi version can use (interop.md, d)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from lakehouse_engine.errors import OptionError, SchemaIncompatibleError
from lakehouse_engine.format.avro.arrow_avro import table_avro_schema
from lakehouse_engine.format.new_table import NewTable
from lakehouse_engine.format.table_format import format_of_version
from lakehouse_engine.index.consistent import refuse_changing_buckets
from lakehouse_engine.index.registry import check_index
from lakehouse_engine.model.constraints import NO_CONSTRAINTS, Constraints
from lakehouse_engine.model.merge_mode import MergeMode
from lakehouse_engine.model.table_config import DELETES_KEY, MATERIALIZED_KEY, TableConfig, TableType
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.options import (
    DELETE_FIELD,
    DELETE_MARKER,
    INDEX_TYPE,
    MERGE_MODE,
    NUM_BUCKETS,
    OPTIONS,
    PAYLOAD_CLASS,
    PAYLOADS_OF_MODES,
    TABLE_VERSION,
    LockOptions,
    ServiceOptions,
    WriteOptions,
    check_known,
    layered,
    stored_defaults,
)
from lakehouse_engine.options.unavailable import stored_keys
from lakehouse_engine.record.keys.keygen import choose_key_generator
from lakehouse_engine.record.merging.ordering_fields import OrderingFields
from lakehouse_engine.record.merging.payloads import PAYLOADS, last_name, payload_of
from lakehouse_engine.record.merging.soft_deletes import check_soft_deletes, with_deleted_at
from lakehouse_engine.record.schema import check_reserved
from lakehouse_engine.record.types import canonical_schema
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.locks.settings import check_provider_fits

TABLE_TYPES = {"cow": TableType.COPY_ON_WRITE, "mor": TableType.MERGE_ON_READ}
HIVE_STYLE, URL_ENCODE = "hoodie.datasource.write.hive_style_partitioning", "hoodie.datasource.write.partitionpath.urlencode"
_TABLE_KEYS = ("hoodie.table.keygenerator.class", HIVE_STYLE, URL_ENCODE, "hoodie.database.name", DELETES_KEY)


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A new table. `schema` has user columns in any Arrow form; without `record_key`, keys are generated."""

    name: str
    schema: pa.Schema
    record_key: Sequence[str] = ()
    ordering_fields: Sequence[str] = ()
    partition_by: Sequence[str] = ()
    table_type: str = "cow"
    hive_style: bool = True
    properties: Mapping[str, str] = field(default_factory=dict)
    constraints: Constraints = NO_CONSTRAINTS
    query: str | None = None
    """The query of a materialized view."""
    version: TableVersion = TableVersion.SIX
    """Default, unless `properties` set another (`hoodie.write.table.version`)."""

    @property
    def stored_type(self) -> TableType:
        """Value of `table_type` in the properties."""
        return TABLE_TYPES[self.table_type]


# Since 1.1 Hudi writes the key of a ComplexKeyGenerator with one key field as `field:value`, releases 0.14.1 to 1.0 (and we) as the bare
# value (HUDI-7001). Hudi reads writer options from the properties too: these make it continue with bare values instead of refusing to
# write.
_BARE_SINGLE_KEYS = {
    "hoodie.write.complex.keygen.new.encoding": "true",
    "hoodie.write.complex.keygen.validation.enable": "false",
}


def create_table(storage: Storage, spec: TableSpec, defaults: Mapping[str, Any] = MappingProxyType({})) -> TableConfig:
    """Write the properties of a new table. Raises `TableExistsError`, and as `config_of`."""
    config = config_of(storage, spec, defaults)
    refuse_changing_buckets(storage, config, WriteOptions.read(spec.properties))
    return ConfigStore(storage).create(config)


def config_of(storage: Storage, spec: TableSpec, defaults: Mapping[str, Any] = MappingProxyType({})) -> TableConfig:
    """Properties of a new table, of whose storage only the kind counts. Refuses what could not be written later, with typed errors.

    `defaults` are additional options of its writers.
    """
    options = WriteOptions.read(spec.properties)
    version = TABLE_VERSION.read(spec.properties) or TABLE_VERSION.read(defaults)
    if version is not None:
        spec = replace(spec, version=TableVersion(version))
    check_provider_fits(storage, LockOptions.read(spec.properties))
    check_known(spec.properties, also=_TABLE_KEYS)
    ServiceOptions.read(layered(spec.properties, defaults))
    for key in (HIVE_STYLE, URL_ENCODE):
        if str(spec.properties.get(key, "true")).lower() not in ("true", "false"):
            raise OptionError(f"{key}={spec.properties[key]!r} is neither true nor false", table=spec.name)
    schema = canonical_schema(_columns(spec), allow_timestamp_ntz=options.allow_timestamp_ntz)
    check_reserved(schema)
    _check(spec, schema)
    config = TableConfig(_properties(spec, schema, options))
    refuse_changing_buckets(storage, config, options, may_be_stored=False)
    payload = payload_of(config)
    payload.check_columns(schema)
    payload.check_marker(options.delete_marker)
    payload.delete_marks(config.properties)
    if config.deletes_softly:
        check_soft_deletes(config, payload)
    check_index(config, options)
    return config


def _columns(spec: TableSpec) -> pa.Schema:
    deletes = str(spec.properties.get(DELETES_KEY, "hard")).lower()
    if deletes not in ("hard", "soft"):
        raise OptionError(f"{DELETES_KEY}={deletes!r} is neither hard nor soft", table=spec.name)
    return with_deleted_at(spec.schema) if deletes == "soft" else spec.schema


def _check(spec: TableSpec, schema: pa.Schema) -> None:
    if spec.table_type not in TABLE_TYPES:
        raise OptionError(f"table_type={spec.table_type!r} is neither 'cow' nor 'mor'", table=spec.name)
    if len(spec.ordering_fields) > 1 and spec.version is TableVersion.SIX:
        raise OptionError(
            f"table version 6 keeps one ordering field, not {list(spec.ordering_fields)}; combine them into one column", table=spec.name
        )
    if not schema.names:
        raise SchemaIncompatibleError("a table needs a column; the schema has none", table=spec.name)
    for name in spec.ordering_fields:
        _check_ordering(spec, schema, name)
    for role, names in (("record key", spec.record_key), ("partition", spec.partition_by)):
        for name in names:
            if name not in schema.names:
                message = f"the {role} column {name!r} is not in the schema {schema.names}"
                raise SchemaIncompatibleError(message, table=spec.name, column=name)
    for name in (*spec.record_key, *spec.partition_by):
        kind = schema.field(name).type
        if pa.types.is_nested(kind) or pa.types.is_binary(kind):
            raise SchemaIncompatibleError(f"the column {name!r} of type {kind} cannot be a key", table=spec.name, column=name)


def _check_ordering(spec: TableSpec, schema: pa.Schema, name: str) -> None:
    kinds = OrderingFields.of([name], schema).types(schema)
    if not kinds:
        message = f"the ordering column {name!r} is not in the schema {schema.names}"
        raise SchemaIncompatibleError(message, table=spec.name, column=name)
    if pa.types.is_nested(kinds[0]):
        raise SchemaIncompatibleError(f"the ordering field {name!r} of type {kinds[0]} has no order", table=spec.name, column=name)


def _index(options: WriteOptions) -> dict[str, Any]:
    """The complete index settings: a default may change later, but the table's buckets may not."""
    if options.index_type != "BUCKET":
        return {INDEX_TYPE.key: INDEX_TYPE.default}
    return {NUM_BUCKETS.key: options.num_buckets}


def usual_payload(ordering_fields: Sequence[str]) -> str:
    """Default payload class. It is stored, also for copy-on-write tables, for which Hudi 0.15 stores none, so that other writers do not use
    theirs.
    """
    return "DefaultHoodieRecordPayload" if ordering_fields else "OverwriteWithLatestAvroPayload"


def _properties(spec: TableSpec, schema: pa.Schema, options: WriteOptions) -> dict[str, str]:
    payload = last_name(options.payload_class) or usual_payload(spec.ordering_fields)
    if payload not in PAYLOADS:
        raise OptionError(f"the payload class {payload!r} is not known; the engine has {', '.join(PAYLOADS)}", table=spec.name)
    key_generator = choose_key_generator(spec.record_key, spec.partition_by)
    apart = (PAYLOAD_CLASS.key, *PAYLOAD_CLASS.aliases, MERGE_MODE.key, *MERGE_MODE.aliases, DELETE_FIELD.key, DELETE_MARKER.key)
    apart += (TABLE_VERSION.key, *TABLE_VERSION.aliases)
    given = {key: value for key, value in spec.properties.items() if key in OPTIONS and key not in apart}
    others = stored_keys({key: value for key, value in spec.properties.items() if key not in OPTIONS and key not in apart})
    return {
        **_template(spec, key_generator, payload),
        **(_BARE_SINGLE_KEYS if key_generator == "ComplexKeyGenerator" and len(spec.record_key) == 1 else {}),
        "hoodie.table.create.schema": table_avro_schema(spec.name, schema, allow_timestamp_ntz=True),
        **stored_defaults({**_index(options), **given}),
        **{key: str(value) for key, value in others.items()},
        # Under their own names: readers of logs must know them.
        **options.delete_marker,
        **{key: value for key, value in spec.constraints.properties().items() if value is not None},
        **({} if spec.query is None else {MATERIALIZED_KEY: spec.query}),
    }


def _template(spec: TableSpec, key_generator: str, payload: str) -> dict[str, str]:
    form = format_of_version(spec.version)
    return form.new_table(
        spec.version,
        NewTable(
            name=spec.name,
            table_type=spec.stored_type,
            key_generator=_WORDS[key_generator],
            record_key_fields=spec.record_key,
            ordering_fields=spec.ordering_fields,
            partition_fields=spec.partition_by,
            database="",
            merge_mode=_merge_mode(spec, payload) if form.stores_merge_mode else None,
            payload_class=PAYLOADS[payload].java_class,
            hive_style=spec.hive_style,
            url_encode=True,
        ),
    )


def _merge_mode(spec: TableSpec, payload: str) -> MergeMode:
    """The mode that a payload class stands for. Raises `OptionError` for one without a mode."""
    mode = next((mode for mode in (MergeMode.EVENT_TIME, MergeMode.COMMIT_TIME) if payload in PAYLOADS_OF_MODES[mode]), None)
    if mode is None or payload != _PLAIN[mode]:
        raise OptionError(
            f"a table of version {int(spec.version)} merges by event time or by commit time, not by {payload}; leave the payload class out,"
            " or make the table in version 6",
            table=spec.name,
        )
    if mode is MergeMode.COMMIT_TIME and spec.ordering_fields:
        raise OptionError(
            f"{payload} and the ordering fields {list(spec.ordering_fields)} do not go together in version {int(spec.version)}: leave one"
            " out",
            table=spec.name,
        )
    return mode


_WORDS = {"NonpartitionedKeyGenerator": "NON_PARTITION", "SimpleKeyGenerator": "SIMPLE", "ComplexKeyGenerator": "COMPLEX"}
_PLAIN = {MergeMode.EVENT_TIME: "DefaultHoodieRecordPayload", MergeMode.COMMIT_TIME: "OverwriteWithLatestAvroPayload"}
