"""Operations of a catalog, as the facade does them, and what is there after them: in any storage, without Spark."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa

from lakehouse_engine.catalog.atomic_create import made_empty, make_filled
from lakehouse_engine.catalog.catalog import Catalog, RelationKind
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.model.write_stats import WriteResult
from lakehouse_engine.options import LockOptions
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import storage_below
from lakehouse_engine.verify import verify
from lakehouse_engine.view.moment import at_one_moment
from lakehouse_engine.write.create import TableSpec, create_table
from tests.crash.timeline import expect
from tests.support.catalog_model import VIEW, Relations
from tests.support.local_table import LocalTable

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.string())])
NAMES = ("t", "u", "n")
_TIMEOUT = 60_000
Pairs = tuple[tuple[str, str], ...]


def name_of(text: str) -> RelationName:
    return RelationName("s", text)


def rows_of(pairs: Pairs) -> pa.Table:
    return pa.table([[key for key, _ in pairs], [value for _, value in pairs]], schema=SCHEMA)


def _spec(name: str) -> TableSpec:
    return TableSpec(name, SCHEMA, ["id"])


def fill(pairs: Pairs, place: Storage, name: RelationName) -> WriteResult:
    create_table(place, _spec(name.name))
    return LocalTable(place).bulk_insert(rows_of(pairs))


def may_go(name: RelationName, kind: RelationKind) -> None:
    """Whatever has the name may be replaced."""


def carry_out(catalog: Catalog, what: str, name: str, *more: Any) -> Any:
    """One operation, as the facade does it; what it answers, as the model has it."""
    wanted = name_of(name)
    if what == "create":
        stored = catalog.claim(wanted)
        with made_empty(catalog, stored, LockOptions()):
            create_table(storage_below(catalog.storage, stored.path), _spec(name))
    elif what in ("fill", "replace"):
        make_filled(catalog, wanted, partial(fill, *more), lock_timeout_ms=_TIMEOUT, may_go=may_go if what == "replace" else None)
    elif what == "drop":
        catalog.drop_table(wanted, lock_timeout_ms=_TIMEOUT)
    elif what == "drop_schema":
        catalog.drop_schema("s", cascade=True, if_exists=True, lock_timeout_ms=_TIMEOUT)
    elif what == "rename":
        catalog.rename_table(wanted, name_of(*more), lock_timeout_ms=_TIMEOUT)
    elif what == "view":
        catalog.create_view(wanted, "select 1 as id")
    elif what == "drop_view":
        catalog.drop_view(wanted)
    else:
        table = LocalTable(storage_below(catalog.storage, wanted.path))
        if what == "read":
            rows = at_one_moment(table.state, lambda now: table.read(state=now))
            return frozenset((row["id"], row["v"]) for row in rows.to_pylist())
        table.upsert(rows_of(*more))
    return None


def relations(catalog: Catalog, *, died: bool = False) -> Relations:
    """All that the catalog finds, whole. `died`: some process may have died between a table's new name in its properties and its move."""
    found: dict[str, Any] = {}
    for name in catalog.tables():
        table = LocalTable(storage_below(catalog.storage, name.path))
        expect(died or table.state.config.name == name.name, f"{name} says that it is {table.state.config.name}")
        expect(not verify(table.state).findings, f"verify finds {verify(table.state).findings} in {name}")
        found[name.name] = frozenset((row["id"], row["v"]) for row in table.read().to_pylist())
    for name in catalog.views():
        expect(name.name not in found, f"{name} is a table and a view")
        found[name.name] = VIEW
    return frozenset(found.items())
