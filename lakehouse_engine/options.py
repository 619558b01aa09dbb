"""Every option: its key, type, default, older names and one line of meaning.

An option's key is Hudi's where Hudi has one; the engine's own start with `lakehouse.`. Groups are frozen dataclasses read once
at the edge (`WriteOptions.read(raw)`); actions get groups, never a dict.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from lakehouse_engine.errors import OptionError, UnknownOptionError

T = TypeVar("T")


def _boolean(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError("expected true or false")
    return lowered == "true"


def _positive(text: str) -> int:
    value = int(text)
    if value <= 0:
        raise ValueError("expected a positive whole number")
    return value


def _natural(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError("expected a whole number, 0 or more")
    return value


def _probability(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise ValueError("expected a number between 0 and 1")
    return value


def _one_of(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        value = text.strip().upper()
        if value not in allowed:
            raise ValueError(f"expected one of {', '.join(allowed)}")
        return value

    return parse


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """One key. `parse` turns its text into a value; `aliases` are names that Hudi gave it in other versions."""

    key: str
    parse: Callable[[str], T]
    default: T
    doc: str
    aliases: tuple[str, ...] = ()

    def read(self, raw: Mapping[str, Any]) -> T:
        """The value in `raw` (values may be text or already typed), else the default. Raises `OptionError` naming the key used."""
        for key in (self.key, *self.aliases):
            if key in raw and raw[key] is not None:
                value = raw[key]
                text = str(value).lower() if isinstance(value, bool) else str(value)
                try:
                    return self.parse(text)
                except ValueError as error:
                    raise OptionError(f"{key}={text!r} does not parse: {error}") from error
        return self.default


MAX_FILE_SIZE = Option("hoodie.parquet.max.file.size", _positive, 120 * 1024 * 1024, "Target size of a base file, in bytes.")
SMALL_FILE_LIMIT = Option(
    "hoodie.parquet.small.file.limit", _natural, 100 * 1024 * 1024, "Base files below this many bytes take new records; 0 turns that off."
)
COMPRESSION = Option(
    "hoodie.parquet.compression.codec",
    _one_of("ZSTD", "SNAPPY", "GZIP", "LZ4_RAW", "UNCOMPRESSED"),
    "ZSTD",
    "Codec of base files. Hudi's default (gzip) costs twelve times as much to write.",
)
INDEX_TYPE = Option(
    "hoodie.index.type",
    _one_of("AUTO", "SIMPLE", "GLOBAL_SIMPLE", "BLOOM", "GLOBAL_BLOOM"),
    "AUTO",
    "How the file group of a key is found. AUTO: as the table was created (GLOBAL_SIMPLE by default); SIMPLE for another writer's table.",
)
UPDATE_PARTITION_PATH = Option(
    "hoodie.simple.index.update.partition.path",
    _boolean,
    True,
    "With a global index: a record that arrives under another partition moves there (true), or is updated where it is (false).",
    ("hoodie.bloom.index.update.partition.path", "hoodie.global.index.update.partition.path"),
)
BLOOM_FPP = Option("hoodie.index.bloom.fpp", _probability, 1e-3, "False positive rate of the Bloom filter in base file footers.")
BLOOM_TYPE = Option(
    "hoodie.bloom.index.filter.type",
    _one_of("SIMPLE", "DYNAMIC_V0"),
    "SIMPLE",
    "Form of the Bloom filter in base file footers: sized to the file, or Hudi's growing one.",
)
BLOOM_ENTRIES = Option("hoodie.index.bloom.num_entries", _positive, 60000, "Keys that a DYNAMIC_V0 filter is sized for.")
BLOOM_MAX_ENTRIES = Option(
    "hoodie.bloom.index.filter.dynamic.max.entries", _positive, 100000, "Keys up to which a DYNAMIC_V0 filter grows."
)
ROW_GROUP_ROWS = Option("lakehouse.parquet.row.group.rows", _positive, 500_000, "Rows in a Parquet row group of a base file.")
COMBINE_BEFORE_INSERT = Option(
    "hoodie.combine.before.insert", _boolean, False, "Whether insert and bulk_insert reduce a batch to one row a key."
)
DUPLICATE_POLICY = Option(
    "lakehouse.duplicate.source.keys",
    _one_of("LATEST", "ERROR"),
    "LATEST",
    "What an upsert does with several rows of one key in its batch: keep the latest by ordering field, or refuse.",
)
ALLOW_TIMESTAMP_NTZ = Option(
    "lakehouse.allow.timestamp.ntz",
    _boolean,
    False,
    "Store timestamps without zone, which only Hudi 1.x can read (0.15 and hudi-rs cannot read the table any more).",
)
SCHEMA_EVOLUTION = Option(
    "hoodie.datasource.write.reconcile.schema",
    _boolean,
    False,
    "Whether a batch may add columns, widen them, or leave nullable ones out (filled with null); otherwise its columns are the table's.",
)
PAYLOAD_CLASS = Option(
    "hoodie.datasource.write.payload.class",
    str,
    "",
    "How a new record meets the stored one: DefaultHoodieRecordPayload, OverwriteWithLatestAvroPayload or PartialUpdateAvroPayload.",
    ("hoodie.compaction.payload.class",),
)
LOCK_TIMEOUT_MS = Option(
    "hoodie.write.lock.wait_time_ms",
    _natural,
    600_000,
    "How long to wait for the table lock, which a write holds from start to end, in milliseconds.",
)
TASK_RUNNER = Option(
    "lakehouse.task.runner",
    _one_of("AUTO", "SPARK", "LOCAL"),
    "AUTO",
    "Where file tasks run: Spark executors, or threads of this process (AUTO: threads when Spark's master is local).",
)
TASK_THREADS = Option("lakehouse.task.threads", _natural, 0, "Threads for file tasks in this process; 0 takes one a processor.")


STORED_PREFIX = "lakehouse.default."
"""Before an option that a table keeps as the default of its writes. Under its own name Hudi would find it in `hoodie.properties` and
refuse every job that sets it differently ("Config conflict")."""


def stored_defaults(options: Mapping[str, Any]) -> dict[str, str]:
    """Write options as table properties."""
    return {STORED_PREFIX + key: str(value) for key, value in options.items()}


def _registry() -> dict[str, Option[Any]]:
    return {name: option for option in globals().values() if isinstance(option, Option) for name in (option.key, *option.aliases)}


OPTIONS: dict[str, Option[Any]] = _registry()
"""Every key and older name that the engine acts on."""

TUNING_PREFIXES = (
    "hoodie.upsert.shuffle.",
    "hoodie.insert.shuffle.",
    "hoodie.bulkinsert.shuffle.",
    "hoodie.delete.shuffle.",
    "hoodie.bulkinsert.sort.mode",
    "hoodie.bloom.index.parallelism",
    "hoodie.simple.index.parallelism",
    "hoodie.finalize.write.parallelism",
    "hoodie.markers.",
    "hoodie.embed.timeline.",
    "hoodie.metrics.",
    "hoodie.memory.",
    "hoodie.copyonwrite.",
    "hoodie.parquet.block.size",
    "hoodie.parquet.page.size",
    "hoodie.parquet.compression.ratio",
    "hoodie.parquet.dictionary.enabled",
)
"""Keys that only tune Hudi's own machinery: accepted, without effect here, and reported once by whoever passes them."""


