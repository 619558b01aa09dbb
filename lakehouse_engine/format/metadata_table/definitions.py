"""Definitions of indexes, `.hoodie/.index_defs/index.json` (design: metadata table, sections 5 and 9; Hudi `HoodieIndexMetadata`).

Hudi 1.x goes by the entry of `column_stats` for the columns that have statistics; without it, it does not use them. Hudi 0.15 knows none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakehouse_engine.errors import FormatError

DEFINITIONS_PATH_KEY = "hoodie.table.index.defs.path"
DEFINITIONS_PATH = ".hoodie/.index_defs/index.json"
_ALL = "indexDefinitions"
_NAMED = ("secondary_index_", "expr_index_")
_COLUMNS = "lakehouse.columns"
"""Option of `column_stats` with columns that a user chose."""


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """One entry. `name` is also that of the metadata table's partition; `version` is `V1` or `V2`."""

    name: str
    index_type: str
    function: str
    source_fields: tuple[str, ...]
    options: Mapping[str, str]
    version: str

    @property
    def is_chosen(self) -> bool:
        """True if it says what a user chose. Columns of `column_stats` may be Hudi's default, which each build makes out by itself."""
        return self.name.startswith(_NAMED) or _COLUMNS in self.options

    def stored(self) -> dict[str, Any]:
        return {
            "indexName": self.name,
            "indexType": self.index_type,
            "indexFunction": self.function,
            "sourceFields": list(self.source_fields),
            "indexOptions": dict(self.options),
            "version": self.version,
        }


def column_stats_definition(columns: Sequence[str], version: str, *, chosen: bool = False) -> IndexDefinition:
    """Definition of column statistics over these columns; `version` is that of the index (V1, V2). `chosen`: by a user."""
    options = {_COLUMNS: "chosen"} if chosen else {}
    return IndexDefinition("column_stats", "column_stats", "column_stats", tuple(columns), options, version)


def record_index_definition() -> IndexDefinition:
    """Definition of a record index over the whole table."""
    return IndexDefinition("record_index", "record_index", "", (), {"isPartitioned": "false"}, "V1")


def secondary_index_definition(name: str, column: str, version: str) -> IndexDefinition:
    """Definition of a secondary index on a column; `name` is that of its partition."""
    return IndexDefinition(name, "secondary_index", "identity", (column,), {}, version)


def expression_index_definition(
    name: str, index_type: str, function: str, column: str, options: Mapping[str, str], version: str
) -> IndexDefinition:
    """Definition of an expression index; `name` is that of its partition, `index_type` `column_stats` or `bloom_filters`. Hudi has the
    function among the options, too.
    """
    return IndexDefinition(name, index_type, function, (column,), {"expr": function, **options}, version)


def parse_definitions(data: bytes) -> dict[str, IndexDefinition]:
    """Definitions by name. Raises `FormatError`."""
    found: dict[str, IndexDefinition] = {}
    for name, entry in _entries(data).items():
        fields, options = entry.get("sourceFields") or (), entry.get("indexOptions") or {}
        kind, function, version = (str(entry.get(key) or "") for key in ("indexType", "indexFunction", "version"))
        found[name] = IndexDefinition(name, kind, function, tuple(map(str, fields)), options, version or "V1")
    return found


def change_definitions(data: bytes | None, put: Sequence[IndexDefinition] = (), removed: Sequence[str] = ()) -> bytes:
    """The file with some entries put in place or taken out; others stay as stored. `data` is None if there is no file.

    Raises `FormatError`.
    """
    entries = {} if data is None else _entries(data)
    kept = {name: entry for name, entry in entries.items() if name not in removed}
    changed = {**kept, **{one.name: {**kept.get(one.name, {}), **one.stored()} for one in put}}
    return json.dumps({_ALL: changed}, indent=2).encode("utf-8")


def _entries(data: bytes) -> dict[str, dict[str, Any]]:
    try:
        found = json.loads(data)[_ALL]
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"the definitions of indexes do not parse: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(entry, dict) for entry in found.values()):
        raise FormatError("the definitions of indexes have no entries by name")
    return found
