"""Snapshots under temporary names: what a bound statement reads."""

from __future__ import annotations

import itertools
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine.catalog.catalog import Catalog, RelationKind
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.commit.expected import ExpectedState
from lakehouse_engine.errors import RelationNotFoundError, UnsupportedSqlError
from lakehouse_engine.read.query import Query, plan_query, read_options
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.read.skipping import without_ruled_out
from lakehouse_engine.spark.frames.scan import scan
from lakehouse_engine.spark.functions import SessionFunctions
from lakehouse_engine.sql.binding.bind import Bound, Pin
from lakehouse_engine.sql.binding.binder import Names, ViewText, bind_statement
from lakehouse_engine.sql.binding.files import ON_FILES_KEY, check_no_files
from lakehouse_engine.sql.binding.needs import EVERYTHING, Needs
from lakehouse_engine.sql.binding.predicate import expression_of
from lakehouse_engine.sql.grammar.references import Parts
from lakehouse_engine.view.table_state import TableState

_KEPT = 256
"""Temporary views kept at once. A DataFrame on Spark Connect resolves its names when it runs, so a view outlives its statement."""


@dataclass(frozen=True, slots=True)
class TableRead:
    """One reading of a table: the query, what narrowed it (as text; None: nothing did), and the plan that it was made."""

    name: RelationName
    state: TableState
    query: Query
    condition: str | None
    planned: ScanPlan
    read: ScanPlan
    """The plan without the files that statistics ruled out."""


class Reads:
    """What one statement (or several that belong together) reads: each table at the one state of its first reading.

    `partial` says of a table whose rows were read by a condition on its partitions only which paths those are. `seen` has every reading,
    where it was set to a list.
    """

    def __init__(self, state_of: Callable[[RelationName], TableState]) -> None:
        self._state_of = state_of
        self._states: dict[RelationName, TableState] = {}
        self._first: dict[RelationName, TableState] = {}
        self._own: dict[RelationName, list[str]] = {}
        self._current: Counter[RelationName] = Counter()
        self._partial: dict[RelationName, frozenset[str]] = {}
        self.seen: list[TableRead] | None = None

    def state(self, name: RelationName, *, current: bool = True) -> TableState:
        """The table's state for this reading; `current`: its newest rows are read, rather than an older state or a range of changes."""
        if name not in self._states:
            self._states[name] = self._state_of(name)
            self._first.setdefault(name, self._states[name])
        self._current[name] += current
        return self._states[name]

    def pinned(self, name: RelationName) -> TableState | None:
        """The state that the table is read at, if it was read."""
        return self._states.get(name)

    def narrow(self, name: RelationName, partitions: Iterable[str]) -> None:
        """The (one) reading of the table's newest rows is of these partitions only."""
        self._partial[name] = frozenset(partitions)

    def expected(self, name: RelationName) -> ExpectedState | None:
        """The state that a write of the table rests on; None where its newest rows were not read."""
        if not self._current[name]:
            return None
        partitions = self._partial.get(name) if self._current[name] == 1 else None
        expected = ExpectedState.of(self._first[name]).after(self._own.get(name, ()))
        return expected if partitions is None else expected.within(partitions)

    def wrote(self, name: RelationName, instant: str) -> None:
        """A write of the reader's own: from here on the table is read with it, and expected as it was read first, with it."""
        if self._states.pop(name, None) is not None:
            self._own.setdefault(name, []).append(instant)


