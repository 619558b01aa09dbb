"""Typed access to `hoodie.properties`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from lakehouse_engine.compat import StrEnum
from lakehouse_engine.errors import PropertiesError, UnsupportedTableVersionError
from lakehouse_engine.model.constraints import Constraints
from lakehouse_engine.model.table_version import TableVersion, not_opened

_OTHER_FOLDERS = (".temp", ".aux", ".heartbeat", ".schema", ".bucket_index", "metadata")
"""Folders below `.hoodie` that come and go: instants archived in them would be lost."""


NAME_KEY = "hoodie.table.name"
ROWS_KEEP_PARTITIONS_KEY = "lakehouse.rows.keep.partitions"
"""Set by the first write with `hoodie.simple.index.update.partition.path=false`, and when another program's commit, which may have been
such a write, is archived: paths no longer show what columns hold.
"""


WRITERS_NAME_LOGS_KEY = "lakehouse.logs.named.by.writers"
"""Set if a later version was downgraded to version 6: the newest instant at that time. Logs of instants up to it are named by their
writers.
"""
MATERIALIZED_KEY = "lakehouse.materialized.query"
"""Query whose rows a materialized view holds."""
DELETES_KEY = "lakehouse.deletes"
"""`soft`: deleted rows stay stored, and reads hide them (`record.merging.soft_deletes`)."""
UNFINISHED_KEY = "lakehouse.unfinished.build"
"""Builder of the table, set while it is built in several commits and the last one is missing."""

AUTO_INDEX_KEY = "lakehouse.index.auto"
"""What became of the record index that this engine chose by itself (`AutoIndex`)."""
HBASE_INDEX_KEY = "lakehouse.index.hbase"
"""Where entries of the HBASE index may be wrong (`index.hbase.marks`)."""


class TableType(StrEnum):
    """Values of `hoodie.table.type`."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


@dataclass(frozen=True, slots=True)
class AutoIndex:
    """Value of `AUTO_INDEX_KEY`: `word` is "" (nothing yet, or the index was asked for), BUILT with the newest instant at that time,
    DROPPED by a user, or DUPLICATES (keys are stored more than once).
    """

    word: str = ""
    instant: str = ""

    WORDS: ClassVar[tuple[str, ...]] = ("", "BUILT", "DROPPED", "DUPLICATES")

    def __str__(self) -> str:
        return f"{self.word} {self.instant}".strip()


_LACKING = {
    "hoodie.table.version": (
        ": the file was cut off, or the table is of a Hudi before 0.6.0, which stored no version (let Hudi 0.14 or 0.15 upgrade it)"
    )
}


