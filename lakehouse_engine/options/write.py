"""Options of writes and of where their tasks run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakehouse_engine.errors import OptionError
from lakehouse_engine.options.base import Option, boolean, natural, natural_size, one_of, positive, positive_size, probability
from lakehouse_engine.options.clustering import ROLLBACK_ON_CONFLICT, UPDATES_STRATEGY
from lakehouse_engine.options.hbase import HBASE_UPDATE_PARTITION_PATH, HBaseOptions
from lakehouse_engine.options.index import AutoIndexOptions

_GLOBAL_RECORD_LEVEL = "GLOBAL_RECORD_LEVEL_INDEX"
_OTHER_NAMES = {"RECORD_INDEX": _GLOBAL_RECORD_LEVEL, "RECORD_LEVEL": _GLOBAL_RECORD_LEVEL}
"""Hudi's name of the index up to 1.0, and dbt's."""
_INDEXES = one_of(
    "AUTO", "SIMPLE", "GLOBAL_SIMPLE", "BLOOM", "GLOBAL_BLOOM", "BUCKET", "HBASE", "RECORD_LEVEL_INDEX", _GLOBAL_RECORD_LEVEL, *_OTHER_NAMES
)


def _index_type(text: str) -> str:
    named = _INDEXES(text)
    return _OTHER_NAMES.get(named, named)


def _partitioner(text: str) -> str:
    name = text.strip().rpartition(".")[2]
    if name not in _PARTITIONERS:
        raise ValueError(f"expected one of {', '.join(_PARTITIONERS)}")
    return name


_PARTITIONERS = ("RowCustomColumnsSortPartitioner", "RDDCustomColumnsSortPartitioner", "JavaCustomColumnsSortPartitioner")
MAX_FILE_SIZE = Option("hoodie.parquet.max.file.size", positive_size, 120 * 1024 * 1024, "Target size of a base file, in bytes.")
SMALL_FILE_LIMIT = Option(
    "hoodie.parquet.small.file.limit",
    natural_size,
    100 * 1024 * 1024,
    "Base files below this many bytes take new records; 0 turns that off.",
)
COMPRESSION = Option(
    "hoodie.parquet.compression.codec",
    one_of("ZSTD", "SNAPPY", "GZIP", "LZ4_RAW", "UNCOMPRESSED"),
    "ZSTD",
    "Codec of base files. Hudi's default (gzip) costs twelve times as much to write.",
)
INDEX_TYPE = Option(
    "hoodie.index.type",
    _index_type,
    "AUTO",
    "How the file group of a key is found. AUTO: as the table was created; SIMPLE for another writer's table. A table created with AUTO,"
    " the default, looks into all files (GLOBAL_SIMPLE) while they are few (lakehouse.index.auto.files), and then gets a record index."
    " A write may not ask for an index of one partition where the table's is global. GLOBAL_RECORD_LEVEL_INDEX (RECORD_INDEX, RECORD_LEVEL)"
    " asks the metadata table, which gets a record index then; RECORD_LEVEL_INDEX one of each partition, where Hudi made it. HBASE asks a"
    " table of HBase (docs/guides/hbase.md).",
)
UPDATE_PARTITION_PATH = Option(
    "hoodie.simple.index.update.partition.path",
    boolean,
    True,
    "With a global index: a record that arrives under another partition moves there (true), or is updated where it is (false).",
    ("hoodie.bloom.index.update.partition.path", "hoodie.global.index.update.partition.path"),
)
BLOOM_FPP: Option[float | None] = Option(
    "hoodie.index.bloom.fpp",
    probability,
    None,
    "False positive rate of the Bloom filter in base file footers. Not set: 0.001, or 0.1 where the table's index is none that asks it.",
)
BLOOM_TYPE = Option(
    "hoodie.bloom.index.filter.type",
    one_of("SIMPLE", "DYNAMIC_V0"),
    "DYNAMIC_V0",
    "Form of the Bloom filter in base file footers. Hudi takes every filter in the metadata table for one of its own default, DYNAMIC_V0.",
)
BLOOM_ENTRIES: Option[int | None] = Option(
    "hoodie.index.bloom.num_entries",
    positive,
    None,
    "Keys that a DYNAMIC_V0 filter is sized for. Not set: those of the file, and an eighth more.",
)
BLOOM_MAX_ENTRIES = Option(
    "hoodie.bloom.index.filter.dynamic.max.entries", positive, 100000, "Keys up to which a DYNAMIC_V0 filter grows."
)
ROW_GROUP_ROWS = Option("lakehouse.parquet.row.group.rows", positive_size, 500_000, "Rows in a Parquet row group of a base file.")
COMBINE_BEFORE_INSERT = Option(
    "hoodie.combine.before.insert", boolean, False, "Whether insert and bulk_insert reduce a batch to one row a key."
)
SORT_MODE = Option(
    "hoodie.bulkinsert.sort.mode",
    one_of("NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"),
    "PARTITION_PATH_REPARTITION_AND_SORT",
    "How rows of bulk_insert, insert_overwrite and insert_overwrite_table are dealt to Spark's tasks and ordered. NONE (Hudi's default):"
    " as they come, each task with a file in every partition that it has rows of. GLOBAL_SORT: all by partition, then by record key."
    " PARTITION_SORT: so within each task. PARTITION_PATH_REPARTITION: the rows of a partition in one task; with _AND_SORT one partition"
    " after the other. Rows of Arrow data are together by partition in any case, and GLOBAL_SORT and PARTITION_SORT are one.",
)
SORT_COLUMNS = Option(
    "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
    str,
    "",
    "Columns, with commas between them, by which rows of a partition are sorted instead of by record key: all of them"
    " (GLOBAL_SORT), or as hoodie.bulkinsert.sort.mode says.",
)
SORT_PARTITIONER = Option(
    "hoodie.bulkinsert.user.defined.partitioner.class",
    _partitioner,
    "",
    "RowCustomColumnsSortPartitioner or RDDCustomColumnsSortPartitioner (a Java class name, of which the last part counts): what Hudi"
    " needs besides hoodie.bulkinsert.user.defined.partitioner.sort.columns, whatever the sort mode.",
)
INSERT_DUP_POLICY = Option(
    "hoodie.datasource.insert.dup.policy",
    one_of("NONE", "DROP", "FAIL"),
    "NONE",
    "What an insert (not a bulk_insert) does with rows whose key is stored: add them, leave them out, or refuse the whole write. DROP and"
    " FAIL look keys up, and take a record key.",
)
INSERT_DROP_DUPLICATES = Option(
    "hoodie.datasource.write.insert.drop.duplicates",
    boolean,
    False,
    "The older way to say hoodie.datasource.insert.dup.policy=DROP.",
)
DUPLICATE_POLICY = Option(
    "lakehouse.duplicate.source.keys",
    one_of("LATEST", "ERROR"),
    "LATEST",
    "What an upsert does with several rows of one key in its batch: keep the latest by ordering field, or refuse.",
)
ALLOW_TIMESTAMP_NTZ = Option(
    "lakehouse.allow.timestamp.ntz",
    boolean,
    False,
    "Store timestamps without zone, which only Hudi 1.x can read (0.15 and hudi-rs cannot read the table any more).",
)
SCHEMA_EVOLUTION = Option(
    "hoodie.datasource.write.reconcile.schema",
    boolean,
    False,
    "Whether a batch may add columns, widen them, or leave some out: stored rows keep theirs, new ones have null. Otherwise its columns are"
    " the table's.",
)
def _table_version(text: str) -> int | None:
    number = _VERSION_WORDS.get(text.strip().upper())
    if number is None:
        raise ValueError("expected 6, 8 or 9")
    return number


_VERSION_WORDS = {"6": 6, "SIX": 6, "8": 8, "EIGHT": 8, "9": 9, "NINE": 9}
TABLE_VERSION: Option[int | None] = Option(
    "hoodie.write.table.version",
    _table_version,
    None,
    "Version of a new table: 6 (the default, which most readers know), 8 or 9. Of a table that is there it has to be the table's.",
    ("hoodie.table.version",),
)
PAYLOAD_CLASS = Option(
    "hoodie.datasource.write.payload.class",
    str,
    "",
    "How a new record meets the stored one: one of Hudi's payload classes that docs/interop.md lists; by default event time"
    " (DefaultHoodieRecordPayload) with an ordering field, else OverwriteWithLatestAvroPayload.",
    ("hoodie.compaction.payload.class",),
)
MERGE_MODE = Option(
    "hoodie.write.record.merge.mode",
    one_of("EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING", "CUSTOM"),
    "",
    "Hudi 1.x's way to say DefaultHoodieRecordPayload (EVENT_TIME_ORDERING) or OverwriteWithLatestAvroPayload (COMMIT_TIME_ORDERING);"
    " CUSTOM needs a payload class.",
    ("hoodie.record.merge.mode",),
)
PAYLOADS_OF_MODES = {
    "EVENT_TIME_ORDERING": ("DefaultHoodieRecordPayload", "EventTimeAvroPayload"),
    "COMMIT_TIME_ORDERING": ("OverwriteWithLatestAvroPayload",),
}
"""Payload classes that Hudi 1.x maps to each merge mode (`HoodieTableConfig.inferMergingConfigsForPreV9Table`); the first is the mode's
own.
"""
DELETE_FIELD = Option(
    "hoodie.payload.delete.field",
    str,
    "",
    "Column that marks deletions, for DefaultHoodieRecordPayload and FirstValueAvroPayload; with hoodie.payload.delete.marker.",
)
DELETE_MARKER = Option("hoodie.payload.delete.marker", str, "", "Value of hoodie.payload.delete.field in rows that delete.")
LOCK_TIMEOUT_MS = Option(
    "hoodie.write.lock.wait_time_ms",
    natural,
    600_000,
    "How long to wait for the table lock, which a write holds from start to end, in milliseconds.",
)
CONFLICT_RETRIES = Option(
    "hoodie.write.num.retries.on.conflict.failures",
    natural,
    8,
    "How often a statement that reads what it changes is run again because a commit in between changed what it had read.",
)
LOG_BLOCK_FORMAT = Option(
    "hoodie.logfile.data.block.format", one_of("PARQUET", "AVRO"), "PARQUET", "Format of data blocks in the logs of merge-on-read tables."
)
RECORD_POSITIONS = Option(
    "hoodie.write.record.positions",
    boolean,
    True,
    "Whether blocks in logs say which rows of the base file they are of, where the write knows it: a read need not look for their keys"
    " then. In table versions 8 and 9 their headers do, which Hudi reads too; in version 6 footers of Parquet blocks, which only this"
    " engine reads.",
)
PARTIAL_UPDATES = Option(
    "hoodie.spark.sql.merge.into.partial.updates",
    boolean,
    True,
    "Whether an upsert that updates some columns logs rows that have those only, in merge-on-read tables of versions 8 and 9.",
)
WRITE_BATCH_SIZE = Option(
    "write.batch.size", positive, 256, "Megabytes of a file group's records that are buffered before they are written as a log block."
)
WRITE_TASK_MAX_SIZE = Option(
    "write.task.max.size", positive, 1024, "Megabytes that a write buffers for all file groups together; above, the largest is written."
)
WRITE_PRECOMBINE = Option(
    "write.precombine", boolean, False, "Whether an insert into logs keeps one row a key of what is buffered together."
)
NUM_BUCKETS = Option(
    "hoodie.bucket.index.num.buckets", positive, 256, "Buckets of a partition, for the BUCKET index; fixed for the life of a table."
)
BUCKET_HASH_FIELD = Option(
    "hoodie.bucket.index.hash.field", str, "", "Key fields that choose the bucket, for the BUCKET index; all of them by default."
)
BUCKET_ENGINE = Option(
    "hoodie.index.bucket.engine",
    one_of("SIMPLE", "CONSISTENT_HASHING"),
    "SIMPLE",
    "How the BUCKET index makes buckets: a fixed number (SIMPLE); those of CONSISTENT_HASHING can be read, and writes are refused.",
)
TASK_RUNNER = Option(
    "lakehouse.task.runner",
    one_of("AUTO", "SPARK", "LOCAL"),
    "AUTO",
    "Where file tasks run: Spark executors, or threads of this process (AUTO: threads when Spark's master is local).",
)
SHIP_ENGINE = Option(
    "lakehouse.ship.engine",
    boolean,
    False,
    "Whether Spark's executors are sent the engine's code, for clusters on which it is not installed.",
)
TASK_THREADS = Option("lakehouse.task.threads", natural, 0, "Threads for file tasks in this process; 0 takes one a processor.")
DRIVER_BYTES = Option(
    "lakehouse.stage.driver.max.bytes",
    natural_size,
    4 * 1024 * 1024,
    "Bytes that a query reads up to which its rows come to the driver instead of being staged by Python workers, where it makes no more"
    " than eight times as many of them; those of at most 100 rows by its plan always do, and of 10,000 where no value is wide. 0: never.",
)
BROADCAST_BYTES = Option(
    "lakehouse.write.broadcast.max.bytes",
    natural_size,
    64 * 1024 * 1024,
    "Bytes of record keys and partition paths of a batch up to which one process plans the write; above, they are dealt into shares, which"
    " tasks plan. 0: always shares.",
)

LOGICAL_TIMESTAMP = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
KEY_GENERATOR_KEYS = ("hoodie.datasource.write.partitionpath.field", "hoodie.keygen.timebased.", LOGICAL_TIMESTAMP)
"""Keys (or prefixes) by which a write states what Hudi 0.15 does not store of a timestamp-based or custom key generator."""


_ASKED_FPP = 1e-3
"""Options of a filter that excludes files."""


def _bloom_fpp(raw: Mapping[str, Any]) -> float:
    """If the index uses no filters, they serve other writers, and every reader of a footer has to read them."""
    asks = INDEX_TYPE.key not in raw or "BLOOM" in INDEX_TYPE.read(raw)
    return _ASKED_FPP if asks else 0.1


def _update_partition_path(raw: Mapping[str, Any]) -> bool:
    """Hudi's HBASE index has an option of its own, whose default is the opposite."""
    return (HBASE_UPDATE_PARTITION_PATH if INDEX_TYPE.read(raw) == "HBASE" else UPDATE_PARTITION_PATH).read(raw)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What a write asks for. Read once from the table's defaults, the session's options and the call's, in that order."""

    max_file_size: int = MAX_FILE_SIZE.default
    small_file_limit: int = SMALL_FILE_LIMIT.default
    compression: str = COMPRESSION.default
    index_type: str = INDEX_TYPE.default
    auto_index: AutoIndexOptions = field(default_factory=AutoIndexOptions)
    hbase: HBaseOptions = field(default_factory=HBaseOptions)
    update_partition_path: bool = UPDATE_PARTITION_PATH.default
    bloom_fpp: float = _ASKED_FPP
    bloom_type: str = BLOOM_TYPE.default
    bloom_entries: int | None = BLOOM_ENTRIES.default
    bloom_max_entries: int = BLOOM_MAX_ENTRIES.default
    row_group_rows: int = ROW_GROUP_ROWS.default
    combine_before_insert: bool = COMBINE_BEFORE_INSERT.default
    sort_mode: str = SORT_MODE.default
    sort_columns: tuple[str, ...] = ()
    insert_dup_policy: str = INSERT_DUP_POLICY.default
    duplicate_policy: str = DUPLICATE_POLICY.default
    allow_timestamp_ntz: bool = ALLOW_TIMESTAMP_NTZ.default
    schema_evolution: bool = SCHEMA_EVOLUTION.default
    payload_class: str = PAYLOAD_CLASS.default
    delete_marker: Mapping[str, str] = field(default_factory=dict)
    lock_timeout_ms: int = LOCK_TIMEOUT_MS.default
    log_block_format: str = LOG_BLOCK_FORMAT.default
    record_positions: bool = RECORD_POSITIONS.default
    partial_updates: bool = PARTIAL_UPDATES.default
    batch_size_mb: int = WRITE_BATCH_SIZE.default
    task_max_size_mb: int = WRITE_TASK_MAX_SIZE.default
    precombine: bool = WRITE_PRECOMBINE.default
    num_buckets: int = NUM_BUCKETS.default
    bucket_hash_field: str = BUCKET_HASH_FIELD.default
    bucket_engine: str = BUCKET_ENGINE.default
    key_generator: Mapping[str, str] = field(default_factory=dict)
    driver_bytes: int = DRIVER_BYTES.default
    broadcast_bytes: int = BROADCAST_BYTES.default
    clustering_updates: str = UPDATES_STRATEGY.default
    clustering_rollback: bool = ROLLBACK_ON_CONFLICT.default

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> WriteOptions:
        return cls(
            max_file_size=MAX_FILE_SIZE.read(raw),
            small_file_limit=SMALL_FILE_LIMIT.read(raw),
            compression=COMPRESSION.read(raw),
            index_type=INDEX_TYPE.read(raw),
            auto_index=AutoIndexOptions.read(raw),
            hbase=HBaseOptions.read(raw),
            update_partition_path=_update_partition_path(raw),
            bloom_fpp=BLOOM_FPP.read(raw) or _bloom_fpp(raw),
            bloom_type=BLOOM_TYPE.read(raw),
            bloom_entries=BLOOM_ENTRIES.read(raw),
            bloom_max_entries=BLOOM_MAX_ENTRIES.read(raw),
            row_group_rows=ROW_GROUP_ROWS.read(raw),
            combine_before_insert=COMBINE_BEFORE_INSERT.read(raw),
            sort_mode=_sort_mode(raw),
            sort_columns=_sort_columns(raw),
            insert_dup_policy=_insert_dup_policy(raw),
            duplicate_policy=DUPLICATE_POLICY.read(raw),
            allow_timestamp_ntz=ALLOW_TIMESTAMP_NTZ.read(raw),
            schema_evolution=SCHEMA_EVOLUTION.read(raw),
            payload_class=_payload_class(raw),
            delete_marker={option.key: value for option in (DELETE_FIELD, DELETE_MARKER) if (value := option.read(raw))},
            lock_timeout_ms=LOCK_TIMEOUT_MS.read(raw),
            log_block_format=LOG_BLOCK_FORMAT.read(raw),
            record_positions=RECORD_POSITIONS.read(raw),
            partial_updates=PARTIAL_UPDATES.read(raw),
            batch_size_mb=WRITE_BATCH_SIZE.read(raw),
            task_max_size_mb=WRITE_TASK_MAX_SIZE.read(raw),
            precombine=WRITE_PRECOMBINE.read(raw),
            num_buckets=NUM_BUCKETS.read(raw),
            bucket_hash_field=BUCKET_HASH_FIELD.read(raw),
            bucket_engine=BUCKET_ENGINE.read(raw),
            key_generator={key: str(value) for key, value in raw.items() if key.startswith(KEY_GENERATOR_KEYS)},
            driver_bytes=DRIVER_BYTES.read(raw),
            broadcast_bytes=BROADCAST_BYTES.read(raw),
            clustering_updates=UPDATES_STRATEGY.read(raw),
            clustering_rollback=ROLLBACK_ON_CONFLICT.read(raw),
        )


