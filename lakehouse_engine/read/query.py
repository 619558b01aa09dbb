"""Turns a user's query into a scan plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import OptionError, SchemaIncompatibleError, UnsettledInstantError
from lakehouse_engine.files.projection import convert
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.metadata_table.trusted import Trusted
from lakehouse_engine.model.order import is_later, just_before
from lakehouse_engine.options import STORED_PREFIX, layered
from lakehouse_engine.options.read import TRUST_PARTITION_PATHS, VERIFY_CHECKSUMS
from lakehouse_engine.options.unavailable import CHANGE_DATA
from lakehouse_engine.read.listed import listed_by_metadata_table
from lakehouse_engine.read.moments import moment_of
from lakehouse_engine.read.pruning import may_be_foreign, path_rules
from lakehouse_engine.read.scan import FROM_START, ON_RESTORE, Filters, ScanPlan, plan_incremental, plan_snapshot
from lakehouse_engine.read.skipping import without_ruled_out
from lakehouse_engine.read.sources import guarantees_for
from lakehouse_engine.record.merging.soft_deletes import hidden_column, not_deleted
from lakehouse_engine.view.moment import at_one_moment
from lakehouse_engine.view.plans import oldest_overtaken
from lakehouse_engine.view.table_state import TableState

_KINDS = ("snapshot", "read_optimized", "incremental")


@dataclass(frozen=True, slots=True)
class Query:
    """A query. `kind` is snapshot, read_optimized or incremental.

    `as_of` goes with the first two, `begin`, `end` and `on_restore` (see `plan_incremental`) with the last; a moment is any argument of
    `moment_of`. `filters`, over the columns of the result and the meta columns, select the rows. `deleted` includes softly deleted rows and
    the time of their deletion.
    """

    kind: str = "snapshot"
    as_of: str | date | datetime | None = None
    begin: str | date | datetime | None = None
    end: str | date | datetime | None = None
    on_restore: str = "fail"
    filters: pc.Expression | None = field(default=None, compare=False)
    deleted: bool = False

    def __post_init__(self) -> None:
        if self.kind.lower() == "cdc":
            raise OptionError(f"query={self.kind!r}: {CHANGE_DATA}")
        if self.kind not in _KINDS:
            raise OptionError(f"query={self.kind!r} is not one of {', '.join(_KINDS)}")
        if self.kind == "incremental" and self.as_of is not None:
            raise OptionError("an incremental query takes begin and end, not as_of")
        if self.kind != "incremental" and (self.begin is not None or self.end is not None):
            raise OptionError(f"begin and end go with query='incremental', not with {self.kind!r}")
        if self.on_restore not in ON_RESTORE:
            raise OptionError(f"on_restore={self.on_restore!r} is not one of {', '.join(ON_RESTORE)}")


Narrowing = Callable[[pa.Schema], pc.Expression | None]
"""Makes filters for rows of a schema; None if all rows are wanted."""


def plan_query(
    state: TableState,
    query: Query,
    options: Mapping[str, Any] | None = None,
    *,
    paths: bool = False,
    narrowing: Narrowing | None = None,
) -> ScanPlan:
    """Plan for a query of the table, as it was at `state` or later.

    Reads the table's state again if instants or files of `state` are gone, archived or taken back by another process. `options` override
    those stored in the table. With `paths`, for Spark, the plan has the rules of partition paths, and its reader must drop softly deleted
    rows (`ScanPlan.hidden`). `narrowing` makes filters for a query without any, from the schema that its rows have at that time. Raises
    `OptionError` for a moment or an option that does not parse, or filters that do not fit; `UnsettledInstantError` for a past moment to
    which a Hudi writer may still add; as `plan_snapshot` and `plan_incremental`; and with `paths` `SchemaIncompatibleError` for a range
    that ends before a column got a type that does not hold its values.
    """
    given = read_options(state, options)
    verify, trusts = VERIFY_CHECKSUMS.read(given), TRUST_PARTITION_PATHS.read(given)

    def filters(now: TableState, moment: str | None) -> Filters | None:
        schema = table_schema(now, moment)
        expression = query.filters if query.filters is not None or narrowing is None else narrowing(schema)
        if not (paths or query.deleted) and hidden_column(now.config, schema):
            expression = not_deleted() if expression is None else expression & not_deleted()
        return None if expression is None else Filters(expression, trusts)

    def plan(moment: TableState) -> ScanPlan:
        trusted = Trusted(moment)
        now = listed_by_metadata_table(moment, trusted)
        found = _plan(now, query, filters)
        if not query.deleted:
            found = replace(found, hidden=hidden_column(now.config, found.schema))
        is_newest = query.kind == "snapshot" and query.as_of is None
        # Who reads rows of a filter opens the files anyway, and finds by their footers which parts to read.
        opening = paths and query.filters is None
        found = replace(found, guarantees=guarantees_for(now, trusted, opening=opening, newest=is_newest))
        if not opening:
            found = without_ruled_out(found)
        if not paths:
            return found
        foreign = may_be_foreign(now) or _has_retyped(now, found)
        return replace(found, rules=path_rules(now, found.schema, trusted=trusts), foreign=foreign)

    return at_one_moment(state, plan).verified(verify)


def _has_retyped(state: TableState, plan: ScanPlan) -> bool:
    """True if a column of an incremental read has another type now than at the end of its range, so that files may have the old type.

    Raises `SchemaIncompatibleError` if the old type does not widen: Spark's Parquet reader, asked for the current type, returns wrong
    values (int as date, decimal as bytes) or an error of its own.
    """
    end = None if plan.commit_range is None else plan.commit_range.end
    if end is None or not (plan.files or plan.logged):
        return False
    then = table_schema(state, end)
    retyped = [one for one in plan.schema if one.name in then.names and then.field(one.name).type != one.type]
    for one in retyped:
        stored = then.field(one.name).type
        try:
            convert(pa.chunked_array([pa.array([], stored)]), one.type, one.name)
        except SchemaIncompatibleError as error:
            raise SchemaIncompatibleError(
                f"the column {one.name!r} was {stored} at the end of the range, {end}, and is {one.type} now, which does not take its"
                " values: read the table as of then, or the other columns by to_arrow(columns=...)",
                column=one.name,
                table=state.config.name,
            ) from error
    return bool(retyped)


def read_options(state: TableState, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Options for reads of a table: those given, over those stored in the table."""
    return layered(state.config.prefixed(STORED_PREFIX), options or {})