@dataclass(frozen=True, slots=True)
class TableConfig:
    """Typed access to the table's properties. `properties` has every key as stored, including unknown ones."""

    properties: Mapping[str, str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "properties", MappingProxyType(dict(self.properties)))
        for key in (NAME_KEY, "hoodie.table.type", "hoodie.table.version"):
            if not self.properties.get(key):
                raise PropertiesError(f"hoodie.properties has no {key}{_LACKING.get(key, '')}")

    def __reduce__(self) -> tuple[object, ...]:
        return TableConfig, (dict(self.properties),)

    def _first(self, *keys: str) -> str | None:
        return next((value for key in keys if (value := self.properties.get(key))), None)

    def _flag(self, key: str, default: bool) -> bool:
        text = self.properties.get(key, "").strip().lower()
        if text not in ("", "true", "false"):
            raise PropertiesError(f"{key}={text!r} is neither true nor false")
        return default if not text else text == "true"

    def _list(self, *keys: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in (self._first(*keys) or "").split(",") if part.strip())

    @property
    def name(self) -> str:
        return self.properties[NAME_KEY]

    @property
    def table_type(self) -> TableType:
        text = self.properties["hoodie.table.type"]
        try:
            return TableType(text)
        except ValueError as error:
            raise PropertiesError(f"hoodie.table.type={text!r} is neither COPY_ON_WRITE nor MERGE_ON_READ") from error

    @property
    def version(self) -> TableVersion:
        """Table version. Raises `UnsupportedTableVersionError` naming the version, the releases that write it, and the way to a supported
        one.
        """
        text = self.properties["hoodie.table.version"]
        try:
            return TableVersion(int(text) if text.isascii() else -1)
        except ValueError as error:
            raise UnsupportedTableVersionError(not_opened(text), table=self.name) from error

    @property
    def record_key_fields(self) -> tuple[str, ...]:
        """Record key columns; empty for a table with generated keys."""
        return self._list("hoodie.table.recordkey.fields")

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        return self._list("hoodie.table.ordering.fields", "hoodie.table.precombine.field")

    @property
    def partition_fields(self) -> tuple[str, ...]:
        """Column names, without the `:SIMPLE` / `:TIMESTAMP` suffixes of the custom key generator."""
        return tuple(field.split(":")[0] for field in self._list("hoodie.table.partition.fields"))

    @property
    def key_generator(self) -> str | None:
        """The class's last name (`SimpleKeyGenerator`), or the type word (`SIMPLE`) that Hudi 1.x writes."""
        text = self._first("hoodie.table.keygenerator.class", "hoodie.table.keygenerator.type")
        return text.rsplit(".", 1)[-1] if text else None

    @property
    def hive_style_partitioning(self) -> bool:
        return self._flag("hoodie.datasource.write.hive_style_partitioning", False)

    @property
    def url_encode_partitioning(self) -> bool:
        return self._flag("hoodie.datasource.write.partitionpath.urlencode", False)

    @property
    def drops_partition_columns(self) -> bool:
        return self._flag("hoodie.datasource.write.drop.partition.columns", False)

    @property
    def rows_keep_partitions(self) -> bool:
        """True if a write of this engine may have left records in their old partition, though their columns name another."""
        return self._flag(ROWS_KEEP_PARTITIONS_KEY, False)

    @property
    def logs_by_writer(self) -> str:
        """Newest instant whose logs are named by their writers though the table has version 6; "" if there is none."""
        return self.properties.get(WRITERS_NAME_LOGS_KEY, "")

    @property
    def populates_meta_fields(self) -> bool:
        return self._flag("hoodie.populate.meta.fields", True)

    @property
    def payload_class(self) -> str | None:
        """Last name of the payload class (`DefaultHoodieRecordPayload`); None if not set.

        A class that is not Hudi's own keeps its package, because its last name may be ambiguous.
        """
        text = self._first("hoodie.compaction.payload.class", "hoodie.table.legacy.payload.class")
        return text.rsplit(".", 1)[-1] if text and text.startswith("org.apache.hudi.") else text

    @property
    def metadata_partitions(self) -> tuple[str, ...]:
        """Complete partitions of the metadata table; empty if it is not in use."""
        return self._list("hoodie.table.metadata.partitions")

    @property
    def metadata_partitions_being_built(self) -> tuple[str, ...]:
        """Partitions of the metadata table that an indexing action builds, or did not finish."""
        return self._list("hoodie.table.metadata.partitions.inflight")

    @property
    def base_file_format(self) -> str:
        """`PARQUET`, `ORC`, ..."""
        return (self._first("hoodie.table.base.file.format") or "PARQUET").strip().upper()

    @property
    def materialized_query(self) -> str | None:
        """Query whose rows the table holds, if it is a materialized view."""
        return self.properties.get(MATERIALIZED_KEY) or None

    @property
    def deletes_softly(self) -> bool:
        text = self.properties.get(DELETES_KEY, "hard").strip().lower()
        if text not in ("hard", "soft"):
            raise PropertiesError(f"{DELETES_KEY}={text!r} is neither hard nor soft")
        return text == "soft"

    @property
    def unfinished_build(self) -> str | None:
        """Text by which the builder identifies itself, while the table is built in several commits and some are missing."""
        return self.properties.get(UNFINISHED_KEY) or None

    @property
    def auto_index(self) -> AutoIndex:
        """Raises `PropertiesError` for a value that this engine does not write."""
        word, _, instant = (self.properties.get(AUTO_INDEX_KEY) or "").partition(" ")
        if word not in AutoIndex.WORDS:
            raise PropertiesError(
                f"{AUTO_INDEX_KEY}={word!r} is not one of {', '.join(one for one in AutoIndex.WORDS if one)}; remove the property, and this"
                " engine chooses again",
                key=AUTO_INDEX_KEY,
            )
        return AutoIndex(word, instant)

    @property
    def create_schema(self) -> str | None:
        return self._first("hoodie.table.create.schema")

    @property
    def archive_folder(self) -> str:
        """Archive folder, relative to the timeline's folder. Raises `PropertiesError` if it is outside of that or has another use."""
        folder = (self._first("hoodie.archivelog.folder") or "archived").removesuffix("/")
        parts = folder.split("/")
        if any(part in ("", ".", "..") for part in parts) or "\0" in folder or parts[0] in _OTHER_FOLDERS:
            raise PropertiesError(
                f"hoodie.archivelog.folder={folder!r} cannot be a folder of archived instants: it has to be below .hoodie, and not one of"
                f" {', '.join(_OTHER_FOLDERS)}; correct it in .hoodie/hoodie.properties ('archived' is the default)",
                table=self.name,
            )
        return folder

    @property
    def timeline_timezone(self) -> str:
        """Time zone of instant times: `UTC` or `LOCAL` (Java's default). Raises `PropertiesError` for any other, which Hudi does not have
        either.
        """
        zone = (self._first("hoodie.table.timeline.timezone") or "LOCAL").strip().upper()
        if zone not in ("UTC", "LOCAL"):
            message = f"hoodie.table.timeline.timezone={zone!r} is neither UTC nor LOCAL; correct it in .hoodie/hoodie.properties"
            raise PropertiesError(message, table=self.name)
        return zone

    @property
    def cdc_enabled(self) -> bool:
        return self._flag("hoodie.table.cdc.enabled", False)

    @property
    def bootstrap_base_path(self) -> str | None:
        return self._first("hoodie.bootstrap.base.path")

    @property
    def constraints(self) -> Constraints:
        """Constraints on columns beyond their types; only this engine knows them."""
        return Constraints.of(self.properties)

    @property
    def database(self) -> str:
        return self.properties.get("hoodie.database.name", "")

    def prefixed(self, prefix: str) -> dict[str, str]:
        """Properties that start with `prefix`, keyed by the rest of their names."""
        return {key[len(prefix) :]: value for key, value in self.properties.items() if key.startswith(prefix)}

    def with_properties(self, changes: Mapping[str, str | None]) -> TableConfig:
        """A copy with keys set, or removed where the value is None."""
        merged = {**self.properties, **changes}
        return TableConfig({key: value for key, value in merged.items() if value is not None})
