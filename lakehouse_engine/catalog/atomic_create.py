"""Makes and fills new tables out of sight, and names them in one step when they are complete.

A process that dies leaves no table that others could mistake for a filled one, and no other writer of the name can take the unfinished
table. In a directory, tables are made in a hidden folder of the schema. An object store cannot move them: the table is made in place, and
becomes a table with its last object.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial

from lakehouse_engine.catalog import places
from lakehouse_engine.catalog.catalog import Catalog, RelationKind
from lakehouse_engine.catalog.dropping import BEST_LOCK, take_away
from lakehouse_engine.catalog.names import RelationName, check_name, taken_meanwhile
from lakehouse_engine.commit.staging import StagingArea, remove_dead_stages
from lakehouse_engine.errors import (
    CommitOutcomeUnknownError,
    LakehouseError,
    StorageError,
    StoredFileExistsError,
    StoredFileNotFoundError,
    TableError,
    TableExistsError,
    TableNotFoundError,
    WriteError,
)
from lakehouse_engine.model.write_stats import WriteResult
from lakehouse_engine.options import LOCK_TIMEOUT_MS, LockOptions
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import in_object_store, storage_below
from lakehouse_engine.timeline.lock import LOCK_FILE, TableLock
from lakehouse_engine.timeline.locks.settings import stored_lock_options

logger = logging.getLogger(__name__)

_TRIES = 4
"""Attempts: between a check and the lock, others may remove a free place or drop the table to be replaced."""

Fill = Callable[[Storage, RelationName], WriteResult]
"""Fills the table in the given empty storage, with one commit."""
_Found = tuple[RelationName, RelationKind]
MayGo = Callable[[RelationName, RelationKind], None]
"""Raises if a relation must stay. For a table it is asked when nothing can change it any more."""


def make_filled(
    catalog: Catalog, name: RelationName, fill: Fill, *, lock_timeout_ms: int, may_go: MayGo | None = None
) -> tuple[RelationName, WriteResult]:
    """Make a table with `fill`; returns its stored name and its commit. With `may_go` it replaces the current relation, a table in one
    step, including its comments.

    Raises, with nothing changed, `SqlError` for a name that no directory can have; `TableExistsError` if the name is taken, or was taken
    meanwhile, by what is not to be replaced; what `fill` and `may_go` raise; `LockTimeoutError` while a process works on the table to be
    replaced; in an object store `TableError` for such a table.
    """
    found = None if may_go is None else catalog.find(name)
    if in_object_store(catalog.storage):
        if found is not None:
            catalog.check_moves(found[0], "replaced")
        target = catalog.claim(name)
        return target, places.fill_in_place(catalog.storage, target, partial(_filled, fill, target), lock_timeout_ms=lock_timeout_ms)
    target = name if found is None else found[0]
    if may_go is None:
        catalog.check_free(name)
    else:
        check_name(name)
    if (found is None or found[1] is RelationKind.VIEW) and not _is_made_meanwhile(catalog, target, may_go):
        places.check_vacant(catalog.storage, target)
    *others, home = catalog.stages(target.schema)
    for folder in (*others, home):
        remove_dead_stages(catalog.storage, catalog.storage.list(folder), folder)
    area = StagingArea(catalog.storage, home)
    try:
        folder = area.folder()
    except StoredFileNotFoundError as error:
        raise _removed(area, target) from error
    try:
        with _told_if_removed(area, target):
            result = _filled(fill, target, storage_below(catalog.storage, folder))
            if not area.is_there():
                raise _removed(area, target)
            return _named(catalog, folder, target, may_go, lock_timeout_ms), result
    finally:
        area.remove()


def _is_made_meanwhile(catalog: Catalog, target: RelationName, may_go: MayGo | None) -> bool:
    """Whether a table that may be replaced was made since the name was looked up."""
    return may_go is not None and places.what_is_at(catalog.storage, target.path) is places.Place.TABLE


@contextmanager
def _told_if_removed(area: StagingArea, target: RelationName) -> Iterator[None]:
    """Report a schema that was dropped meanwhile instead of the failure that it causes."""
    try:
        yield
    except LakehouseError as error:
        if area.is_there():
            raise
        raise _removed(area, target) from error


def _removed(area: StagingArea, target: RelationName) -> StorageError:
    return StorageError(
        f"what was made of {target} in {area.folder()} was removed meanwhile; nothing is changed. Was the schema dropped? Make it again",
        table=target,
    )


def _filled(fill: Fill, target: RelationName, place: Storage) -> WriteResult:
    try:
        return fill(place, target)
    except CommitOutcomeUnknownError as error:
        # A table without a name has no timeline to check.
        raise WriteError(f"{target} was not made, as its commit was not answered; make it again", table=target) from error


def _named(catalog: Catalog, folder: str, target: RelationName, may_go: MayGo | None, timeout_ms: int) -> RelationName:
    for _ in range(_TRIES - 1):
        found = catalog.find(target)
        # What took a free name meanwhile is to be replaced, too. A refusal to replace something is final.
        passed = (TableNotFoundError, TableExistsError) if found is None and may_go is not None else (TableNotFoundError,)
        with _looking_again(catalog, folder, target, passed):
            return _named_once(catalog, folder, target, found, may_go, timeout_ms)
    return _named_once(catalog, folder, target, catalog.find(target), may_go, timeout_ms)


@contextmanager
def _looking_again(catalog: Catalog, folder: str, target: RelationName, passed: tuple[type[TableError], ...]) -> Iterator[None]:
    """Passes over errors of a name that others changed since it was looked up, if the table still waits in `folder`."""
    try:
        yield
    except passed as error:
        if places.what_is_at(catalog.storage, folder) is not places.Place.TABLE:
            raise
        logger.info("%s has changed since it was looked up, and is looked up again: %s", target, error)


def _named_once(
    catalog: Catalog, folder: str, target: RelationName, found: _Found | None, may_go: MayGo | None, timeout_ms: int
) -> RelationName:
    """`found` is the relation that has the name."""
    if found is None:
        stored = catalog.claim(target)
        _put(catalog, folder, stored, timeout_ms)
        _yield_to_view(catalog, stored, timeout_ms)
        return stored
    name, kind = found
    if may_go is None:
        raise taken_meanwhile(name)
    if kind is RelationKind.VIEW:
        places.check_vacant(catalog.storage, name)
        may_go(name, kind)
        catalog.drop_view(name, if_exists=True)
        _put(catalog, folder, name, timeout_ms)
    else:
        catalog.exchange(folder, name, may_go=lambda: may_go(name, kind), lock_timeout_ms=timeout_ms)
    return name


@contextmanager
def made_empty(
    catalog: Catalog, name: RelationName, locks: LockOptions, *, lock_timeout_ms: int = LOCK_TIMEOUT_MS.default
) -> Iterator[None]:
    """Holds a claimed place while the properties of an empty table are made, so that nothing else is made there. `locks` is the lock
    provider that the properties will name.

    Raises as `places.made_in_place`, and `TableExistsError` for a place that holds files: a new table would adopt the timeline among them.
    """
    with _place(catalog, name, locks, lock_timeout_ms):
        yield
        _yield_to_view(catalog, name, lock_timeout_ms)


def _place(catalog: Catalog, name: RelationName, locks: LockOptions, timeout_ms: int) -> AbstractContextManager[object]:
    if in_object_store(catalog.storage):
        places.check_vacant(catalog.storage, name)
        return places.made_in_place(catalog.storage, name, lock_timeout_ms=timeout_ms)
    _is_left(catalog, name)
    # One call makes the properties, so the kernel's lock is enough unless another one is asked for.
    asked = locks if locks.provider else BEST_LOCK
    return _locked(catalog, name, asked, timeout_ms)


def _yield_to_view(catalog: Catalog, name: RelationName, timeout_ms: int) -> None:
    """Remove the new table if a view of its name was stored meanwhile. `create_view` does the reverse check, so at most one stays."""
    if catalog.hides_view(name):
        take_away(catalog.storage, name, lambda: True, lock_timeout_ms=timeout_ms)
        raise taken_meanwhile(name)


def _put(catalog: Catalog, folder: str, name: RelationName, timeout_ms: int) -> None:
    if not _is_left(catalog, name):
        catalog.put(folder, name)
        return
    with _locked(catalog, name, stored_lock_options(catalog.storage, folder), timeout_ms):
        catalog.put(folder, name, swaps=True)


def _is_left(catalog: Catalog, name: RelationName) -> bool:
    """True if a new table's place is a directory that holds only locks. Raises `TableExistsError` if it holds more."""
    if catalog.storage.head(name.path) is None:
        return False
    if catalog.find(name) is not None:
        raise taken_meanwhile(name)
    places.check_vacant(catalog.storage, name)
    return True


@contextmanager
def _locked(catalog: Catalog, name: RelationName, locks: LockOptions, timeout_ms: int) -> Iterator[None]:
    """Hold the lock of a place while a table is made there. If nothing is made, the place is left unchanged."""
    storage, file = catalog.storage, f"{name.path}/{LOCK_FILE}"
    with ExitStack() as held:
        _enter(held, storage, file, TableLock(storage, timeout_ms, file=file, instead=locks))
        _is_left(catalog, name)
        try:
            yield
        except BaseException:
            if places.what_is_at(storage, name.path) is places.Place.FREE:
                storage.delete(file)
                storage.delete_empty(name.path)
            raise


def _enter(held: ExitStack, storage: Storage, file: str, lock: TableLock) -> None:
    for last in (*(False,) * (_TRIES - 1), True):
        with suppress(StoredFileExistsError):
            storage.create(file, b"")
        try:
            held.enter_context(lock)
            return
        except TableNotFoundError:  # others removed the place because it was empty
            if last:
                raise
