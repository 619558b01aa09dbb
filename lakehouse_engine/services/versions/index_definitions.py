"""The definitions of a table's indexes, which since version 9 record the version of each index (Hudi `HoodieIndexVersion`).

The indexes themselves are part of the metadata table, which is dropped: Hudi builds them again from their definitions.
"""

from __future__ import annotations

import json
from typing import Any

from lakehouse_engine.errors import MetadataError, StoredFileNotFoundError
from lakehouse_engine.format.json_text import render_json
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.storage.base import Storage

_KEY = "hoodie.table.index.defs.path"
_DEFINITIONS, _VERSION, _FIRST = "indexDefinitions", "version", "V1"


def version_index_definitions(storage: Storage, config: TableConfig) -> bool:
    """Set the first version in each definition without one, as Hudi's upgrade to version 9 does; True if any was changed.

    Releases before 1.1 ignore the member. Raises `MetadataError` if the file does not parse.
    """
    path = config.properties.get(_KEY, "")
    if not path or path.startswith("/") or ":" in path:
        return False
    try:
        data = storage.read(path)
    except StoredFileNotFoundError:
        return False
    try:
        found: dict[str, Any] = json.loads(data)
        lacking = [one for one in found[_DEFINITIONS].values() if not one.get(_VERSION)]
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise MetadataError("the definitions of the table's indexes do not parse", path=path, table=config.name) from error
    for one in lacking:
        one[_VERSION] = _FIRST
    if lacking:
        storage.overwrite(path, render_json(found))
    return bool(lacking)
