"""The warehouse directory as the catalog: `<schema>/<table>/.hoodie` is a table, `<schema>/.views/<name>.json` a stored view.

Nothing is cached, so every process sees what any other did. Names are looked up without regard to case and keep the case that
they were created with. A name is a table or a view, never both.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from lakehouse_engine.catalog.names import RelationName, check_identifier, taken_meanwhile
from lakehouse_engine.catalog.places import NOTES, clear_place, clear_schema, is_vacant, take_apart
from lakehouse_engine.catalog.records import Comments, StoredView
from lakehouse_engine.compat import UTC, StrEnum
from lakehouse_engine.errors import (
    PropertiesError,
    RelationNotFoundError,
    SqlError,
    StoredFileExistsError,
    StoredFileNotFoundError,
    TableError,
    TableExistsError,
    TableNotFoundError,
)
from lakehouse_engine.options import LOCK_TIMEOUT_MS
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import has_file, in_object_store
from lakehouse_engine.timeline.at_rest import table_at_rest
from lakehouse_engine.timeline.config_store import parse_config
from lakehouse_engine.timeline.locks.hudi_file import let_go_of_moved

_META_FOLDER = ".hoodie"
_PROPERTIES = f"{_META_FOLDER}/hoodie.properties"
_SCHEMA_FILE = ".schema.json"
_VIEWS, _COMMENTS, _DROPPED, _STAGES = ".views", ".docs", NOTES, ".staged"
_FUNCTIONS = ".functions"
"""What `functions` keeps there."""
_INSTEAD = {
    "renamed": "clone it under the other name (CREATE TABLE ... CLONE), and drop this one",
    "replaced": "a crash between the two would leave neither; drop the table first",
}
"""What to do where a table cannot be moved."""


class RelationKind(StrEnum):
    TABLE = "table"
    VIEW = "view"


@dataclass(frozen=True, slots=True)
class Catalog:
    """Schemas, tables, stored views and comments below `storage`, which is rooted at the warehouse."""

    storage: Storage

    # schemas

    def schemas(self) -> list[str]:
        """Names of all schemas: the directories of the warehouse that are not hidden."""
        return [entry.name for entry in self.storage.list() if entry.is_directory and not entry.name.startswith(".")]

    def find_schema(self, name: str) -> str | None:
        """The schema's name as stored, or None."""
        return _pick(check_identifier(name, "schema"), self.schemas())

    def create_schema(self, name: str, *, comment: str | None = None, if_not_exists: bool = False) -> str:
        """Create a schema; its name as stored. Raises `TableExistsError` when it is there, unless `if_not_exists`."""
        found = self.find_schema(name)
        if found is None:
            self.storage.overwrite(f"{name}/{_SCHEMA_FILE}", Comments(comment).to_json())
            return name
        if not if_not_exists:
            raise TableExistsError(f"the schema {found} is there already; create it with IF NOT EXISTS", schema=found)
        return found

    def schema_comment(self, name: str) -> str | None:
        """Raises `RelationNotFoundError` without the schema."""
        path = f"{self._schema(name)}/{_SCHEMA_FILE}"
        return Comments.from_json(self.storage.read(path), path).comment if has_file(self.storage, path) else None

    def set_schema_comment(self, name: str, comment: str) -> None:
        """An empty text removes it. Raises `RelationNotFoundError` without the schema."""
        self.storage.overwrite(f"{self._schema(name)}/{_SCHEMA_FILE}", Comments(comment or None).to_json())

    def drop_schema(self, name: str, *, cascade: bool = False, if_exists: bool = False) -> bool:
        """Delete a schema; False when it is not there and `if_exists`.

        Raises `RelationNotFoundError` without it, and `TableError` when it holds relations and not `cascade`, or directories that
        are no tables (those are not the catalog's to delete).
        """
        found = self.find_schema(name)
        if found is None:
            if if_exists:
                return False
            raise RelationNotFoundError(f"there is no schema {name}; the warehouse has {', '.join(self.schemas()) or 'none'}")
        tables, views = self.tables(found), self.views(found)
        if (tables or views) and not cascade:
            count = f"{len(tables)} tables and {len(views)} views"
            raise TableError(f"the schema {found} holds {count}; drop them first, or use CASCADE", schema=found)
        clear_schema(self.storage, found)
        known = {table.name for table in tables} | {_SCHEMA_FILE, _VIEWS, _COMMENTS, _DROPPED, _STAGES, _FUNCTIONS}
        others = (entry.path for entry in self.storage.list(found) if entry.name not in known)
        foreign = next((path for path in others if not is_vacant(self.storage, path)), None)
        if foreign is not None:
            raise TableError(f"{foreign} is no table of the engine and is not deleted with the schema; move it away first", schema=found)
        for table in tables:
            self.drop_table(table, if_exists=True)
        self.storage.delete_tree(found)
        return True

    # relations

    def find(self, name: RelationName) -> tuple[RelationName, RelationKind] | None:
        """The relation's name as stored and its kind, or None."""
        kind = self._exact(name)
        if kind is not None:
            return name, kind
        schema = self.find_schema(name.schema)
        if schema is None:
            return None
        # Directories are picked by name before they are looked into: a lookup must not cost one look per table of the schema.
        stored = [one for one in (*self._directories(schema), *self._view_names(schema)) if one.lower() == name.name.lower()]
        for found in (RelationName(schema, one) for one in sorted(set(stored), key=lambda one: one != name.name)):
            kind = self._exact(found)
            if kind is not None:
                return found, kind
        return None

    def is_view(self, name: RelationName) -> bool:
        return self.kind_of((name.schema, name.name)) is RelationKind.VIEW

    def kind_of(self, parts: tuple[str, ...]) -> RelationKind | None:
        """What a name of one to three parts is here; None when it is nothing, or cannot be a name of the warehouse."""
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
        """The table's name as stored. Raises `TableNotFoundError`, which says so when the name is a view."""
        found = self.find(name)
        if found is not None and found[1] is RelationKind.TABLE:
            return found[0]
        what = "is a view" if found else "is not in the warehouse"
        raise TableNotFoundError(f"{name} {what}; a table of that name was expected", table=name)

    def materialized_query(self, name: RelationName) -> str | None:
        """The query whose rows the table holds, if it is a materialized view; None for other tables and for one that cannot be read."""
        try:
            return parse_config(self.storage.read(f"{name.path}/{_PROPERTIES}")).materialized_query
        except (StoredFileNotFoundError, PropertiesError):
            return None

    def check_free(self, name: RelationName) -> None:
        """Raise `TableExistsError` when a table or view has the name, and `SqlError` for one that no directory or file can have."""
        check_identifier(name.schema, "schema")
        check_identifier(name.name, "relation")
        found = self.find(name)
        if found is not None:
            raise TableExistsError(f"{found[0]} is there already, as a {found[1]}; drop it first", table=found[0])

    def claim(self, name: RelationName) -> RelationName:
        """The name under which a new table or view is stored: the schema's own case. Creates the schema's directory if it is missing.

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
        """Delete a table with all its files and comments; False when it is not there and `if_exists`.

        The directory is renamed before it is deleted, so that a crash leaves no half table. Raises `TableNotFoundError`, and
        `LockTimeoutError` naming who is at work on it, with nothing changed.
        """
        found = self.find(name)
        if found is None:
            clear_place(self.storage, name)
        if found is None and if_exists:
            return False
        stored = self.table(name)
        away = f"{stored.schema}/{_DROPPED}/{uuid.uuid4().hex}"
        with table_at_rest(self.storage, stored.path, lock_timeout_ms=lock_timeout_ms):
            if self._exact(stored) is not RelationKind.TABLE:  # dropped while this waited
                return self.drop_table(name, if_exists=if_exists, lock_timeout_ms=lock_timeout_ms)
            if in_object_store(self.storage):
                take_apart(self.storage, stored)
            else:
                self.storage.rename_tree(stored.path, away)
        if not in_object_store(self.storage):
            self.storage.delete_tree(away)
        self.storage.delete(_beside(stored, _COMMENTS))
        return True

    def check_moves(self, name: RelationName, what: str) -> None:
        """Raise `TableError`, with nothing changed, where directories have no other name to get."""
        if in_object_store(self.storage):
            raise TableError(f"{name} cannot be {what} in {self.storage.root}: an object store has no rename; {_INSTEAD[what]}", table=name)

    def stages(self, schema: str) -> list[str]:
        """The hidden folders in which tables of a schema may have been made; the last is for new ones: that of the schema, which may be
        on a disk of its own, once it is there.
        """
        found = self.find_schema(schema)
        return [_STAGES] if found is None else [_STAGES, f"{found}/{_STAGES}"]

    def put(self, folder: str, name: RelationName, *, swaps: bool = False) -> None:
        """Give the table that was made in the hidden `folder` a name that was claimed; `TableExistsError` where it was taken since.

        `swaps`: a directory that is no table is in its place, and in `folder` afterwards, to be removed.
        """
        try:
            (self.storage.exchange_trees if swaps else self.storage.rename_tree)(folder, name.path)
        except StoredFileExistsError as error:
            raise taken_meanwhile(name) from error

    def exchange(self, folder: str, name: RelationName, *, may_go: Callable[[], None], lock_timeout_ms: int) -> None:
        """Put the table that was made in the hidden `folder` in the place of the table `name`, in one step: that one is in `folder`
        afterwards, to be removed, and its comments go. `may_go` is called when nobody can change it any more.

        Raises `LockTimeoutError` as `drop_table`, and what `may_go` raises, with nothing changed.
        """
        with table_at_rest(self.storage, name.path, lock_timeout_ms=lock_timeout_ms):
            self.table(name)  # dropped while this waited?
            may_go()
            self.storage.exchange_trees(folder, name.path)
        self.storage.delete(_beside(name, _COMMENTS))

    def rename_table(self, name: RelationName, new_name: RelationName, *, lock_timeout_ms: int = LOCK_TIMEOUT_MS.default) -> RelationName:
        """Move a table's directory, comments included; the new name as stored. The caller writes the new `hoodie.table.name`.

        Raises `TableNotFoundError`, `TableExistsError`, and `LockTimeoutError` naming who is at work on it, with nothing changed.
        """
        stored = self.table(name)
        self.check_moves(stored, "renamed")
        target = RelationName(self._schema(new_name.schema), new_name.name)
        found = self.find(target)
        if found is not None and found[0] != stored:
            raise TableExistsError(f"{found[0]} is there already, as a {found[1]}; drop it first", table=found[0])
        with table_at_rest(self.storage, stored.path, lock_timeout_ms=lock_timeout_ms):
            self.table(stored)  # dropped while this waited?
            self.storage.rename_tree(stored.path, target.path)
            let_go_of_moved(self.storage, target.path)
        if has_file(self.storage, _beside(stored, _COMMENTS)):
            self.storage.overwrite(_beside(target, _COMMENTS), self.storage.read(_beside(stored, _COMMENTS)))
            self.storage.delete(_beside(stored, _COMMENTS))
        return target

    # views

    def view(self, name: RelationName) -> StoredView:
        """Raises `RelationNotFoundError` when there is no such view."""
        path = _beside(self._view(name), _VIEWS)
        return StoredView.from_json(self.storage.read(path), path)

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
        """Store a view; its name as stored. Raises `TableExistsError` when a table has the name, or a view and neither flag is given, and
        `SqlError` for a name that no file can have.
        """
        name = RelationName.of((name.schema, name.name))
        view = StoredView(sql, columns, comment, datetime.now(UTC).isoformat(timespec="seconds"))
        found = self.find(name)
        if found is not None and found[1] is RelationKind.VIEW and (or_replace or if_not_exists):
            if or_replace:
                self.storage.overwrite(_beside(found[0], _VIEWS), view.to_json())
            return found[0]
        stored = self.claim(name)
        try:
            self.storage.create(_beside(stored, _VIEWS), view.to_json())
        except StoredFileExistsError as error:
            raise taken_meanwhile(stored) from error
        return stored

    def drop_view(self, name: RelationName, *, if_exists: bool = False) -> bool:
        """Delete a view; False when it is not there and `if_exists`. Raises `RelationNotFoundError`."""
        if if_exists and self.find(name) is None:
            return False
        stored = self._view(name)
        self.storage.delete(_beside(stored, _VIEWS))
        self.storage.delete(_beside(stored, _COMMENTS))
        return True

    def rename_view(self, name: RelationName, new_name: RelationName) -> RelationName:
        """Store the view under another name; that name as stored. Raises `RelationNotFoundError`, `TableExistsError`."""
        stored, definition = self._view(name), self.view(name)
        comments = self.comments(stored)
        target = self.claim(new_name)
        self.storage.create(_beside(target, _VIEWS), definition.to_json())
        if comments != Comments():
            self.storage.overwrite(_beside(target, _COMMENTS), comments.to_json())
        self.drop_view(stored)
        return target

    # comments

    def comments(self, name: RelationName) -> Comments:
        """Comments of a table or view; empty where none were set. Raises `RelationNotFoundError`."""
        path = _beside(self._relation(name), _COMMENTS)
        return Comments.from_json(self.storage.read(path), path) if has_file(self.storage, path) else Comments()

    def set_comments(self, name: RelationName, comment: str | None = None, columns: Mapping[str, str] | None = None) -> None:
        """Set the comment (None: leave it, empty: remove it) and those of `columns`. Raises `RelationNotFoundError`."""
        stored = self._relation(name)
        before = self.comments(stored)
        after = before.merged(comment, columns or {})
        if after != before:
            self.storage.overwrite(_beside(stored, _COMMENTS), after.to_json())

    # lookups

    def _exact(self, name: RelationName) -> RelationKind | None:
        if has_file(self.storage, f"{name.path}/{_PROPERTIES}"):
            return RelationKind.TABLE
        return RelationKind.VIEW if has_file(self.storage, _beside(name, _VIEWS)) else None

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
            what = "is a table" if found else "is not in the warehouse"
            raise RelationNotFoundError(f"{name} {what}; a view of that name was expected", relation=name)
        return found[0]

    def _table_names(self, schema: str) -> list[str]:
        return [name for name in self._directories(schema) if has_file(self.storage, f"{schema}/{name}/{_PROPERTIES}")]

    def _directories(self, schema: str) -> list[str]:
        return [entry.name for entry in self.storage.list(schema) if entry.is_directory and not entry.name.startswith(".")]

    def _view_names(self, schema: str) -> list[str]:
        files = self.storage.list(f"{schema}/{_VIEWS}")
        return [file.name.removesuffix(".json") for file in files if file.name.endswith(".json")]


def _beside(name: RelationName, folder: str) -> str:
    return f"{name.schema}/{folder}/{name.name}.json"


def _pick(name: str, stored: list[str]) -> str | None:
    """The stored name that `name` means: itself, else the one that differs by case alone."""
    if name in stored:
        return name
    return next((one for one in stored if one.lower() == name.lower()), None)
