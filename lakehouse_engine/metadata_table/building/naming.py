"""Names of a metadata table's partitions in the properties of its data table, and definitions of indexes.

Readers go by the names, so a partition is complete before it is named, and not named any more before it is removed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lakehouse_engine.errors import StoredFileNotFoundError
from lakehouse_engine.format.metadata_table.definitions import (
    DEFINITIONS_PATH,
    DEFINITIONS_PATH_KEY,
    IndexDefinition,
    change_definitions,
)
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.view.table_state import TableState

PARTITIONS_KEY = "hoodie.table.metadata.partitions"
IN_PROGRESS_KEY = "hoodie.table.metadata.partitions.inflight"


def name_partitions(data: TableState, *, put: Sequence[str], define: Sequence[IndexDefinition]) -> None:
    """Define the indexes of new partitions, then name the partitions, which are in progress no more. Raises `FormatError` if stored
    definitions do not parse.
    """
    complete = ",".join(sorted({*data.config.metadata_partitions, *put}))
    properties = {PARTITIONS_KEY: complete, IN_PROGRESS_KEY: _in_progress(data, without=put)}
    ConfigStore(data.storage).update({**properties, **(_define(data, define) if define else {})})


def name_in_progress(data: TableState, partitions: Sequence[str]) -> None:
    """Say of partitions that they are being built: writers log to them from then on, and readers do not ask them."""
    known = data.config.metadata_partitions_being_built
    ConfigStore(data.storage).update({IN_PROGRESS_KEY: ",".join(sorted({*known, *partitions}))})


def _in_progress(data: TableState, *, without: Collection[str]) -> str:
    return ",".join(name for name in data.config.metadata_partitions_being_built if name not in without)


def define_indexes(data: TableState, define: Sequence[IndexDefinition]) -> None:
    """Define indexes that are not built yet. Raises `FormatError` if stored definitions do not parse."""
    ConfigStore(data.storage).update(_define(data, define))


def _define(data: TableState, define: Sequence[IndexDefinition]) -> dict[str, str]:
    """Store definitions; returns the property that names their file."""
    path = data.config.properties.get(DEFINITIONS_PATH_KEY) or DEFINITIONS_PATH
    data.storage.overwrite(path, change_definitions(_stored(data.storage, path), define))
    return {DEFINITIONS_PATH_KEY: path}


def unname_partitions(data: TableState, partitions: Collection[str]) -> None:
    """Take partitions out of the names, of those in progress, too."""
    left = [name for name in data.config.metadata_partitions if name not in partitions]
    properties = {PARTITIONS_KEY: ",".join(left), IN_PROGRESS_KEY: _in_progress(data, without=partitions)}
    ConfigStore(data.storage).update(properties)


def undefine(data: TableState, names: Sequence[str]) -> None:
    """Take definitions of indexes out. Raises `FormatError` if they do not parse."""
    path = data.config.properties.get(DEFINITIONS_PATH_KEY)
    stored = _stored(data.storage, path) if path else None
    if path and stored is not None:
        data.storage.overwrite(path, change_definitions(stored, removed=names))


def _stored(storage: Storage, path: str) -> bytes | None:
    try:
        return storage.read(path)
    except StoredFileNotFoundError:
        return None
