"""Writes of a table whose contract declares unique values: they depend on the stored rows that stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from dbt.adapters.lakehouse.bridge.outcomes import retried, run_again
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.columns import resolve, resolve_paths
from dbt.adapters.lakehouse.config.model_config import ModelConfig
from dbt.adapters.lakehouse.names import missing_names
from dbt.adapters.lakehouse.writing.checks.checking import check_unique
from dbt.adapters.lakehouse.writing.checks.constraints import Unique
from dbt.adapters.lakehouse.writing.checks.uniqueness import is_implied, newest, not_older, updated, without
from dbt.adapters.lakehouse.writing.frames import PLACE, columns_of, viewed
from lakehouse_engine.api.options import conflict_retries


@dataclass(frozen=True)
class UniqueWrites:
    """Writes of one model's table. `identity` are the columns by which a write keeps one row; empty if every row is stored."""

    warehouse: Warehouse
    schema: str
    identifier: str
    config: ModelConfig
    uniques: Sequence[Unique] = ()

    def check(self, rows: Any, identity: Sequence[str]) -> None:
        """Refuse rows of a new table that repeat values that have to be unique."""
        self._check_all(rows, identity, self.warehouse.keeps_newest_anew(self.config.options))

    def _check_all(self, rows: Any, identity: Sequence[str], by_ordering: bool) -> None:
        """`by_ordering`: only the newest row of a record counts."""
        uniques = [one for one in self.uniques if not is_implied(one, identity)]
        if not uniques:
            return
        columns = columns_of(rows)
        ordering = self._ordering(columns) if identity and by_ordering else []
        with viewed(self.warehouse, rows) as source:
            come = f"select * from {source}"
            come = newest(come, columns, identity, ordering) if ordering else come
            for unique in uniques:
                check_unique(self.warehouse, self.config.name, unique, come, None, identity)

    def _ordering(self, columns: Sequence[str]) -> list[str]:
        return resolve_paths(self.config.ordering_fields, columns, "ordering_fields", self.config.name)

    def put(
        self,
        operation: str,
        rows: Any,
        identity_of: Callable[[], Sequence[str]],
        house: Warehouse | None,
        more: Mapping[str, Any],
        write: Callable[..., Any],
    ) -> Any:
        """Run `write` if the rows keep unique values unique. `more` are arguments of the operation; `house` is the reading that they came
        from, if it is not the model's.
        """
        if not self.uniques:
            return retried(write)
        identity = identity_of()
        uniques = [one for one in self.uniques if not is_implied(one, identity)]
        if not uniques or operation == "insert_overwrite_table":
            if uniques:
                self._check_all(rows, identity, self._keeps_newest())
            return retried(write)
        return self._put_beside_stored(operation, rows, uniques, identity, house, more, write)

    def _put_beside_stored(
        self,
        operation: str,
        rows: Any,
        uniques: Sequence[Unique],
        identity: Sequence[str],
        house: Warehouse | None,
        more: Mapping[str, Any],
        write: Callable[..., Any],
    ) -> Any:
        """A write that also depends on stored rows: they are checked before it, and again if others commit in between."""
        reads_itself = house is not None or more["expected"] is not None

        def attempt() -> Any:
            seen = (house or self.warehouse) if reads_itself else self.warehouse.pinned()
            waiting = nullcontext() if reads_itself else self.warehouse.locked(self.schema, self.identifier)
            with waiting, viewed(self.warehouse, rows) as source, self._stored(seen) as stored:
                known = self.warehouse.look(self.schema, self.identifier).schema.names
                for unique in uniques:
                    if missing_names(unique.columns, known):
                        check_unique(seen, self.config.name, unique, f"select * from {source}", None, identity)
                        continue  # a column that comes with these rows is null in stored ones
                    with self._staying(operation, source, stored, identity, more, columns_of(rows)) as (come, kept):
                        check_unique(seen, self.config.name, unique, come, kept, identity)
                return write(expected=seen.expected(self.schema, self.identifier))

        return run_again(attempt, 0 if reads_itself else conflict_retries(self.config.options))

    def _keeps_newest(self) -> bool:
        return self.warehouse.look(self.schema, self.identifier).keeps_newest(self.config.options)

    def _stored(self, seen: Warehouse) -> AbstractContextManager[str]:
        return viewed(self.warehouse, seen.stored_rows(self.schema, self.identifier))

    @contextmanager
    def _staying(
        self, operation: str, source: str, stored: str, identity: Sequence[str], more: Mapping[str, Any], columns: Sequence[str]
    ) -> Iterator[tuple[str, str]]:
        """Queries of the rows that a write stores, and of the stored rows that it leaves."""
        come, kept = f"select * from {source}", f"select * from {stored}"
        if operation == "insert_overwrite":
            yield come, without(kept, come, resolve(self.config.partition_by, columns, "partition_by", self.config.name))
        elif operation == "replace_rows":
            with viewed(self.warehouse, more["replaced"]) as gone:
                yield come, without(kept, f"select * from {gone}", PLACE)
        elif operation == "upsert":
            ordering = self._ordering(columns)
            left = without(kept, come, identity, ordering)
            if ordering and self._keeps_newest():
                # Rows that lose to another row of the batch, or to the stored one, are not written.
                come = not_older(newest(come, columns, identity, ordering), kept, identity, ordering)
            if (updates := more.get("merge_update_columns")) is not None:
                come = updated(come, columns, kept, identity, [*updates, *(name.split(".")[0] for name in ordering)])
            if (deleted := more.get("delete_keys")) is None:
                yield come, left
                return
            with viewed(self.warehouse, deleted) as gone:
                known = columns_of(deleted)
                newer = [] if missing_names(ordering, known) else ordering
                yield come, without(left, f"select * from {gone}", [name for name in known if not missing_names([name], identity)], newer)
        else:
            yield come, kept
