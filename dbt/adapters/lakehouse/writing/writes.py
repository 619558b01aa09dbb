"""What each materialization writes to one table: every public method is one commit (`sync_all_columns` may add one).

Rows come as SQL; Spark computes them and the engine writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from dataclasses import replace as with_fields
from functools import partial
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.lakehouse.bridge.builds import begin_build, build_of, put_back_build
from dbt.adapters.lakehouse.bridge.describe import kept_savepoints
from dbt.adapters.lakehouse.bridge.named import in_config
from dbt.adapters.lakehouse.bridge.outcomes import is_changed_since_read, run_again
from dbt.adapters.lakehouse.bridge.shapes import TableShape
from dbt.adapters.lakehouse.bridge.stored import StoredTable
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.columns import ColumnPlan, plan_columns, quoted, resolve, resolve_paths
from dbt.adapters.lakehouse.config.clauses import SOURCE, TARGET
from dbt.adapters.lakehouse.config.model_config import ModelConfig
from dbt.adapters.lakehouse.reading.queries import SnapshotColumns, kept_as_deleted, snapshot_changes, split_deleted
from dbt.adapters.lakehouse.writing.checks.checking import check_batch, check_condition, check_predicates, check_rows, check_shape
from dbt.adapters.lakehouse.writing.checks.constraints import Check, Unique
from dbt.adapters.lakehouse.writing.checks.first_build import check_increments
from dbt.adapters.lakehouse.writing.checks.unique_writes import UniqueWrites
from dbt.adapters.lakehouse.writing.clause_merge import ClauseMerge
from dbt.adapters.lakehouse.writing.frames import PLACE, columns_of, kept, selected, types_of, viewed
from dbt.adapters.lakehouse.writing.reshaping import Reshaping
from lakehouse_engine import api
from lakehouse_engine.api.names import DELETED_AT
from lakehouse_engine.api.options import conflict_retries

if TYPE_CHECKING:

    from lakehouse_engine.api.frames import Members

EVOLVE = {"hoodie.datasource.write.reconcile.schema": "true"}
_COMBINE_KEY = "hoodie.combine.before.insert"
COMBINE = {_COMBINE_KEY: "true"}


@dataclass(frozen=True)
class TableWriter:
    """Writes one model's table. `metadata` goes into every commit's extra metadata."""

    warehouse: Warehouse
    schema: str
    identifier: str
    config: ModelConfig
    metadata: Mapping[str, str] = field(default_factory=dict)
    checks: Sequence[Check] = ()
    uniques: Sequence[Unique] = ()
    lengths: Mapping[str, int | None] = field(default_factory=dict)
    """Maximum length of each text column for which a config sets one; None for any."""
    build: str | None = None
    """Identifier of the build whose first rows a new table gets."""

    # -- whole tables

    def create(self, frame: Any) -> Any:
        """Make a new table with the frame's columns and rows, even if it has no rows. On failure nothing is left."""
        return self._create(self.identifier, frame)

    def replace(self, frame: Any, *, existing: str | None, within: str | None = None) -> Any:
        """Replace the table's columns and rows. A table of the same shape keeps its history: one replace commit.

        `existing` is the relation that dbt knows; if it knows none, nothing is replaced. `within`: the time range of a first batch.
        """
        if existing is not None:
            existing = self.warehouse.told_kind(self.schema, self.identifier)  # a hook may have dropped it, or put another relation there
        stored = self._stored if existing in ("table", "materialized_view") else None
        if stored is not None and hasattr(frame, "toArrow"):
            frame = stored.computed(frame)
        check_increments(self.warehouse, self.config, frame, (self.schema, self.identifier))
        with self._without_deletions(frame, stored) as staying, self._within(staying, within) as rows:
            writer = self if within is None else with_fields(self, build=self._build)
            return writer._replace(rows, existing, stored)

    def _replace(self, frame: Any, existing: str | None, stored: StoredTable | None) -> Any:
        if existing is None:
            return self.create(frame)
        if stored is not None and self._fits(stored, frame):
            # Rules that the new rows may break are lifted first; rules that the old rows may break are set afterwards.
            self.warehouse.limit(self.schema, self.identifier, self.lengths, only_longer=True)
            if self.build is not None:
                begin_build(self.warehouse, self.warehouse.table(self.schema, self.identifier), self.build)
            written = self._put("insert_overwrite_table", frame, self._combine, replace_schema=True)
            self.warehouse.limit(self.schema, self.identifier, self.lengths)
            if existing == "materialized_view":
                self.warehouse.forget_query(self.schema, self.identifier)
            if self.build is None:
                put_back_build(self.warehouse, self.warehouse.table(self.schema, self.identifier), None)
            return written
        if stored is not None:
            self._check_nothing_is_kept()
        if not self.warehouse.moves_tables:
            return self._copied_into_place(frame)
        # A savepoint may be taken while the new table is filled.
        return self._create(self.identifier, frame, self._check_nothing_is_kept)

    @contextmanager
    def _without_deletions(self, frame: Any, stored: StoredTable | None) -> Iterator[Any]:
        """Rows of a build from nothing: what a merge into an empty table would leave, so that both give the same table."""
        if self.config.delete_condition is None or self.config.materialized != "incremental":
            yield frame
            return
        with kept(self.warehouse, frame) as (rows, source):
            if stored is not None and self._fits(stored, frame):
                identity: Sequence[str] = stored.identity(self.config.options)
            else:
                identity = self._identity_anew(self._shape(columns_of(frame)))
            staying, _ = self._split(rows, source, identity)
            yield staying

    @contextmanager
    def _within(self, frame: Any, condition: str | None) -> Iterator[Any]:
        """Rows of a first batch, limited to those that a later run of the batch replaces."""
        if condition is None:
            yield frame
            return
        with kept(self.warehouse, frame) as (rows, source):
            check_batch(self.config, types_of(frame))
            check_condition(self.warehouse, self.config, condition, source, {})
            yield rows

    def _copied_into_place(self, frame: Any) -> Any:
        """For storages that cannot move tables: drop the old one and write the rows again. They are known to be good. Readers find no table
        meanwhile; if the process dies, the rows are in the staged table.
        """
        staged = f"{self.identifier}__dbt_tmp"
        self.warehouse.drop(self.schema, staged)
        self._create(staged, frame)
        rows = self.warehouse.rows(self.schema, staged)
        self.warehouse.vacate(self.schema, self.identifier, self._check_nothing_is_kept)
        result = self._create(self.identifier, rows)
        self.warehouse.drop(self.schema, staged)
        return result

    def _check_nothing_is_kept(self) -> None:
        """Check savepoints before a rebuild, which drops them; those of protected runs do not count."""
        if kept := kept_savepoints(self.warehouse, self.schema, self.identifier):
            raise DbtDatabaseError(
                f"{self.config.name}: its key, partitions, ordering, type or buckets changed, so {self.schema}.{self.identifier} is built "
                f"anew, and its savepoints would be lost: {', '.join(kept)}; delete them first (dbt run-operation delete_savepoint)"
            )

    def _create(self, identifier: str, frame: Any, may_go: Callable[[], None] | None = None) -> Any:
        options = {**self.config.options, **self._combine}
        with self._checked(frame) as rows:
            shape = self._shape(columns_of(rows))
            # One row per record, as in the combined batch.
            self._unique.check(rows, shape.record_key and self._identity_anew(shape))
            given = options, self.metadata, self.lengths, may_go, self.build
            return self.warehouse.create_filled(self.schema, identifier, rows, shape, *given)

    def _shape(self, columns: Sequence[str]) -> TableShape:
        name = self.config.name
        return TableShape(
            record_key=tuple(resolve(self.config.record_key, columns, "unique_key", name)),
            partition_by=tuple(resolve(self.config.partition_by, columns, "partition_by", name)),
            ordering_fields=tuple(resolve_paths(self.config.ordering_fields, columns, "ordering_fields", name)),
            hive_style=self.config.hive_style,
            table_type=self.config.table_type,
            deletes_softly=self.config.deletes_softly,
            version=self.config.table_version,
        )

    def _fits(self, stored: StoredTable, frame: Any) -> bool:
        given = self.config.options
        return stored.shape.fits(self._shape(columns_of(frame))) and stored.keeps_index(given) and stored.merges_as_asked(given)

    # -- increments

    def append(self, frame: Any) -> Any:
        with self._increment(frame) as (batch, options):
            return self._put("insert", batch, options)

    def merge(self, frame: Any) -> Any:
        with self._increment(frame) as (batch, options):
            updates = self._update_columns(columns_of(batch))
            if self.config.clauses:
                return self._merge_by_clauses(batch, options, updates)
            purged = self._purged(columns_of(batch))
            if self.config.delete_condition is None and not self.config.predicates:
                return self._put("upsert", batch, options, merge_update_columns=updates, **purged)
            with kept(self.warehouse, batch) as (rows, source):
                self._check_predicates(source, columns_of(batch))
                staying, more = self._split(rows, source, self._identity)
                more |= purged
                return self._put("upsert", staying, options, merge_update_columns=updates, **more)

    def _merge_by_clauses(self, batch: Any, options: Mapping[str, str], updates: Sequence[str] | None) -> Any:
        """A merge that depends on stored rows: they decide which rows of the batch are written, and some of them change."""
        columns = columns_of(batch)
        identity = resolve(self._identity, columns, "unique_key", self.config.name)
        with kept(self.warehouse, batch) as (rows, source):

            def write(house: Warehouse, target: str, expected: Any) -> Any:
                self._check_stored_outside(house, source, target, columns)
                one = ClauseMerge(house, self.config, self._stored, source, target, columns, identity)
                with one.chosen(rows) as (chosen, view):
                    staying, more = self._split(chosen, view, identity)
                    if self.config.clauses.by_source == "delete":
                        more["delete_keys"] = one.deleted(more.get("delete_keys"))
                    if self.config.clauses.by_source != "update":
                        return self._put("upsert", staying, options, house, merge_update_columns=updates, expected=expected, **more)
                    with one.with_changed(staying, updates) as changed:
                        return self._put("upsert", changed, options, house, as_given=True, expected=expected, **more)

            return self._beside_stored(write)

    def insert_overwrite(self, frame: Any) -> Any:
        """Replace the partitions of the rows; without partitions, the whole table."""
        with self._increment(frame) as (batch, options):
            return self._put("insert_overwrite" if self.config.partition_by else "insert_overwrite_table", batch, options)

    def delete_insert(self, frame: Any, keys: Sequence[str]) -> Any:
        """Replace the stored rows whose key is among the incoming ones (and for which the predicates hold)."""
        with self._increment(frame) as (batch, options), kept(self.warehouse, batch) as (rows, source):
            resolved = resolve(keys, columns_of(batch), "unique_key", self.config.name)
            if rows.isEmpty():
                return self._put("insert", rows, options)  # no news: nothing is replaced or rewritten
            same = " and ".join(f"{SOURCE}.{quoted(key)} <=> {TARGET}.{quoted(key)}" for key in resolved)
            matched = f"exists (select 1 from {source} as {SOURCE} where {same})"
            condition = " and ".join([matched, *(f"({text})" for text in self.config.predicates)])
            return self._rewrite(condition, rows, options)

    def replace_where(self, frame: Any, condition: str) -> Any:
        """Replace the stored rows for which `condition` holds; the incoming rows must satisfy it too."""
        with self._increment(frame) as (batch, options):
            check_batch(self.config, types_of(batch))
            if self.warehouse.is_known_empty(batch):
                return self._rewrite(condition, batch, options)
            with kept(self.warehouse, batch) as (rows, source):
                if not rows.isEmpty():
                    self._check_condition(condition, source, columns_of(batch))
                return self._rewrite(condition, rows, options)

    def snapshot(self, staged: Any, columns: SnapshotColumns) -> Any:
        """Apply a snapshot's staged changes: close rows, add rows. `staged` has `dbt_change_type` and dbt's helper columns."""
        table = self._stored
        staged = api.frames.with_types_of(staged, table.schema)
        stored = staged.selectExpr(*(quoted(name) for name in columns_of(staged) if not _helper(name)))
        self._check_shape(table, stored)
        plan, met = self._met(table, stored, "append_new_columns")
        with kept(self.warehouse, staged.selectExpr(*plan.select, "dbt_change_type")) as (_, source):
            types, known = types_of(stored.selectExpr(*plan.select)), table.types
            # The write refuses another type with a clear error.
            values = {name: f"{TARGET}.{quoted(name)}" for name, kind in types.items() if known.get(name) == kind}
            values |= {name: one.of_stored(f"{TARGET}.{quoted(name)}") for name, one in met.items() if not one.changes}
            batch = self.warehouse.sql(snapshot_changes(source, self._name, list(types), values, columns))
            return self._put("upsert", batch, EVOLVE if plan.evolve else {}, merge_update_columns=[columns.valid_to])

    # -- parts

    @property
    def _combine(self) -> dict[str, str]:
        """Options that keep one row per key in a whole table, as after a merge: `on_duplicate_source_keys` selects the row, or makes two an
        error.
        """
        return COMBINE if self.config.record_key else {}

    @property
    def _name(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.identifier)}"

    @property
    def _stored(self) -> StoredTable:
        """The table as it is now."""
        return self.warehouse.look(self.schema, self.identifier)

    @property
    def _build(self) -> str:
        return build_of(self.metadata["dbt.invocation_id"], self.metadata["dbt.node"])

    def _put(self, operation: str, frame: Any, options: Mapping[str, str], house: Warehouse | None = None, **more: Any) -> Any:
        """One commit. It depends on what was read of the table so far, in `house` if that is not the model's reading."""
        given = {**self.config.options, **options}
        more.setdefault("expected", self.warehouse.expected(self.schema, self.identifier))
        with self._checked(frame) as rows:

            def write(**read: Any) -> Any:
                table = self.warehouse.table(self.schema, self.identifier)
                return getattr(table, operation)(rows, options=given, extra_metadata=dict(self.metadata), **{**more, **read})

            return self._unique.put(operation, rows, partial(self._records, operation, given), house, more, write)

    def _records(self, operation: str, given: Mapping[str, str]) -> Sequence[str]:
        """Columns by which a write keeps one row; empty if every row is stored."""
        keeps_one = operation == "upsert" or given.get(_COMBINE_KEY) == "true"
        return self._stored.identity(given) if keeps_one else ()

    @property
    def _unique(self) -> UniqueWrites:
        return UniqueWrites(self.warehouse, self.schema, self.identifier, self.config, self.uniques)

    @contextmanager
    def _increment(self, frame: Any) -> Iterator[tuple[Any, dict[str, str]]]:
        """The batch with the table's columns, and the options that let it change them, for one write in the body.

        Dropped or retyped stored columns need a commit before it. The model is computed before that commit, and if the write fails the
        table gets its columns back.
        """
        stored = self._stored
        computed = stored.computable(columns_of(frame))
        if computed:
            frame = frame.selectExpr("*", *(f"cast(null as {kind}) as {quoted(name)}" for name, kind in computed.items()))
        self._check_shape(stored, frame)
        frame = api.frames.with_types_of(frame, stored.schema)  # for `null` and `array()` of the model
        stored = self._with_rules(stored)
        plan, _ = self._met(stored, frame, self.config.on_schema_change)
        batch = selected(frame, plan.select)
        if computed:
            # Check values as the table will store them.
            batch = stored.computed(batch.drop(*computed))
        if plan.reshape is None:
            yield batch, dict(EVOLVE) if plan.evolve else {}
            return
        with kept(self.warehouse, batch) as (rows, _), self._checked(rows):
            rows.count()
            reshaping = Reshaping(self.warehouse, self.schema, self.identifier, self.config, self.metadata)
            reshaped = reshaping.write(plan.reshape)
            try:
                yield rows, {}
            except BaseException as error:
                if not is_changed_since_read(error):  # otherwise there is a later commit, and the model is run again
                    reshaping.take_back(reshaped, error)
                raise

    def _with_rules(self, stored: StoredTable) -> StoredTable:
        """The table after the model's rules are set. A shorter limit is checked for incoming rows; stored ones keep theirs until the table
        is rebuilt.
        """
        softens = self.config.deletes_softly and not stored.shape.deletes_softly
        if softens:
            self.warehouse.delete_softly(self.schema, self.identifier)
        limits = self.warehouse.limit(self.schema, self.identifier, self.lengths, only_longer=True)
        return self._stored if softens or limits else stored

    def _check_shape(self, stored: StoredTable, frame: Any) -> None:
        check_shape(self.config.name, stored, self._shape(columns_of(frame)), self.config.options, self._rebuild)

    @property
    def _rebuild(self) -> str:
        if self.config.materialized == "snapshot":
            return "a snapshot's table is never built anew: set the config back, or drop the table with its history"
        return "run the model with --full-refresh to rebuild it"

    def _check_predicates(self, source: str, columns: Sequence[str]) -> None:
        if not self.config.predicates:
            return
        with viewed(self.warehouse, self.warehouse.stored_rows(self.schema, self.identifier)) as target:
            self._check_stored_outside(self.warehouse, source, target, columns)

    def _check_stored_outside(self, house: Warehouse, source: str, target: str, columns: Sequence[str]) -> None:
        if not self.config.predicates:
            return
        name = self.config.name
        keys = resolve(self.config.record_key, columns, "unique_key", name)
        check_predicates(house, self.config, source, target, resolve(self._identity, columns, "unique_key", name), keys)

    def _check_condition(self, condition: str, source: str, columns: Sequence[str]) -> None:
        known = {name.lower() for name in columns}
        absent = {name: kind for name, kind in self._stored.types.items() if name.lower() not in known}
        check_condition(self.warehouse, self.config, condition, source, absent)

    @property
    def _identity(self) -> Sequence[str]:
        """Columns that identify a record."""
        return self._stored.identity(self.config.options)

    def _identity_anew(self, shape: TableShape) -> Sequence[str]:
        """Columns that identify a record of a new table."""
        return self.warehouse.identity_anew(shape, self.config.options)

    def _split(self, batch: Any, source: str, identity: Sequence[str]) -> tuple[Any, dict[str, Any]]:
        """Rows to upsert, and rows to delete as an argument of the write. Rows with one `identity` belong to one record."""
        if self.config.delete_condition is None:
            return batch, {}
        columns = columns_of(batch)
        keys = resolve(identity, columns, "unique_key", self.config.name)
        ordering = resolve_paths(self.config.ordering_fields, columns, "ordering_fields", self.config.name)
        kept, gone = split_deleted(source, columns, keys, ordering, self.config.delete_condition, self.config.clauses.source)
        with in_config(self.config.name, "delete_condition", self.config.delete_condition):
            if self.config.deletes_softly:
                return self.warehouse.sql(kept_as_deleted(kept, gone)), {}
            return self.warehouse.sql(kept), {"delete_keys": self.warehouse.sql(gone)}

    def _purged(self, columns: Sequence[str]) -> dict[str, Any]:
        """Rows deleted long enough ago to purge, as an argument of the write; rows that came back meanwhile stay."""
        if self.config.purge_after is None:
            return {}
        shape = self._shape(columns)
        names = dict.fromkeys((*shape.record_key, *shape.partition_by, *(name.split(".")[0] for name in shape.ordering_fields)))
        old = f"{DELETED_AT} < current_timestamp() - interval {self.config.purge_after}"
        return {"delete_keys": self.warehouse.rows(self.schema, self.identifier).where(old).select(*map(quoted, names))}

    def _rewrite(self, condition: str, rows: Any, options: Mapping[str, str]) -> Any:
        """One commit: stored rows for which `condition` holds are removed, `rows` are added. Other files are not touched."""

        def write(house: Warehouse, target: str, expected: Any) -> Any:
            gone = house.sql(f"select {', '.join(PLACE)} from {target} as {TARGET} where {condition}")
            return self._put("replace_rows", rows, options, house, replaced=gone, expected=expected)

        return self._beside_stored(write, condition)

    def _beside_stored(self, write: Callable[[Warehouse, str, Any], Any], condition: str | None = None) -> Any:
        """Run `write` on the stored rows, or on those for which `condition` may hold. It gets the reading, a view of the rows, and the
        expected state of the table, and is called again if others commit in between.
        """
        # A model that does not read its own table need not be computed again after a conflict: only the replaced rows are looked up again.
        own_reading = self.warehouse.expected(self.schema, self.identifier) is None

        def attempt() -> Any:
            house = self.warehouse.pinned() if own_reading else self.warehouse
            # Batches of a microbatch model all replace rows of one table; without the lock they would keep conflicting.
            waiting = house.locked(self.schema, self.identifier) if own_reading else nullcontext()
            with waiting, viewed(self.warehouse, house.stored_rows(self.schema, self.identifier, condition, TARGET)) as target:
                return write(house, target, house.expected(self.schema, self.identifier))

        return run_again(attempt, conflict_retries(self.config.options) if own_reading else 0)

    def _update_columns(self, columns: Sequence[str]) -> list[str] | None:
        if self.config.merge_update_columns:
            return resolve(self.config.merge_update_columns, columns, "merge_update_columns", self.config.name)
        if self.config.merge_exclude_columns:
            known = list(dict.fromkeys([*columns, *self._stored.types]))
            excluded = set(resolve(self.config.merge_exclude_columns, known, "merge_exclude_columns", self.config.name))
            fixed = {name.lower() for name in self.config.record_key}
            return [name for name in columns if name not in excluded and name.lower() not in fixed]
        return None

    def _met(self, stored: StoredTable, frame: Any, policy: str) -> tuple[ColumnPlan, Mapping[str, Members]]:
        """How the frame's columns fit the table's, and which of them have different members."""
        found = api.frames.members(stored.schema, frame, follows=policy == "sync_all_columns")
        return plan_columns(self.config.name, policy, stored.types, types_of(frame), found), found

    @contextmanager
    def _checked(self, frame: Any) -> Iterator[Any]:
        """The frame, after its rows have passed the contract's constraints."""
        if not self.checks and not self.uniques:
            yield frame
            return
        with kept(self.warehouse, frame) as (rows, source):
            check_rows(self.warehouse, self.config.name, self.checks, source)
            yield rows


def commit_metadata(model: Mapping[str, Any], invocation_id: str, dbt_version: str) -> dict[str, str]:
    """Entries that identify the writer of a commit."""
    return {"dbt.invocation_id": invocation_id, "dbt.version": dbt_version, "dbt.node": str(model.get("unique_id", ""))}


def _helper(name: str) -> bool:
    lowered = name.lower()
    return lowered in ("dbt_change_type", "dbt_unique_key") or lowered.startswith("dbt_unique_key_")
