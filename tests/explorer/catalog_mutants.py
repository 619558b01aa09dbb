"""Rules of the catalog taken away, one at a time: each must lead to a violation within the default bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import lakehouse_engine.catalog.atomic_create as making
import lakehouse_engine.catalog.catalog as catalog
import lakehouse_engine.catalog.dropping as dropping
import lakehouse_engine.catalog.schema_drop as schema_drop
import lakehouse_engine.view.opening as opening
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import storage_below
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.lock import TableLock

Patch = pytest.MonkeyPatch


class _Free:
    """A lock that nobody has."""

    def confirm(self) -> bool:
        return True


@contextmanager
def _unlocked(*given: Any, **named: Any) -> Iterator[Any]:
    yield _Free()


def the_folder_goes_with_what_is_in_it(patch: Patch) -> None:
    """File by file, as a file system does it."""

    def delete(storage: Storage, folder: str) -> None:
        for entry in storage.list(folder):
            if entry.is_directory:
                delete(storage, entry.path)
            else:
                storage.delete(entry.path)

    def remove(self: schema_drop.SchemaDrop) -> bool:
        delete(self.storage, self.schema)
        return True

    patch.setattr(schema_drop.SchemaDrop, "_remove", remove)


def tables_go_without_their_lock(patch: Patch) -> None:
    patch.setattr(dropping, "table_at_rest", _unlocked)


def renames_and_exchanges_without_the_lock(patch: Patch) -> None:
    patch.setattr(catalog, "table_at_rest", _unlocked)


def what_is_dropped_is_not_looked_at_again(patch: Patch) -> None:
    take = dropping.take_away

    def blindly(storage: Storage, name: RelationName, is_still: Any, *, lock_timeout_ms: int) -> bool:
        return take(storage, name, lambda: True, lock_timeout_ms=lock_timeout_ms)

    patch.setattr(catalog, "take_away", blindly)


def tables_are_made_without_the_lock_of_their_place(patch: Patch) -> None:
    patch.setattr(making, "_place", _unlocked)


def the_new_name_is_said_after_the_move(patch: Patch) -> None:
    def move(self: catalog.Catalog, stored: RelationName, target: RelationName) -> None:
        self.storage.rename_tree(stored.path, target.path)

    rename = catalog.Catalog.rename_table

    def renamed(self: catalog.Catalog, name: RelationName, new: RelationName, **given: Any) -> RelationName:
        target = rename(self, name, new, **given)
        place = storage_below(self.storage, target.path)
        with TableLock(place):
            ConfigStore(place).update({"hoodie.table.name": target.name})
        return target

    patch.setattr(catalog.Catalog, "_move", move)
    patch.setattr(catalog.Catalog, "rename_table", renamed)


def makers_of_tables_do_not_look_for_views(patch: Patch) -> None:
    patch.setattr(making, "_yield_to_view", lambda *given: None)


def a_listing_of_nothing_is_a_table_without_rows(patch: Patch) -> None:
    patch.setattr(opening, "check_there", lambda storage, listing: None)


Mutant = Callable[[Patch], None]

MUTANTS: list[tuple[Mutant, str]] = [
    (the_folder_goes_with_what_is_in_it, "a schema dropped beside who makes a table in it"),
    (tables_go_without_their_lock, "a schema dropped beside a writer"),
    (tables_go_without_their_lock, "a table dropped beside a writer"),
    (renames_and_exchanges_without_the_lock, "a table renamed beside a writer"),
    (renames_and_exchanges_without_the_lock, "a table replaced beside a writer"),
    (what_is_dropped_is_not_looked_at_again, "a table dropped twice"),
    (tables_are_made_without_the_lock_of_their_place, "two make one table"),
    (the_new_name_is_said_after_the_move, "a renamed table dropped"),
    (makers_of_tables_do_not_look_for_views, "a view beside a table of its name"),
    (a_listing_of_nothing_is_a_table_without_rows, "a table replaced and dropped"),
]
