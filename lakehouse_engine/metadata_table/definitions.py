"""Definitions of a table's indexes, as stored."""

from __future__ import annotations

from lakehouse_engine.errors import FormatError, StoredFileNotFoundError
from lakehouse_engine.format.metadata_table.definitions import DEFINITIONS_PATH_KEY, IndexDefinition, parse_definitions
from lakehouse_engine.view.table_state import TableState


def stored_definitions(data: TableState) -> dict[str, IndexDefinition]:
    """Definitions by name; none if the table's properties name no file, or it does not exist. Raises `FormatError` with the path."""
    path = data.config.properties.get(DEFINITIONS_PATH_KEY)
    if not path:
        return {}
    try:
        return parse_definitions(data.storage.read(path))
    except StoredFileNotFoundError:
        return {}
    except FormatError as error:
        raise FormatError(
            f"{path!r} cannot be used: {error.message}; restore the file from a backup, or delete it, build the metadata table again"
            " (`lakehouse metadata rebuild`), and create the secondary and expression indexes again",
            path=path,
            table=data.config.name,
        ) from error
