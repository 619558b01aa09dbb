"""A merge with clauses as one upsert: the rows to write, and the keys to delete in the same commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.lakehouse.bridge.stored import StoredTable
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.columns import quoted, resolve, resolve_paths
from dbt.adapters.lakehouse.config.model_config import ModelConfig
from dbt.adapters.lakehouse.names import missing_names
from dbt.adapters.lakehouse.writing.checks.uniqueness import updated
from dbt.adapters.lakehouse.writing.clauses import assigned_columns, rows_by_source, rows_to_write
from dbt.adapters.lakehouse.writing.frames import kept, types_of, viewed


@dataclass(frozen=True)
class ClauseMerge:
    """One attempt. `source` and `target` are views of the model's rows and of the stored rows that `house` has read.

    `identity` are the columns that identify a record.
    """

    house: Warehouse
    config: ModelConfig
    stored: StoredTable
    source: str
    target: str
    columns: Sequence[str]
    identity: Sequence[str]

    @contextmanager
    def chosen(self, rows: Any) -> Iterator[tuple[Any, str]]:
        """The model's `rows` that are written, or deleted by `delete_condition`: a frame, and a view over it."""
        if not self.config.clauses.choose_rows:
            yield rows, self.source
            return
        found = self.house.sql(rows_to_write(self.source, self.target, self.columns, self.identity, self.config.clauses))
        with kept(self.house, found) as (chosen, view):
            yield chosen, view

    def deleted(self, others: Any | None) -> Any:
        """Keys of stored rows that the model lacks and the merge deletes, and of `others`."""
        names = list(dict.fromkeys([*self.identity, *self._named(self.config.partition_by, "partition_by")]))
        if others is not None:
            names = list(dict.fromkeys([*names, *self._ordering]))
        picked = [f"{quoted(self.config.clauses.target)}.{quoted(name)}" for name in names]
        gone = self.house.sql(rows_by_source(self.source, self.target, picked, self.identity, self.config.clauses))
        return gone if others is None else others.select(*map(quoted, names)).union(gone)

    @contextmanager
    def with_changed(self, rows: Any, updates: Sequence[str] | None) -> Iterator[Any]:
        """`rows` with the table's columns, and the stored rows that the action changes. Raises `DbtDatabaseError` if that is impossible."""
        self._check_action()
        with viewed(self.house, rows) as given:
            yield self._whole(given, types_of(rows), updates).unionByName(self._changed(types_of(rows)))

    def _changed(self, given: Mapping[str, str]) -> Any:
        """The stored rows that the action changes, with their new values; null in columns that the table is about to gain."""
        assigned = [name for name, _ in self.config.clauses.assignments]
        generated = {name.lower() for name in missing_names(self.stored.generated, assigned)}
        types = {name: kind for name, kind in self.stored.types.items() if name.lower() not in generated}
        added = [f"cast(null as {given[name]}) as {quoted(name)}" for name in missing_names(given, self.stored.types)]
        expressions = [*assigned_columns(types, self.config.clauses), *added]
        changed = self.house.sql(rows_by_source(self.source, self.target, expressions, self.identity, self.config.clauses))
        return self.stored.computed(changed)

    def _whole(self, source: str, given: Mapping[str, str], updates: Sequence[str] | None) -> Any:
        """The model's rows with all columns; columns that are not updated keep the stored values."""
        absent = [f"cast(null as {self.stored.types[name]}) as {quoted(name)}" for name in missing_names(self.stored.types, given)]
        rows = f"select {', '.join([*map(quoted, given), *absent])} from {source}"
        if not absent and updates is None:
            return self.house.sql(rows)
        added = [f"cast(null as {given[name]}) as {quoted(name)}" for name in missing_names(given, self.stored.types)]
        stored = f"select {', '.join(['*', *added])} from {self.target}"
        moved = [*(given if updates is None else updates), *self._ordering]
        names = [*given, *missing_names(self.stored.types, given)]
        return self.house.sql(updated(rows, names, stored, self.identity, moved))

    def _check_action(self) -> None:
        """Refuse an update that the table's merge rules would not store unchanged."""
        name, ordering = self.config.name, self._ordering
        if not self.stored.stores_whole_rows(self.config.options):
            raise DbtDatabaseError(
                f"{name}: not_matched_by_source_action 'update' stores rows as they are, and the table's payload class "
                "(hoodie.datasource.write.payload.class) merges them with stored ones; use 'delete', or build the table without it"
            )
        values = {column.lower(): text for column, text in self.config.clauses.assignments}
        given, stored, named = [], [], []
        for root, path in zip(ordering, self._paths, strict=True):
            inside = path.removeprefix(root)
            stored.append(f"{quoted(self.config.clauses.target)}.{quoted(root)}{inside}")
            is_set = root.lower() in values
            given.append(f"(cast(({values[root.lower()]}) as {self.stored.types[root]})){inside}" if is_set else stored[-1])
            named += [path] if is_set else []
        if not named:
            return
        # Several are compared one after the other, as structs are.
        lost = f"count(case when struct({', '.join(given)}) < struct({', '.join(stored)}) then 1 end)"
        many = self.house.sql(rows_by_source(self.source, self.target, [lost], self.identity, self.config.clauses)).collect()[0][0]
        if many:
            raise DbtDatabaseError(
                f"{name}: not_matched_by_source_action sets the ordering field '{', '.join(named)}' to an older value in {many:,} row(s), "
                "which would lose to what is stored; set a newer one, or leave it out. Nothing was written"
            )

    @property
    def _paths(self) -> list[str]:
        return resolve_paths(self.config.ordering_fields, list(self.stored.types), "ordering_fields", self.config.name)

    @property
    def _ordering(self) -> list[str]:
        """Top-level columns of the ordering fields."""
        known = list(self.stored.types)
        return [path if path in known else path.partition(".")[0] for path in self._paths]

    def _named(self, wanted: Sequence[str], config: str) -> list[str]:
        return resolve(wanted, list(self.stored.types), config, self.config.name)
