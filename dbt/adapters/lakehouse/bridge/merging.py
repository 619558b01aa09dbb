"""Which of several rows of one record a write keeps. `given` are the options of the write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakehouse_engine import api

if TYPE_CHECKING:
    from dbt.adapters.lakehouse.bridge.warehouse import Warehouse


def keeps_newest(warehouse: Warehouse, schema: str, identifier: str, given: Mapping[str, str]) -> bool:
    """True if the row with the greatest ordering value wins, unchanged, among incoming rows and the stored one."""
    return api.tables.keeps_newest(warehouse.table(schema, identifier).config, {**warehouse.options, **given})


def stores_whole_rows(warehouse: Warehouse, schema: str, identifier: str, given: Mapping[str, str]) -> bool:
    """True if the winner is stored unchanged, and on equal ordering values the incoming row wins."""
    return api.tables.stores_whole_rows(warehouse.table(schema, identifier).config, {**warehouse.options, **given})


def keeps_newest_anew(warehouse: Warehouse, given: Mapping[str, str]) -> bool:
    """`keeps_newest` for a new table that has an ordering field and the options of the write."""
    return api.tables.keeps_newest_anew({**warehouse.options, **given})


def merges_as_asked(warehouse: Warehouse, schema: str, identifier: str, given: Mapping[str, str]) -> bool:
    """True if the write names no payload class other than the table's, which never changes."""
    return api.tables.merges_as_asked(warehouse.table(schema, identifier).config, {**warehouse.options, **given})