def _sort_columns(raw: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(name.strip() for name in SORT_COLUMNS.read(raw).split(",") if name.strip())


def _sort_mode(raw: Mapping[str, Any]) -> str:
    """The mode, GLOBAL_SORT where columns are named and no mode, or Hudi's partitioner by columns, which sorts so whatever the mode.

    Raises `OptionError` where the options contradict each other.
    """
    columns, named, mode = _sort_columns(raw), SORT_PARTITIONER.read(raw), SORT_MODE.read(raw)
    if named and not columns:
        raise OptionError(f"{SORT_PARTITIONER.key}={named} sorts by columns: name them in {SORT_COLUMNS.key}")
    if not columns:
        return mode
    if named or raw.get(SORT_MODE.key) is None:
        return "GLOBAL_SORT"
    if mode in ("NONE", "PARTITION_PATH_REPARTITION"):
        raise OptionError(f"{SORT_MODE.key}={mode} sorts by no column, which contradicts {SORT_COLUMNS.key}: keep one of the two")
    return mode


def _insert_dup_policy(raw: Mapping[str, Any]) -> str:
    """Raises `OptionError` if the two options contradict each other."""
    policy, drops = INSERT_DUP_POLICY.read(raw), INSERT_DROP_DUPLICATES.read(raw)
    if drops and policy == "FAIL":
        raise OptionError(f"{INSERT_DROP_DUPLICATES.key}=true contradicts {INSERT_DUP_POLICY.key}=FAIL: keep one of the two")
    return "DROP" if drops else policy


def _payload_class(raw: Mapping[str, Any]) -> str:
    """Payload class that is named, or that the merge mode means. Raises `OptionError` if the two contradict each other."""
    named, mode = PAYLOAD_CLASS.read(raw).strip(), MERGE_MODE.read(raw)
    means = PAYLOADS_OF_MODES.get(mode, ())
    if mode == "CUSTOM" and not named:
        raise OptionError(f"{MERGE_MODE.key}=CUSTOM says nothing about how rows are merged: name a payload class in {PAYLOAD_CLASS.key}")
    if means and named and named.rpartition(".")[2] not in means:
        raise OptionError(f"{MERGE_MODE.key}={mode} contradicts {PAYLOAD_CLASS.key}={named}: keep one of the two")
    return named or (means[0] if means else "")
