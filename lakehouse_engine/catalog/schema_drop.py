"""Drops a schema with its content while others may go on making tables and views in it.

It lists and deletes, each table under its lock, until nothing is left, and then removes the empty folder. A folder with content is never
deleted: what others make meanwhile goes in the next round.
"""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from lakehouse_engine.catalog.dropping import COMMENTS, empty_bin, take_away
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.catalog.places import NOTES, Place, clear_schema, what_is_at
from lakehouse_engine.errors import StoredFileExistsError, StoredFileNotFoundError, TableError, TableNotFoundError
from lakehouse_engine.storage.base import Storage, StoredFile
from lakehouse_engine.storage.locations import in_object_store
from lakehouse_engine.timeline.processes import may_be_at_work, parse_signature

SCHEMA_FILE, VIEWS, STAGES, FUNCTIONS = ".schema.json", ".views", ".staged", ".functions"
_KEPT = frozenset({SCHEMA_FILE, VIEWS, STAGES, FUNCTIONS, COMMENTS, NOTES})
"""Catalog files in a schema beside the tables."""
_ROUNDS, _PAUSE = 20, 0.02
"""Seconds between two rounds."""


@dataclass(frozen=True, slots=True)
class _Contents:
    """Content of a schema at one moment. `stages` are directories in which others are making tables."""

    places: dict[RelationName, Place]
    views: list[str]
    stages: list[StoredFile]

    def at(self, place: Place) -> list[RelationName]:
        return [name for name, found in self.places.items() if found is place]


@dataclass(frozen=True, slots=True)
class SchemaDrop:
    """`schema` is its stored name."""

    storage: Storage
    schema: str
    cascade: bool
    lock_timeout_ms: int

    def run(self) -> None:
        """Raises as `Catalog.drop_schema`, and `TableError` if others keep making relations in it."""
        for _ in range(_ROUNDS):
            clear_schema(self.storage, self.schema, lock_timeout_ms=self.lock_timeout_ms)
            found = self._contents()
            self._check(found)
            self._delete(found)
            if self._remove():
                return
            time.sleep(_PAUSE)
        raise TableError(
            f"the schema {self.schema} is not dropped: others made something in it in each of {_ROUNDS} rounds; stop them, or look for what"
            f" no listing shows in {self.storage.root}/{self.schema}",
            schema=self.schema,
        )

    def _contents(self) -> _Contents:
        places = {
            RelationName(self.schema, entry.name): Place.FOREIGN if entry.name.startswith(".") else what_is_at(self.storage, entry.path)
            for entry in self.storage.list(self.schema)
            if entry.name not in _KEPT
        }
        stages = self.storage.list(f"{self.schema}/{STAGES}")
        views = [entry.path for entry in self.storage.list(f"{self.schema}/{VIEWS}")]
        return _Contents(places, views, stages)

    def _check(self, found: _Contents) -> None:
        """Raise `TableError`, with nothing changed, for content that must stay."""
        foreign = found.at(Place.FOREIGN)
        if foreign:
            raise TableError(
                f"{foreign[0].path} is no table of the engine and is not deleted with the schema; move it away first", schema=self.schema
            )
        if self.cascade:
            return
        tables, remains, made = found.at(Place.TABLE), found.at(Place.REMAINS), [one for one in found.stages if self._is_at_work(one)]
        if tables or found.views or remains or made:
            left = f", what is left of {', '.join(name.path for name in remains)}" if remains else ""
            building = f", and others make {len(made)} tables" if made else ""
            counts = f"{len(tables)} tables and {len(found.views)} views"
            raise TableError(
                f"the schema {self.schema} holds {counts}{left}{building}; drop them first, or use CASCADE", schema=self.schema
            )

    def _delete(self, found: _Contents) -> None:
        may_go = {Place.FREE, Place.TABLE, Place.REMAINS} if self.cascade else {Place.FREE}
        for name in found.places:
            with suppress(TableNotFoundError):  # another process removed it during the wait
                is_still = partial(self._is_one_of, may_go, name)
                take_away(self.storage, name, is_still, lock_timeout_ms=self.lock_timeout_ms)
        for path in found.views:
            self.storage.delete(path)
        # A maker of tables checks the file that names the folder's owner, so that goes first.
        for stage in sorted(found.stages, key=lambda stage: stage.is_directory):
            self._take_stage(stage)

    def _is_at_work(self, stage: StoredFile) -> bool:
        """True if it is the owner file of a folder whose process may still be running."""
        try:
            return not stage.is_directory and may_be_at_work(parse_signature(self.storage.read(stage.path)))
        except StoredFileNotFoundError:
            return False

    def _is_one_of(self, may_go: set[Place], name: RelationName) -> bool:
        found = what_is_at(self.storage, name.path)
        return found in may_go and (found is not Place.FREE or self.storage.head(name.path) is not None)

    def _take_stage(self, stage: StoredFile) -> None:
        """Remove a table that another process is making, so that it cannot get a name."""
        if not stage.is_directory:
            self.storage.delete(stage.path)
            return
        with suppress(StoredFileNotFoundError):  # it got its name, or was removed
            self.storage.rename_tree(stage.path, f"{self.schema}/{NOTES}/{uuid.uuid4().hex}")

    def _remove(self) -> bool:
        """Delete catalog files and then the folder, if nothing else is in it; True if it is gone."""
        if not in_object_store(self.storage):
            empty_bin(self.storage, self.schema)
        for entry in self.storage.list(f"{self.schema}/{FUNCTIONS}"):
            self.storage.delete(entry.path)
        for entry in self.storage.list(f"{self.schema}/{COMMENTS}"):
            if not self._has_relation(entry.name.removesuffix(".json")):
                self.storage.delete(entry.path)
        path = f"{self.schema}/{SCHEMA_FILE}"
        with suppress(StoredFileNotFoundError):
            kept = self.storage.read(path)
            self.storage.delete(path)
            if not self.storage.delete_empty(self.schema):
                # Others made something, so the schema lives on, unless the next round deletes that.
                with suppress(StoredFileExistsError):
                    self.storage.create(path, kept)
                return False
            return True
        return self.storage.delete_empty(self.schema)

    def _has_relation(self, name: str) -> bool:
        table, view = f"{self.schema}/{name}", f"{self.schema}/{VIEWS}/{name}.json"
        return what_is_at(self.storage, table) is Place.TABLE or self.storage.head(view) is not None
