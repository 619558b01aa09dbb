"""Error text for a table or view that a statement names and the warehouse lacks."""

from __future__ import annotations

import difflib

from dbt.adapters.lakehouse.bridge.outcomes import EngineError
from dbt.adapters.lakehouse.bridge.spark_errors import Missing
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse

_SHOWN = 3
_CLOSE = 0.6


def missing_text(warehouse: Warehouse, missing: Missing, default_schema: str) -> str:
    """The name, its nearest names in the warehouse, and its position in the statement."""
    *above, name = missing.parts
    place = f" ({missing.place})" if missing.place else ""
    try:
        hint = _hint(warehouse, above[-1] if above else None, name, default_schema)
    except EngineError:
        hint = ""  # names cannot be listed; report the missing one without suggestions
    return f"[TABLE_OR_VIEW_NOT_FOUND] there is no table or view {'.'.join(missing.parts)}{hint}{place}"


def _hint(warehouse: Warehouse, schema: str | None, name: str, default_schema: str) -> str:
    if schema is None:
        near = _near(name, _names(warehouse, default_schema))
        return _listed([f"{default_schema}.{one}" for one in near]) or "; names are written schema.table"
    schemas = warehouse.schemas()
    known = [one for one in schemas if one.lower() == schema.lower()]
    if known:
        return _listed([f"{known[0]}.{one}" for one in _near(name, _names(warehouse, known[0]))])
    near = _near(schema, schemas)
    if near:
        return f"; there is no schema {schema}, did you mean {', '.join(near)}?"
    return f"; there is no schema {schema} in the warehouse {warehouse.root}"


def _names(warehouse: Warehouse, schema: str) -> list[str]:
    return [name for name, kind in warehouse.relations(schema) if kind != "function"]


def _near(name: str, known: list[str]) -> list[str]:
    by_folded = {one.lower(): one for one in known}
    return [by_folded[one] for one in difflib.get_close_matches(name.lower(), by_folded, _SHOWN, _CLOSE)]


def _listed(names: list[str]) -> str:
    return f"; did you mean {', '.join(names)}?" if names else ""
