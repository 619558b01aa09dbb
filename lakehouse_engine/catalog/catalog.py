"""The warehouse directory as catalog: `<schema>/<table>/.hoodie` is a table, `<schema>/.views/<name>.json` a stored view.

Nothing is cached, so every process sees the others' changes. Names are case-insensitive and keep the case of their creation. A name is a
table or a view, never both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from lakehouse_engine.catalog.dropping import check_held, comments_of, make_room, take_away
from lakehouse_engine.catalog.names import RelationName, check_identifier, check_name, taken_meanwhile
from lakehouse_engine.catalog.places import Place, check_vacant, clear_place, what_is_at
from lakehouse_engine.catalog.records import Comments, StoredView
from lakehouse_engine.catalog.schema_drop import SCHEMA_FILE, STAGES, VIEWS, SchemaDrop
from lakehouse_engine.compat import UTC, StrEnum
from lakehouse_engine.engine import REQUESTS_AT_ONCE, LocalRunner, TaskRunner, looking_runner
from lakehouse_engine.errors import (
    PropertiesError,
    RelationNotFoundError,
    SqlError,
    StorageError,
    StoredFileExistsError,
    StoredFileNotFoundError,
    TableError,
    TableExistsError,
    TableNotFoundError,
)
from lakehouse_engine.model.table_config import NAME_KEY
from lakehouse_engine.options import LOCK_TIMEOUT_MS
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import has_file, in_object_store, storage_below
from lakehouse_engine.storage.usable import check_usable
from lakehouse_engine.timeline.at_rest import table_at_rest
from lakehouse_engine.timeline.config_store import PROPERTIES, ConfigStore, parse_config
from lakehouse_engine.timeline.locks.hudi_file import let_go_of_moved

_INSTEAD = {
    "renamed": "clone it under the other name (CREATE TABLE ... CLONE), and drop this one",
    "replaced": "a crash between the two would leave neither; drop the table first",
}
"""What to do instead if a table cannot be moved."""


class RelationKind(StrEnum):
    """What a name in a schema is."""

    TABLE = "table"
    VIEW = "view"


@dataclass(frozen=True, slots=True)
class Catalog:
    """Schemas, tables, stored views and comments below `storage`, which is rooted at the warehouse."""

    storage: Storage

    # schemas

    def schemas(self) -> list[str]:
        """Names of all schemas: the visible directories of the warehouse."""
        return [entry.name for entry in self.storage.list() if entry.is_directory and not entry.name.startswith(".")]

    def find_schema(self, name: str) -> str | None:
        """The schema's name as stored, or None."""
        return _pick(check_identifier(name, "schema"), self.schemas())

    def create_schema(self, name: str, *, comment: str | None = None, if_not_exists: bool = False) -> str:
        """Create a schema; returns its stored name.

        Raises `TableExistsError` if it exists, unless `if_not_exists`, and `UnusablePlaceError` if the warehouse cannot be created.
        """
        found = self.find_schema(name)
        if found is None:
            with suppress(StoredFileExistsError):  # another process is making it, perhaps with a comment
                self._make_schema(name, comment)
                return name
            found = name
        if not if_not_exists:
            raise TableExistsError(f"the schema {found} is there already; create it with IF NOT EXISTS", schema=found)
        return found

    def _make_schema(self, name: str, comment: str | None) -> None:
        try:
            self.storage.create(f"{name}/{SCHEMA_FILE}", Comments(comment).to_json())
        except StoredFileExistsError:
            raise
        except StorageError as error:
            check_usable(self.storage)  # a warehouse's first schema: the warehouse itself may be the problem
            if self.storage.head(name) is None:
                raise
            where = f"there is a file of that name in {self.storage.root}; move it away"
            raise TableError(f"the schema {name} cannot be made: {where}", schema=name) from error

    def schema_comment(self, name: str) -> str | None:
        """Comment of a schema. Raises `RelationNotFoundError` without the schema."""
        path = f"{self._schema(name)}/{SCHEMA_FILE}"
        stored = self._stored(path)
        return None if stored is None else Comments.from_json(stored, path).comment

    def set_schema_comment(self, name: str, comment: str) -> None:
        """Set the comment of a schema; an empty text removes it. Raises `RelationNotFoundError` without the schema."""
        self.storage.overwrite(f"{self._schema(name)}/{SCHEMA_FILE}", Comments(comment or None).to_json())

    def drop_schema(
        self, name: str, *, cascade: bool = False, if_exists: bool = False, lock_timeout_ms: int = LOCK_TIMEOUT_MS.default
    ) -> bool:
        """Delete a schema with its functions and, if `cascade`, everything in it; False if it does not exist and `if_exists`.

        Each table is dropped under its lock. Tables that others make meanwhile go too; unfinished ones get no name. Raises
        `RelationNotFoundError` without the schema, `LockTimeoutError` naming the process at work on a table, and `TableError` if the schema
        holds relations without `cascade`, or directories that are not tables (the catalog does not own those).
        """
        found = self.find_schema(name)
        if found is None:
            if if_exists:
                return False
            raise RelationNotFoundError(f"there is no schema {name}; the warehouse has {', '.join(self.schemas()) or 'none'}")
        SchemaDrop(self.storage, found, cascade, lock_timeout_ms).run()
        return True

    # relations

    def find(self, name: RelationName) -> tuple[RelationName, RelationKind] | None:
        """Stored name and kind of the relation, or None."""
        kind = self._exact(name)
        if kind is not None:
            return name, kind
        schema = self.find_schema(name.schema)
        if schema is None:
            return None
        # Directories are filtered by name first, so that a lookup does not open every table of the schema.
        stored = [one for one in (*self._directories(schema), *self._view_names(schema)) if one.lower() == name.name.lower()]
        for found in (RelationName(schema, one) for one in sorted(set(stored), key=lambda one: one != name.name)):
            kind = self._exact(found)
            if kind is not None:
                return found, kind
        return None

    def hides_view(self, name: RelationName) -> bool:
        """True if a view of exactly that stored name exists too."""
        return has_file(self.storage, _beside(name, VIEWS))

    def is_view(self, name: RelationName) -> bool:
        return self.kind_of((name.schema, name.name)) is RelationKind.VIEW

    def kind_of(self, parts: tuple[str, ...]) -> RelationKind | None:
        """What a name of one to three parts means here; None if it is nothing, or cannot be a name of the warehouse."""
        try:
            name = RelationName.of(parts)
        except SqlError:
            return None
        found = self.find(name)
        return found[1] if found else None

    def tables(self, schema: str | None = None) -> list[RelationName]:
        """Every table (of `schema`), sorted. Raises `RelationNotFoundError` without the schema."""
        return [RelationName(one, name) for one in self._schemas(schema) for name in self._table_names(one)]

    def views(self, schema: str | None = None) -> list[RelationName]:
        """Every stored view (of `schema`), sorted. Raises `RelationNotFoundError` without the schema."""
        return [RelationName(one, name) for one in self._schemas(schema) for name in self._view_names(one)]

    def table(self, name: RelationName) -> RelationName:
        """The table's stored name. Raises `TableNotFoundError`, which says so if the name is a view."""
        found = self.find(name)
        if found is not None and found[1] is RelationKind.TABLE:
            return found[0]
        raise _not_found(name, is_view=found is not None)

    def queries(self, schema: str) -> dict[RelationName, str | None]:
        """Every table of a schema, sorted, with its query if it is a materialized view; one file a table is read. Raises
        `RelationNotFoundError` without the schema.
        """
        stored = self._schema(schema)
        names = [RelationName(stored, one) for one in self._directories(stored)]
        found = self._requests.run(self._query, names, name="find tables")
        return {name: query for name, (is_table, query) in zip(names, found, strict=True) if is_table}

    def materialized_query(self, name: RelationName) -> str | None:
        """Query of a materialized view; None for other tables and for one that cannot be read."""
        return self._query(name)[1]

    def _query(self, name: RelationName) -> tuple[bool, str | None]:
        """Whether it is a table, and its query."""
        try:
            return True, parse_config(self.storage.read(f"{name.path}/{PROPERTIES}")).materialized_query
        except StoredFileNotFoundError:
            return False, None
        except PropertiesError:
            return True, None
        except StorageError:
            if has_file(self.storage, f"{name.path}/{PROPERTIES}"):
                raise
            return False, None  # a directory of that name

    def check_free(self, name: RelationName) -> None:
        """Raise `TableExistsError` if a table or view has the name, and `SqlError` for a name that no directory or file can have."""
        check_name(name)
        found = self.find(name)
        if found is not None:
            raise TableExistsError(f"{found[0]} is there already, as a {found[1]}; drop it first", table=found[0])

    def claim(self, name: RelationName) -> RelationName:
        """Name under which a new table or view is stored, with the schema's stored case. Creates the schema's directory if it is missing.

        Raises as `check_free`.
        """
        self.check_free(name)
        stored = RelationName(self.create_schema(name.schema, if_not_exists=True), name.name)
        clear_place(self.storage, stored)
        return stored

    def drop_table(
        self,
        name: RelationName,
        *,
        if_exists: bool = False,
        lock_timeout_ms: int = LOCK_TIMEOUT_MS.default,
    ) -> bool:
        """Delete a table with its files and comments, or the remains of one without properties; False if there is neither and `if_exists`.

        The directory is renamed first, so that a crash leaves no half table. Raises `TableNotFoundError`, and `LockTimeoutError` naming the
        process at work on it, with nothing changed.
        """
        stored = self._droppable(name)
        if stored is not None and self._take_away(stored, lambda: self._droppable(stored) == stored, lock_timeout_ms):
            return True
        if if_exists:
            return False
        raise _not_found(name, is_view=False)

    def _droppable(self, name: RelationName) -> RelationName | None:
        """Stored name of what `drop_table` deletes. Raises `TableNotFoundError` for a view."""
        found = self.find(name)
        if found is not None:
            return self.table(found[0])
        clear_place(self.storage, name)
        schema = self.find_schema(name.schema)
        place = RelationName(schema or name.schema, name.name)
        return place if what_is_at(self.storage, place.path) is Place.REMAINS else None

    def _take_away(self, name: RelationName, is_still: Callable[[], bool], lock_timeout_ms: int) -> bool:
        try:
            return take_away(self.storage, name, is_still, lock_timeout_ms=lock_timeout_ms)
        except TableNotFoundError:  # another process dropped or renamed it during the wait
            return False

    def check_moves(self, name: RelationName, what: str) -> None:
        """Raise `TableError`, with nothing changed, if the storage cannot rename directories."""
        if in_object_store(self.storage):
            raise TableError(f"{name} cannot be {what} in {self.storage.root}: an object store has no rename; {_INSTEAD[what]}", table=name)

    def stages(self, schema: str) -> list[str]:
        """Hidden folders in which tables of a schema are made. New ones go into the last: the schema's own, once the schema exists, as it
        may be on another disk.
        """
        found = self.find_schema(schema)
        return [STAGES] if found is None else [STAGES, f"{found}/{STAGES}"]

    def put(self, folder: str, name: RelationName, *, swaps: bool = False) -> None:
        """Move a table from the hidden `folder` to its claimed name; `TableExistsError` if the name has been taken since.

        `swaps`: a directory that is not a table is in its place; it ends up in `folder`, to be removed.
        """
        try:
            (self.storage.exchange_trees if swaps else self.storage.rename_tree)(folder, name.path)
        except StoredFileExistsError as error:
            raise taken_meanwhile(name) from error

    def exchange(self, folder: str, name: RelationName, *, may_go: Callable[[], None], lock_timeout_ms: int) -> None:
        """Replace the table `name` by the one in the hidden `folder` in one step. The old one ends up in `folder`, to be removed, and its
        comments go. `may_go` is called when nothing can change it any more.

        Raises `LockTimeoutError` as `drop_table`, `TableNotFoundError` if the table has gone, and what `may_go` raises, with nothing
        changed.
        """
        with table_at_rest(self.storage, name.path, lock_timeout_ms=lock_timeout_ms) as lock:
            self.table(name)  # dropped during the wait?
            may_go()
            check_held(lock, name)
            self.storage.exchange_trees(folder, name.path)
            self.storage.delete(comments_of(name))

    def rename_table(self, name: RelationName, new_name: RelationName, *, lock_timeout_ms: int = LOCK_TIMEOUT_MS.default) -> RelationName:
        """Rename a table in its directory and its properties, with its comments; returns the stored name.

        Raises `TableNotFoundError`, `TableExistsError`, and `LockTimeoutError` naming the process at work on it, with nothing changed.
        """
        stored = self.table(name)
        self.check_moves(stored, "renamed")
        target = RelationName(self._schema(new_name.schema), new_name.name)
        found = self.find(target)
        if found is not None and (found[0] != stored or target == stored):
            raise TableExistsError(f"{found[0]} is there already, as a {found[1]}; drop it first", table=found[0])
        check_vacant(self.storage, target)
        make_room(self.storage, target, lock_timeout_ms=lock_timeout_ms)
        with table_at_rest(self.storage, stored.path, lock_timeout_ms=lock_timeout_ms) as lock:
            self.table(stored)  # dropped during the wait?
            check_held(lock, stored)
            self._move(stored, target)
        return target

    def _move(self, stored: RelationName, target: RelationName) -> None:
        """Rename under the table's lock. The properties change first, while no writer knows the new name."""
        properties = ConfigStore(storage_below(self.storage, stored.path))
        comments = self._stored(comments_of(stored))
        before = properties.read().name
        properties.update({NAME_KEY: target.name})
        try:
            self.storage.rename_tree(stored.path, target.path)
        except StorageError as error:
            properties.update({NAME_KEY: before})
            if isinstance(error, StoredFileExistsError):
                raise taken_meanwhile(target) from error
            raise
        let_go_of_moved(self.storage, target.path)
        if comments is not None:
            self.storage.overwrite(comments_of(target), comments)
            self.storage.delete(comments_of(stored))

    # views

    def view(self, name: RelationName) -> StoredView:
        """Raises `RelationNotFoundError` if there is no such view."""
        stored = self._view(name)
        path = _beside(stored, VIEWS)
        found = self._stored(path)
        if found is None:  # dropped since it was found
            raise _no_view(stored, is_table=False)
        return StoredView.from_json(found, path)

    def create_view(
        self,
        name: RelationName,
        sql: str,
        *,
        columns: tuple[tuple[str, str | None], ...] = (),
        comment: str | None = None,
        or_replace: bool = False,
        if_not_exists: bool = False,
    ) -> RelationName:
        """Store a view; returns its stored name. Raises `TableExistsError` if a table has the name, or a view does and neither flag is
        given, and `SqlError` for a name that no file can have.
        """
        name = RelationName.of((name.schema, name.name))
        view = StoredView(sql, columns, comment, datetime.now(UTC).isoformat(timespec="seconds"))
        found = self.find(name)
        if found is not None and found[1] is RelationKind.VIEW and (or_replace or if_not_exists):
            if or_replace:
                self.storage.overwrite(_beside(found[0], VIEWS), view.to_json())
            return found[0]
        return self._add_view(name, view.to_json())

    def drop_view(self, name: RelationName, *, if_exists: bool = False) -> bool:
        """Delete a view; False if it does not exist and `if_exists`. Raises `RelationNotFoundError`."""
        if if_exists and self.find(name) is None:
            return False
        stored = self._view(name)
        self.storage.delete(_beside(stored, VIEWS))
        self.storage.delete(comments_of(stored))
        return True

    def rename_view(self, name: RelationName, new_name: RelationName) -> RelationName:
        """Rename a view; returns the stored name. Raises `RelationNotFoundError`, `TableExistsError`."""
        stored, definition = self._view(name), self.view(name).to_json()
        comments = self.comments(stored)
        target = self._add_view(new_name, definition)
        if comments != Comments():
            self.storage.overwrite(comments_of(target), comments.to_json())
        newest = self._stored(_beside(stored, VIEWS))
        if newest is not None and newest != definition:  # another process has replaced it
            self.storage.overwrite(_beside(target, VIEWS), newest)
        self.drop_view(stored, if_exists=True)
        return target

    def _add_view(self, name: RelationName, definition: bytes) -> RelationName:
        """Raises `TableExistsError` if the name is taken, also by a table made at the same time."""
        stored = self.claim(name)
        path = _beside(stored, VIEWS)
        try:
            self.storage.create(path, definition)
        except StoredFileExistsError as error:
            raise taken_meanwhile(stored) from error
        if what_is_at(self.storage, stored.path) is Place.TABLE:
            self.storage.delete(path)
            raise taken_meanwhile(stored)
        return stored

    # comments

    def comments(self, name: RelationName) -> Comments:
        """Comments of a table or view; empty if none are set. Raises `RelationNotFoundError`."""
        path = comments_of(self._relation(name))
        stored = self._stored(path)
        return Comments() if stored is None else Comments.from_json(stored, path)

    def set_comments(self, name: RelationName, comment: str | None = None, columns: Mapping[str, str] | None = None) -> None:
        """Set the comment (None keeps it, empty removes it) and those of `columns`. Raises `RelationNotFoundError`."""
        stored = self._relation(name)
        before = self.comments(stored)
        after = before.merged(comment, columns or {})
        if after != before:
            self.storage.overwrite(comments_of(stored), after.to_json())

    # lookups

    def _exact(self, name: RelationName) -> RelationKind | None:
        if has_file(self.storage, f"{name.path}/{PROPERTIES}"):
            return RelationKind.TABLE
        return RelationKind.VIEW if has_file(self.storage, _beside(name, VIEWS)) else None

    def _schema(self, name: str) -> str:
        found = self.find_schema(name)
        if found is None:
            raise RelationNotFoundError(f"there is no schema {name}; create it first", schema=name)
        return found

    def _schemas(self, schema: str | None) -> list[str]:
        return self.schemas() if schema is None else [self._schema(schema)]

    def _relation(self, name: RelationName) -> RelationName:
        found = self.find(name)
        if found is None:
            raise RelationNotFoundError(f"{name} is neither a table nor a view of the warehouse", relation=name)
        return found[0]

    def _view(self, name: RelationName) -> RelationName:
        found = self.find(name)
        if found is None or found[1] is not RelationKind.VIEW:
            raise _no_view(name, is_table=found is not None)
        return found[0]

    def _stored(self, path: str) -> bytes | None:
        """Content of a small catalog file; None if it does not exist."""
        try:
            return self.storage.read(path)
        except StoredFileNotFoundError:
            return None

    def _table_names(self, schema: str) -> list[str]:
        names = self._directories(schema)
        there = self._requests.run(lambda name: has_file(self.storage, f"{schema}/{name}/{PROPERTIES}"), names, name="find tables")
        return [name for name, is_table in zip(names, there, strict=True) if is_table]

    @property
    def _requests(self) -> TaskRunner:
        """Runner for small questions to the storage, of which an object store answers several at once."""
        return looking_runner(LocalRunner(1, waiting=REQUESTS_AT_ONCE), self.storage)

    def _directories(self, schema: str) -> list[str]:
        return [entry.name for entry in self.storage.list(schema) if entry.is_directory and not entry.name.startswith(".")]

    def _view_names(self, schema: str) -> list[str]:
        files = self.storage.list(f"{schema}/{VIEWS}")
        return [file.name.removesuffix(".json") for file in files if file.name.endswith(".json")]


def _no_view(name: RelationName, *, is_table: bool) -> RelationNotFoundError:
    what = "is a table" if is_table else "is not in the warehouse"
    return RelationNotFoundError(f"{name} {what}; a view of that name was expected", relation=name)


def _not_found(name: RelationName, *, is_view: bool) -> TableNotFoundError:
    what = "is a view" if is_view else "is not in the warehouse"
    return TableNotFoundError(f"{name} {what}; a table of that name was expected", table=name)


def _beside(name: RelationName, folder: str) -> str:
    return f"{name.schema}/{folder}/{name.name}.json"


def _pick(name: str, stored: list[str]) -> str | None:
    """Stored name that `name` means: an exact match, else one that differs only in case."""
    if name in stored:
        return name
    return next((one for one in stored if one.lower() == name.lower()), None)