def _bound(state: TableState, moment: str | date | datetime | None) -> str | None:
    """Moment of a bound. The time of an instant means the moment at which it shows.

    Other digits stay unchanged, because checkpoints of Hudi's readers start with fewer digits than instants have.
    """
    if moment is None or moment in FROM_START:
        return moment  # type: ignore[return-value]
    if isinstance(moment, str) and moment.isascii() and moment.isdigit():
        return state.order.moment(moment)
    return moment_of(state, moment)


def _plan(state: TableState, query: Query, filters: Callable[[TableState, str | None], Filters | None]) -> ScanPlan:
    if query.kind == "incremental":
        return _changes(state, query, filters(state, None))
    as_of = None if query.as_of is None else moment_of(state, query.as_of)
    if as_of is not None:
        _refuse_unsettled(state, as_of, oldest_overtaken(state))
    return plan_snapshot(state, as_of, read_optimized=query.kind == "read_optimized", filters=filters(state, as_of))


def _changes(state: TableState, query: Query, filters: Filters | None) -> ScanPlan:
    """Plan an incremental read.

    Without an end, it stops before the oldest instant that can still be added, so a reader that continues from the newest row it got misses
    nothing.
    """
    begin, end = _bound(state, query.begin), _bound(state, query.end)
    if begin is not None and begin not in FROM_START and end is not None and is_later(begin, end):
        raise OptionError(f"an incremental read from {query.begin} to {query.end} ends before it begins")
    overtaken = oldest_overtaken(state)
    is_behind = begin is not None and begin not in FROM_START and overtaken is not None and not is_later(overtaken, begin)
    if overtaken is not None and not is_behind:
        if end is None:
            end = just_before(overtaken)
        else:
            _refuse_unsettled(state, end, overtaken)
    return plan_incremental(state, begin, end, on_restore=query.on_restore, filters=filters)


def _refuse_unsettled(state: TableState, moment: str, overtaken: str | None) -> None:
    """Raise `UnsettledInstantError` for a past moment to which a running write may add."""
    last = state.timeline.completed().writes().last()
    if overtaken is None or last is None:
        return
    if not is_later(overtaken, moment) and not is_later(moment, last.requested_time):
        raise UnsettledInstantError(
            f"what the table was as of {moment} is not settled: a writer of Hudi has been at work on {overtaken} since before then, and may"
            f" add to it. Ask for an earlier moment, or wait until it is done (`writers` says who it is)",
            table=state.config.name,
            instant=overtaken,
        )
