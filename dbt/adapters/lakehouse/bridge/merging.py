"""Which of the rows of one record a write keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dbt.adapters.lakehouse.later import Later
from lakehouse_engine import options

if TYPE_CHECKING:
    from dbt.adapters.lakehouse.bridge.warehouse import Warehouse

_payloads = Later("lakehouse_engine.record.merging.payloads")


def keeps_newest(warehouse: Warehouse, schema: str, identifier: str, given: Mapping[str, str]) -> bool:
    """Whether it is the one of the greatest ordering value, as it is, of those that come and of the stored one. `given` are the options
    of the write. Other payload classes fill in nulls, take what comes whatever its ordering value, or keep the first of equals.
    """
    asked = options.WriteOptions.read({**warehouse.options, **given}).payload_class
    merger = _payloads.merger_of(warehouse.table(schema, identifier).config, asked)
    return bool(merger.compares_ordering and merger.whole_rows and merger.equals_win)


def stores_whole_rows(warehouse: Warehouse, schema: str, identifier: str, given: Mapping[str, str]) -> bool:
    """Whether a row that wins is stored as it is, and one of an equal ordering value wins. `given` are the options of the write."""
    asked = options.WriteOptions.read({**warehouse.options, **given}).payload_class
    merger = _payloads.merger_of(warehouse.table(schema, identifier).config, asked)
    return bool(merger.whole_rows and merger.equals_win)


def keeps_newest_anew(warehouse: Warehouse, given: Mapping[str, str]) -> bool:
    """As `keeps_newest`, of a table with an ordering field that is made with the options of the write: unless they name a payload class."""
    return not options.WriteOptions.read({**warehouse.options, **given}).payload_class


def merges_as_asked(warehouse: Warehouse, schema: str, identifier: str, given: Mapping[str, str]) -> bool:
    """Whether a write with the options `given` names no other payload class than the table's, which it keeps for its life."""
    asked = options.WriteOptions.read({**warehouse.options, **given}).payload_class
    stored = warehouse.table(schema, identifier).config.payload_class
    return not (asked and stored) or _payloads.last_name(asked) == _payloads.last_name(stored)
