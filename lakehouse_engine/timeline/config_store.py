"""`hoodie.properties`: read with recovery, created once, changed with a backup beside it (hudi-format 1.2)."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import (
    PropertiesError,
    StorageError,
    StoredFileExistsError,
    StoredFileNotFoundError,
    TableExistsError,
    TableNotFoundError,
)
from lakehouse_engine.format.properties import (
    CHECKSUM_KEY,
    check_properties_seal,
    parse_properties,
    render_properties,
    seal_properties,
    table_checksum,
    verify_checksum,
)
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.storage.base import Storage

logger = logging.getLogger(__name__)

META_FOLDER = ".hoodie"
PROPERTIES = ".hoodie/hoodie.properties"
BACKUP = ".hoodie/hoodie.properties.backup"
COPY = ".hoodie/.aux/hoodie.properties"
"""Copy of the properties as this engine last wrote them. Never read automatically, because another program may have changed them since."""
_TIMELINE_OF_LATER_VERSIONS = ".hoodie/timeline"
_ATTEMPTS = 3
_PAUSE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class ConfigStore:
    """A table's stored configuration. Changes are made under the table's lock."""

    storage: Storage

    def read(self) -> TableConfig:
        """The configuration; from the backup if the main file is missing or torn.

        Raises `TableNotFoundError` if there is neither, `PropertiesError` if what exists is unusable.
        """
        for attempt in range(_ATTEMPTS):
            found = self._read_either()
            if found is not None:
                return found
            if attempt == 0 and self.storage.head(META_FOLDER) is None:
                break
            # A writer that replaces the file may have removed the backup after we missed the main file: try again.
            time.sleep(_PAUSE_SECONDS)
        raise TableNotFoundError(
            f"there is no Hudi table at {self.storage.root}: it has no {PROPERTIES}{self._way_out()}", path=self.storage.root
        )

    def _way_out(self) -> str:
        if self.copy() is not None:
            return "; `repair` puts it back as this engine wrote it last"
        if any(entry.name != ".locks" for entry in self.storage.list(META_FOLDER)):
            return " (any more); put it back from a backup, or drop the table, which deletes what is left of it"
        return ""

    def create(self, config: TableConfig) -> TableConfig:
        """Write a new table's configuration, with a checksum. Raises `TableExistsError`."""
        complete = _with_checksum(config)
        try:
            if self.storage.head(BACKUP) is not None:
                raise StoredFileExistsError(f"{BACKUP} is there", path=BACKUP)
            self.storage.create(PROPERTIES, _render(complete))
        except StoredFileExistsError as error:
            raise TableExistsError(f"there is a Hudi table already at {self.storage.root}", path=self.storage.root) from error
        self.keep_copy()
        return complete

    def copy(self) -> TableConfig | None:
        """The configuration as this engine last wrote it, if its copy is complete; None otherwise, or if the table was upgraded since."""
        data = self._bytes(COPY)
        try:
            found = None if data is None else parse_config(data)
        except PropertiesError:
            return None
        if found is None or found.version is not TableVersion.SIX:
            return found
        return None if self.storage.head(_TIMELINE_OF_LATER_VERSIONS) is not None else found

    def put_back(self) -> None:
        """Replace damaged or missing properties by the copy. Raises `PropertiesError` if no copy is complete."""
        if self.copy() is None:
            raise PropertiesError(f"there is no whole copy of {PROPERTIES}", path=COPY, table=self.storage.root)
        self.storage.overwrite(PROPERTIES, self.storage.read(COPY))
        self.storage.delete(BACKUP)

    def drop_copy(self) -> bool:
        """Remove the copy to free its space; returns whether it existed."""
        return self.storage.delete(COPY)

    def keep_copy(self) -> None:
        """Copy the current properties; failure is harmless."""
        try:
            self.storage.overwrite(COPY, self.storage.read(PROPERTIES))
        except StorageError as error:
            logger.warning("%s of %s has no copy as it is now: %s", PROPERTIES, self.storage.root, error)

    def update(self, changes: Mapping[str, str | None]) -> TableConfig:
        """Set keys, or remove those whose value is None; other keys stay as stored.

        After a crash the old or the new configuration is readable. Raises as `read`, and `PropertiesError` if the new file does not read
        back.
        """
        self.recover()
        changed = _with_checksum(self.read().with_properties(changes))
        self.storage.create(BACKUP, self.storage.read(PROPERTIES))
        # Hudi deletes and creates; replacing in one step leaves readers no gap.
        self.storage.overwrite(PROPERTIES, _render(changed))
        stored = parse_config(self.storage.read(PROPERTIES))
        if stored.properties != changed.properties:
            raise PropertiesError(f"{PROPERTIES} does not read back as written; the former one is in {BACKUP}", path=self.storage.root)
        self.storage.delete(BACKUP)
        self.keep_copy()
        return stored

    def _read_either(self) -> TableConfig | None:
        main = self._bytes(PROPERTIES)
        if main is not None and _has_checksum(main):
            return parse_config(main)
        backup = self._bytes(BACKUP)
        if backup is None:
            return self._parsed(PROPERTIES, main) if main is not None else None
        if main is not None and _is_whole(main, backup):
            return self._parsed(PROPERTIES, main)
        return self._parsed(BACKUP, backup)

    def damage(self) -> PropertiesError | None:
        """What is wrong with an existing but unusable file; `read` may use the backup."""
        main = self._bytes(PROPERTIES)
        if main is None:
            return PropertiesError(f"{PROPERTIES} is not there", path=PROPERTIES)
        try:
            self._parsed(PROPERTIES, main)
        except PropertiesError as error:
            return error
        return None

    def _parsed(self, path: str, data: bytes) -> TableConfig:
        try:
            return parse_config(data)
        except PropertiesError as error:
            hint = "; `repair` puts it back as this engine wrote it last" if self.copy() is not None else ""
            raise PropertiesError(error.message + hint, **{**error.context, "path": path, "table": self.storage.root}) from error

    def recover(self) -> None:
        """Finish or undo an interrupted change: afterwards the main file is complete and there is no backup."""
        backup = self._bytes(BACKUP)
        if backup is None:
            return
        main = self._bytes(PROPERTIES)
        if main is None or not _is_whole(main, backup):
            self._parsed(BACKUP, backup)
            self.storage.overwrite(PROPERTIES, backup)
        self.storage.delete(BACKUP)

    def _bytes(self, path: str) -> bytes | None:
        try:
            return self.storage.read(path)
        except StoredFileNotFoundError:
            return None


def _has_checksum(data: bytes) -> bool:
    """True if the properties themselves show that they are complete, so that no backup has to be looked up."""
    try:
        return CHECKSUM_KEY in parse_config(data).properties
    except PropertiesError:
        return False


def _is_whole(main: bytes, backup: bytes) -> bool:
    """True if the main file beside a backup is complete: it parses, with a checksum if the backup has one."""
    try:
        parse_config(main)
    except PropertiesError:
        return False
    return _has_checksum(main) or CHECKSUM_KEY not in parse_properties(backup)


@lru_cache(maxsize=256)
def parse_config(data: bytes) -> TableConfig:
    """Cached, because every action reads the properties, which rarely change."""
    check_properties_seal(data)
    properties = parse_properties(data)
    verify_checksum(properties)
    return TableConfig(properties)


def _with_checksum(config: TableConfig) -> TableConfig:
    # Last, so that a truncated file lacks it.
    others = {key: value for key, value in config.properties.items() if key != CHECKSUM_KEY}
    return TableConfig({**others, CHECKSUM_KEY: table_checksum(others)})


def _render(config: TableConfig) -> bytes:
    return seal_properties(render_properties(config.properties, comments=(f"Properties saved on {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",)))