class Pins:
    """Binds statements of one session: every table a statement reads is pinned once, to its newest commit at that moment."""

    def __init__(
        self,
        catalog: Catalog,
        spark: SparkSession,
        state_of: Callable[[RelationName], TableState],
        options: Mapping[str, Any] | None = None,
        *,
        allow_files: bool = True,
    ) -> None:
        self._catalog, self._spark, self._state_of, self._options = catalog, spark, state_of, dict(options or {})
        self._allow_files = allow_files
        if not allow_files:
            spark.conf.set(ON_FILES_KEY, "false")
        self._names = (f"__lakehouse_{uuid.uuid4().hex[:8]}_{number}" for number in itertools.count(1))
        self._kept: deque[str] = deque()
        self.functions = SessionFunctions(catalog, spark, self.knows, self.check)
        self.current_schema: str | None = None

    @property
    def options(self) -> Mapping[str, Any]:
        """Those that count for every table of the session, over what it has stored."""
        return self._options

    def knows(self, parts: Parts) -> bool:
        """Whether a name is a table or stored view of the warehouse. A single part is looked for in the current schema."""
        return self._catalog.kind_of(self.qualified(parts)) is not None

    def qualified(self, parts: Parts) -> Parts:
        return (self.current_schema, *parts) if len(parts) == 1 and self.current_schema else parts

    def name(self, parts: Parts) -> RelationName:
        """The relation that a statement names. Raises `SqlError` for one part without a current schema."""
        return RelationName.of(self.qualified(parts))

    def check(self, text: str) -> None:
        """Refuse a statement on files, unless those are allowed. Raises `UnsupportedSqlError`."""
        if not self._allow_files:
            check_no_files(text, self.knows)

    def reads(self) -> Reads:
        """For a statement that begins."""
        return Reads(self._state_of)

    def bind(self, text: str, reads: Reads) -> Bound:
        """The statement with every read of the warehouse replaced by a pinned view."""
        return bind_statement(text, Names(self.knows, self._stored_view, partial(self._pin_table, reads), self._pin_query))

    def target(self, name: RelationName, reads: Reads, needs: Needs = EVERYTHING) -> str:
        """A view of the table's rows with its meta columns, for statements that change it."""
        return self.keep(self.stored_rows(name, reads, needs))

    def stored_rows(self, name: RelationName, reads: Reads, needs: Needs = EVERYTHING) -> DataFrame:
        """The table's rows with their meta columns, checked as they are read: what is written anew must not carry damage on."""
        return self._scan(self._catalog.table(name), reads, Query(), needs, meta_columns=True, verify=True)

    def _scan(
        self, name: RelationName, reads: Reads, query: Query, needs: Needs, *, meta_columns: bool = False, verify: bool = False
    ) -> DataFrame:
        """At least the rows and columns that are needed. Rows that are not may be among them: the statement says what it wants."""
        state = reads.state(name, current=query.kind != "incremental" and query.as_of is None)
        # Where a session tells upper from lower case, a name in a statement may be another column than the one that is looked at here.
        is_known = needs.rows is not None and str(self._spark.conf.get("spark.sql.caseSensitive")).lower() != "true"
        planned = plan_query(
            state, query, self._options, paths=True, narrowing=partial(expression_of, needs.rows) if is_known else None
        )
        plan = without_ruled_out(planned)
        if reads.seen is not None:
            asked = None if planned.wanted is None else str(planned.wanted.expression)
            reads.seen.append(TableRead(name, state, query, asked, planned, plan))
        plan = replace(plan, wanted=None)
        options = read_options(state, self._options)
        return scan(self._spark, plan.verified(True) if verify else plan, meta_columns=meta_columns, named=needs.names, options=options)

    def keep(self, frame: DataFrame) -> str:
        """A temporary name for a DataFrame."""
        name = next(self._names)
        frame.createOrReplaceTempView(name)
        self._kept.append(name)
        while len(self._kept) > _KEPT:
            self._spark.catalog.dropTempView(self._kept.popleft())
        return name

    def drop_all(self) -> None:
        """Drop every view that is kept."""
        while self._kept:
            self._spark.catalog.dropTempView(self._kept.popleft())

    def _stored_view(self, parts: Parts) -> ViewText | None:
        name = self.name(parts)
        if self._catalog.kind_of((name.schema, name.name)) is not RelationKind.VIEW:
            return None
        view = self._catalog.view(name)
        return ViewText(view.sql, tuple(column for column, _ in view.columns))

    def _pin_table(self, reads: Reads, pin: Pin) -> str:
        name = self.name(pin.parts)
        if self._catalog.kind_of((name.schema, name.name)) is None:
            raise RelationNotFoundError(f"there is no relation {name}", relation=name)
        stored = self._catalog.table(name)
        if pin.changes is not None:
            if pin.changes.mode != "latest_state":
                message = "hudi_table_changes reads 'latest_state' only: change data capture is not supported yet"
                raise UnsupportedSqlError(message, relation=name)
            query = Query("incremental", None, pin.changes.begin, pin.changes.end)
            return self.keep(self._scan(stored, reads, query, pin.needs, meta_columns=True))
        as_of = pin.as_of.value if pin.as_of is not None else None
        return self.keep(self._scan(stored, reads, Query("read_optimized" if pin.read_optimized else "snapshot", as_of), pin.needs))

    def _pin_query(self, sql: str, columns: Sequence[str]) -> str:
        self.check(sql)
        frame = self._spark.sql(self.functions.resolved(sql))
        return self.keep(frame.toDF(*columns) if columns else frame)
