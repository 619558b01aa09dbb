"""Makes a table as a clone of another one; it becomes visible when it is complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from typing import Any

from lakehouse_engine.catalog.atomic_create import make_filled
from lakehouse_engine.catalog.catalog import Catalog, RelationKind
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.catalog.places import check_vacant, clear_place
from lakehouse_engine.errors import OptionError, SavepointError, TableExistsError
from lakehouse_engine.model.write_stats import WriteResult
from lakehouse_engine.options import LOCK_TIMEOUT_MS
from lakehouse_engine.services.clone import CloneFiles, clone_table
from lakehouse_engine.services.clone.service import CloneRequest, RunnerOf
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import in_object_store, storage_below
from lakehouse_engine.view.moment import at_one_moment
from lakehouse_engine.view.table_state import TableState


@dataclass(frozen=True, slots=True)
class Clone:
    """What to clone. `as_of`: an instant, timestamp, savepoint name or `-N` of the source; None for its current state.

    `catalog` is the source's catalog if it is another one; `called` is the source's name with it.
    """

    source: RelationName
    target: RelationName
    as_of: str | date | datetime | None = None
    files: CloneFiles = CloneFiles.AUTO
    or_replace: bool = False
    if_not_exists: bool = False
    catalog: Catalog | None = None
    called: str = ""


def clone_relation(
    catalog: Catalog, clone: Clone, source: TableState, runner_of: RunnerOf, options: Mapping[str, Any]
) -> WriteResult | None:
    """Make the clone; None if the target exists and `if_not_exists`. `source` is the stored state of `clone.source`.

    Only the last step, which names the new table, changes what others see. Raises, with nothing changed, `TableExistsError`,
    `SavepointError` for a table with savepoints that would be replaced, `OptionError` for a clone of itself, and as `clone_table`.
    """
    found = catalog.find(clone.target)
    if found is not None and clone.if_not_exists:
        return None
    _check(catalog, clone, found)
    timeout = LOCK_TIMEOUT_MS.read(options)

    def attempt(now: TableState) -> tuple[RelationName, WriteResult]:
        def fill(place: Storage, target: RelationName) -> WriteResult:
            request = CloneRequest(target.name, clone.called or str(clone.source), clone.as_of, clone.files, options, timeout)
            return clone_table(now, place, request, runner_of)

        may_go = partial(_check_free, catalog) if clone.or_replace else None
        return make_filled(catalog, clone.target, fill, may_go=may_go, lock_timeout_ms=timeout)

    comments = (clone.catalog or catalog).comments(clone.source)
    # A clean of the source may delete files while they are copied.
    target, result = at_one_moment(source, attempt)
    catalog.set_comments(target, comments.comment, comments.columns)
    return result


def _check(catalog: Catalog, clone: Clone, found: tuple[RelationName, RelationKind] | None) -> None:
    if found is None:
        if in_object_store(catalog.storage):
            clear_place(catalog.storage, clone.target)
            check_vacant(catalog.storage, clone.target)
        return
    if clone.catalog is None and found[0] == clone.source:
        raise OptionError(f"{clone.source} cannot take its own place as a clone; to go back to what it was, restore it")
    if found[1] is RelationKind.TABLE and not clone.or_replace:
        raise TableExistsError(f"{found[0]} is there already, as a table; drop it first, or use OR REPLACE", table=found[0])
    _check_free(catalog, *found)
    catalog.check_moves(found[0], "replaced")


def _check_free(catalog: Catalog, name: RelationName, kind: RelationKind) -> None:
    """Refuse to replace a table with savepoints, which keep their files until they are deleted, or a view."""
    if kind is RelationKind.VIEW:
        raise TableExistsError(f"{name} is there already, as a view; drop it first", table=name)
    kept = TableState.load(storage_below(catalog.storage, name.path)).timeline.savepointed
    if kept:
        raise SavepointError(f"{name} has savepoints ({', '.join(sorted(kept))}) and is not replaced; delete them first", table=name)