KEY_GENERATOR_KEYS = ("hoodie.datasource.write.partitionpath.field", "hoodie.keygen.timebased.")
"""Keys (or prefixes of them) by which a write says what Hudi 0.15 does not store of a timestamp-based or custom key generator."""


def check_known(raw: Mapping[str, Any], *, also: tuple[str, ...] = ()) -> list[str]:
    """Refuse unknown keys; return those that are Hudi's own tuning and have no effect here.

    Raises `UnknownOptionError` naming the nearest known key.
    """
    ignored = []
    for key in raw:
        if key in OPTIONS or key in also or key.startswith(KEY_GENERATOR_KEYS):
            continue
        if key.startswith(TUNING_PREFIXES):
            ignored.append(key)
            continue
        near = difflib.get_close_matches(key, [*OPTIONS, *also], n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UnknownOptionError(f"the engine does not act on the option {key!r}{hint}")
    return ignored


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What a write asks for. Read once from the table's defaults, the session's and the call's options, in that order."""

    max_file_size: int = MAX_FILE_SIZE.default
    small_file_limit: int = SMALL_FILE_LIMIT.default
    compression: str = COMPRESSION.default
    index_type: str = INDEX_TYPE.default
    update_partition_path: bool = UPDATE_PARTITION_PATH.default
    bloom_fpp: float = BLOOM_FPP.default
    bloom_type: str = BLOOM_TYPE.default
    bloom_entries: int = BLOOM_ENTRIES.default
    bloom_max_entries: int = BLOOM_MAX_ENTRIES.default
    row_group_rows: int = ROW_GROUP_ROWS.default
    combine_before_insert: bool = COMBINE_BEFORE_INSERT.default
    duplicate_policy: str = DUPLICATE_POLICY.default
    allow_timestamp_ntz: bool = ALLOW_TIMESTAMP_NTZ.default
    schema_evolution: bool = SCHEMA_EVOLUTION.default
    payload_class: str = PAYLOAD_CLASS.default
    lock_timeout_ms: int = LOCK_TIMEOUT_MS.default
    key_generator: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> WriteOptions:
        return cls(
            max_file_size=MAX_FILE_SIZE.read(raw),
            small_file_limit=SMALL_FILE_LIMIT.read(raw),
            compression=COMPRESSION.read(raw),
            index_type=INDEX_TYPE.read(raw),
            update_partition_path=UPDATE_PARTITION_PATH.read(raw),
            bloom_fpp=BLOOM_FPP.read(raw),
            bloom_type=BLOOM_TYPE.read(raw),
            bloom_entries=BLOOM_ENTRIES.read(raw),
            bloom_max_entries=BLOOM_MAX_ENTRIES.read(raw),
            row_group_rows=ROW_GROUP_ROWS.read(raw),
            combine_before_insert=COMBINE_BEFORE_INSERT.read(raw),
            duplicate_policy=DUPLICATE_POLICY.read(raw),
            allow_timestamp_ntz=ALLOW_TIMESTAMP_NTZ.read(raw),
            schema_evolution=SCHEMA_EVOLUTION.read(raw),
            payload_class=PAYLOAD_CLASS.read(raw).rsplit(".", 1)[-1],
            lock_timeout_ms=LOCK_TIMEOUT_MS.read(raw),
            key_generator={key: str(value) for key, value in raw.items() if key.startswith(KEY_GENERATOR_KEYS)},
        )
