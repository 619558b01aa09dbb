"""Which of the rows of one record a write keeps. `given` are the options of the write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakehouse_engine import api

if TYPE_CHECKING:
    from dbt.adapters.lakehouse.bridge.warehouse import Warehouse


def keeps_newest(warehouse: Warehouse, schema: str, identifier: str, given: Mapping[str, str]) -> bool:
    """Whether it is the one of the greatest ordering value, as it is, of those that come and of the stored one."""
    return api.tables.keeps_newest(warehouse.table(schema, identifier).config, {**warehouse.options, **given})


def stores_whole_rows(warehouse: Warehouse, schema: str, identifier: str, given: Mapping[str, str]) -> bool:
    """Whether a row that wins is stored as it is, and one of an equal ordering value wins."""
    return api.tables.stores_whole_rows(warehouse.table(schema, identifier).config, {**warehouse.options, **given})


def keeps_newest_anew(warehouse: Warehouse, given: Mapping[str, str]) -> bool:
    """As `keeps_newest`, of a table with an ordering field that is made with the options of the write."""
    return api.tables.keeps_newest_anew({**warehouse.options, **given})


def merges_as_asked(warehouse: Warehouse, schema: str, identifier: str, given: Mapping[str, str]) -> bool:
    """Whether the write names no other payload class than the table's, which it keeps for its life."""
    return api.tables.merges_as_asked(warehouse.table(schema, identifier).config, {**warehouse.options, **given})
