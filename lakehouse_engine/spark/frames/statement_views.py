"""Snapshots under temporary view names, for bound statements."""

from __future__ import annotations

import itertools
import uuid
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from threading import Lock
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.catalog.catalog import Catalog, RelationKind
from lakehouse_engine.catalog.information import information_relation
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.commit.expected import ExpectedState
from lakehouse_engine.errors import RelationNotFoundError, UnsupportedSqlError
from lakehouse_engine.read.query import Query, plan_query, read_options
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.read.skipping import without_ruled_out
from lakehouse_engine.spark.frames.files import files_frame
from lakehouse_engine.spark.frames.information import information_frame
from lakehouse_engine.spark.frames.moments import Arguments, computed_moment, moment_of_literal
from lakehouse_engine.spark.frames.scan import scan, shared_scan
from lakehouse_engine.spark.functions import SessionFunctions
from lakehouse_engine.sql.binding.bind import AsOf, Bound, Pin
from lakehouse_engine.sql.binding.binder import Names, ViewText, bind_pin, bind_statement
from lakehouse_engine.sql.binding.files import ON_FILES_KEY, READS_FILES, check_no_files
from lakehouse_engine.sql.binding.files import refusal as not_allowed
from lakehouse_engine.sql.binding.needs import EVERYTHING, Needs
from lakehouse_engine.sql.binding.predicate import Predicate, expression_of
from lakehouse_engine.sql.grammar.references import Parts
from lakehouse_engine.storage.read_only import refusal
from lakehouse_engine.view.table_state import TableState

_KEPT = 256
"""Temporary views kept at once. A Spark Connect frame resolves its names when it runs, so a view outlives its statement."""

_MOMENTS: BoundedCache[int] = BoundedCache(1_000)
"""Values of TIMESTAMP literals, by time zone and text."""
_ASKING = Lock()
"""Held while Spark computes one."""


@dataclass(frozen=True, slots=True)
class TableRead:
    """One read of a table: the query, its narrowing condition (as text, or None), and the plan before and after."""

    name: RelationName
    state: TableState
    query: Query
    condition: str | None
    planned: ScanPlan
    read: ScanPlan
    """The plan without files that statistics exclude."""


class Reads:
    """What one statement (or a group) reads: each table in the state of its first read.

    `partial` holds the paths read of tables that were limited to partitions. `seen` collects every read, if it is a list.
    """

    def __init__(self, state_of: Callable[[RelationName], TableState]) -> None:
        self._state_of = state_of
        self._states: dict[RelationName, TableState] = {}
        self._first: dict[RelationName, TableState] = {}
        self._attached: dict[str, Reads] = {}
        self._own: dict[RelationName, list[str]] = {}
        self._current: Counter[RelationName] = Counter()
        self._partial: dict[RelationName, frozenset[str]] = {}
        self.seen: list[TableRead] | None = None

    def state(self, name: RelationName, *, current: bool = True) -> TableState:
        """State of the table for this reading; `current`: its newest rows are read, not an older state or a range of changes."""
        if name not in self._states:
            self._states[name] = self._state_of(name)
            self._first.setdefault(name, self._states[name])
        self._current[name] += current
        return self._states[name]

    def pinned(self, name: RelationName) -> TableState | None:
        """State in which the table was read, if it was."""
        return self._states.get(name)

    def narrow(self, name: RelationName, partitions: Iterable[str]) -> None:
        """Record that the (one) read of the table's newest rows was limited to these partitions."""
        self._partial[name] = frozenset(partitions)

    def expected(self, name: RelationName) -> ExpectedState | None:
        """State that a write of the table depends on; None if its newest rows were not read."""
        if not self._current[name]:
            return None
        partitions = self._partial.get(name) if self._current[name] == 1 else None
        expected = ExpectedState.of(self._first[name]).after(self._own.get(name, ()))
        return expected if partitions is None else expected.within(partitions)

    def beside(self, catalog: str, state_of: Callable[[RelationName], TableState]) -> Reads:
        """Reads of the same statements in an attached catalog."""
        found = self._attached.setdefault(catalog, Reads(state_of))
        found.seen = self.seen
        return found

    @property
    def states(self) -> Mapping[RelationName, TableState]:
        """Every table that was read, with its state."""
        return self._states

    def wrote(self, name: RelationName, instant: str) -> None:
        """Record an own write: later reads of the table include it, and the expected state is the first read plus that write."""
        if self._states.pop(name, None) is not None:
            self._own.setdefault(name, []).append(instant)


class Pins:
    """Binds statements of one session: every table that a statement reads is pinned once, to its newest commit at that moment.

    `called`: the catalog's name, which may precede a schema's. `attached`: pins of other, read-only catalogs, by name.
    """

    def __init__(
        self,
        catalog: Catalog,
        spark: SparkSession,
        state_of: Callable[[RelationName], TableState],
        options: Mapping[str, Any] | None = None,
        *,
        allow_files: bool = True,
        called: str = "",
        attached: Mapping[str, Pins] | None = None,
    ) -> None:
        self.called, self._attached = called.lower(), dict(attached or {})
        self._catalog, self._spark, self._state_of, self._options = catalog, spark, state_of, dict(options or {})
        self._allow_files = allow_files
        if not allow_files:
            spark.conf.set(ON_FILES_KEY, "false")
        self._prefix, self._numbers = f"__lakehouse_{uuid.uuid4().hex[:8]}", itertools.count(1)
        self._kept: OrderedDict[int, tuple[str, DataFrame]] = OrderedDict()
        self._guard = Lock()
        self.functions = SessionFunctions(catalog, spark, self.knows, self.check)
        for name, pins in self._attached.items():
            pins.functions = SessionFunctions(pins._catalog, spark, pins.knows, self.check, f"{name}.")
        self.current_schema: str | None = None

    @property
    def options(self) -> Mapping[str, Any]:
        """Options for every table of the session, over its stored ones."""
        return self._options

    def knows(self, parts: Parts) -> bool:
        """True if a name is a table or stored view of the warehouse or its information_schema. A single part is looked up in the current
        schema. Every name in an attached catalog counts as known, because nothing else has it.
        """
        is_here = self._catalog.kind_of(self.qualified(parts)) is not None or self._information(parts) is not None
        return is_here or self.elsewhere(parts) is not None

    def _information(self, parts: Parts) -> str | None:
        """The relation of information_schema, unless the warehouse has one with that name."""
        qualified = self.qualified(parts)
        found = information_relation(self._catalog, qualified)
        return found if found is not None and self._catalog.kind_of(qualified) is None else None

    def elsewhere(self, parts: Parts) -> tuple[Pins, Parts] | None:
        """Attached catalog at the start of a three-part name, and the rest; None for a name of the warehouse."""
        found = self._attached.get(parts[0].lower()) if len(parts) == 3 else None
        return None if found is None else (found, parts[1:])

    def qualified(self, parts: Parts) -> Parts:
        """The name with its schema and without the catalog's."""
        if len(parts) == 3 and parts[0].lower() == self.called:
            return parts[1:]
        return (self.current_schema, *parts) if len(parts) == 1 and self.current_schema else parts

    def name(self, parts: Parts) -> RelationName:
        """The relation that a statement names. Raises `SqlError` for one part without a current schema, and `ReadOnlyError` for an attached
        catalog, whose readers were routed before.
        """
        if (found := self.elsewhere(parts)) is not None:
            raise refusal(parts[0], found[0]._catalog.storage.root)
        return RelationName.of(self.qualified(parts))

    def check(self, text: str) -> None:
        """Refuse a statement on files unless those are allowed. Raises `UnsupportedSqlError`."""
        if not self._allow_files:
            check_no_files(text, self.knows)

    def reads(self) -> Reads:
        """Reads of a new statement."""
        return Reads(self._state_of)

    def bind(self, text: str, reads: Reads, args: Arguments = None) -> Bound:
        """The statement with every read of the warehouse replaced by a pinned view. `args` are its parameters."""
        return bind_statement(text, self._names(partial(self._pin_table, reads, args)))

    def _names(self, pin_table: Callable[[Pin], str]) -> Names:
        return Names(self.knows, self._stored_view, pin_table, self._pin_query, self._is_table)

    def _is_table(self, parts: Parts) -> bool:
        """True if a name is a table of the warehouse or an attached one."""
        if (found := self.elsewhere(parts)) is not None:
            pins, rest = found
            return pins._is_table(rest)
        return self._catalog.kind_of(self.qualified(parts)) is RelationKind.TABLE

    def target(self, name: RelationName, reads: Reads, needs: Needs = EVERYTHING, *, deleted: bool = False) -> str:
        """View of the table's rows with meta columns, for statements that change it; `deleted`: softly deleted ones too."""
        return self.keep(self._scan(self._catalog.table(name), reads, Query(deleted=deleted), needs, meta_columns=True, verify=True))

    def stored_rows(self, name: RelationName, reads: Reads, rows: Predicate | None = None) -> DataFrame:
        """The table's rows with its stored meta columns, verified as they are read, so that a rewrite does not copy damage. At least those
        that match `rows`.
        """
        plan, options = self._planned(self._catalog.table(name), reads, Query(), Needs(None, rows))
        return scan(self._spark, plan.verified(True), meta_columns=True, options=options)

    def _scan(
        self, name: RelationName, reads: Reads, query: Query, needs: Needs, *, meta_columns: bool = False, verify: bool = False
    ) -> DataFrame:
        """At least the needed rows and columns; the statement filters the rest."""
        plan, options = self._planned(name, reads, query, needs)
        plan = plan.verified(True) if verify else plan
        return shared_scan(self._spark, plan, meta_columns=meta_columns, named=needs.names, options=options)

    def _planned(self, name: RelationName, reads: Reads, query: Query, needs: Needs) -> tuple[ScanPlan, Mapping[str, Any]]:
        """Plan of the files that have needed rows, and the options for reading the table."""
        state = reads.state(name, current=query.kind != "incremental" and query.as_of is None)
        rows = self._rows(needs)
        narrowing = None if rows is None else partial(expression_of, rows, moment=self._moment_of)
        planned = plan_query(state, query, self._options, paths=True, narrowing=narrowing)
        plan = without_ruled_out(planned)
        if reads.seen is not None:
            asked = None if planned.wanted is None else str(planned.wanted.expression)
            reads.seen.append(TableRead(name, state, query, asked, planned, plan))
        return replace(plan, wanted=None), read_options(state, self._options)

    def _rows(self, needs: Needs) -> Predicate | None:
        """If a session is case-sensitive, a name may mean another column than the one checked here."""
        return None if str(self._spark.conf.get("spark.sql.caseSensitive")).lower() == "true" else needs.rows

    def _moment_of(self, text: str) -> int | None:
        """Microseconds since 1970 of a TIMESTAMP literal in the session's time zone, computed by Spark."""
        key = self._spark.conf.get("spark.sql.session.timeZone"), text
        known = _MOMENTS.get(key)
        if known is not None:
            return known
        try:
            with _ASKING:  # batches of a model ask for the same ends at the same time
                return _MOMENTS.find(key, lambda: moment_of_literal(self._spark, text))
        except PySparkException:
            return None  # no such moment: Spark reports it for the statement

    def keep(self, frame: DataFrame) -> str:
        """Temporary name for a DataFrame: its existing one, if it is kept."""
        known = self._known(frame)
        if known is not None:
            return known
        name = f"{self._prefix}_{next(self._numbers)}"
        frame.createOrReplaceTempView(name)
        with self._guard:
            # The frame is kept with its name, so that its id is not reused. Another thread may have named it meanwhile.
            chosen, _ = self._kept.setdefault(id(frame), (name, frame))
            left = [self._kept.popitem(last=False)[1][0] for _ in range(len(self._kept) - _KEPT)]
        for one in [*left, *({name} - {chosen})]:
            self._spark.catalog.dropTempView(one)
        return chosen

    def _known(self, frame: DataFrame) -> str | None:
        with self._guard:
            name, _ = self._kept.get(id(frame), (None, None))
            if name is not None:
                self._kept.move_to_end(id(frame))
        if name is None or self._spark.catalog.tableExists(name):
            return name
        with self._guard:
            self._kept.pop(id(frame), None)  # other code may have dropped all temporary views of the session
        return None

    def drop_all(self) -> None:
        """Drop every kept view."""
        for pins in self._attached.values():
            pins.drop_all()
        with self._guard:
            names = [name for name, _ in self._kept.values()]
            self._kept.clear()
        for name in names:
            self._spark.catalog.dropTempView(name)

    def pin(self, pin: Pin, reads: Reads, args: Arguments, *, for_columns: bool) -> str:
        """View of what a statement of another catalog reads here; names in stored views belong to this catalog."""
        return bind_pin(pin, self._names(partial(self._pin_table, reads, args, for_columns=for_columns)))

    def _stored_view(self, parts: Parts) -> ViewText | None:
        if self.elsewhere(parts) is not None or self._information(parts) is not None:
            return None
        name = self.name(parts)
        if self._catalog.kind_of((name.schema, name.name)) is not RelationKind.VIEW:
            return None
        view = self._catalog.view(name)
        return ViewText(view.sql, tuple(column for column, _ in view.columns))

    def _pin_information(self, relation: str, pin: Pin, for_columns: bool) -> str:
        if pin.as_of is not None or pin.changes is not None or pin.read_optimized or pin.deleted:
            raise UnsupportedSqlError(f"information_schema.{relation} has no history: it says what the warehouse holds now")

        def query(text: str) -> DataFrame:
            names = self._names(partial(self._pin_table, self.reads(), None, for_columns=True))
            return self._spark.sql(bind_statement(text, names).text)

        rows = self._rows(pin.needs)
        made = information_frame(self._spark, self._catalog, relation, rows, self._state_of, query, for_columns=for_columns)
        return self.keep(made)

    def _pin_table(self, reads: Reads, args: Arguments, pin: Pin, *, for_columns: bool = False) -> str:
        """`for_columns`: only the columns of a view's query are needed."""
        if pin.files is not None:
            if not self._allow_files:
                raise not_allowed(READS_FILES)
            return self.keep(files_frame(self._spark, pin.files))
        if (found := self.elsewhere(pin.parts)) is not None:
            pins, parts = found
            there = reads.beside(pin.parts[0].lower(), pins._state_of)
            return pins.pin(replace(pin, parts=parts), there, args, for_columns=for_columns)
        relation = self._information(pin.parts)
        if relation is not None:
            return self._pin_information(relation, pin, for_columns)
        name = self.name(pin.parts)
        if self._catalog.kind_of((name.schema, name.name)) is None:
            where = f" in the catalog {self.called} ({self._catalog.storage.root})" if self.called else ""
            raise RelationNotFoundError(f"there is no relation {name}{where}", relation=name)
        stored = self._catalog.table(name)
        if pin.changes is not None:
            if pin.changes.mode != "latest_state":
                message = "hudi_table_changes reads 'latest_state' only: change data capture is not supported yet"
                raise UnsupportedSqlError(message, relation=name)
            end = None if pin.changes.end is None else self._moment(pin.changes.end, args)
            query = Query("incremental", None, self._moment(pin.changes.begin, args), end)
            return self.keep(self._scan(stored, reads, query, pin.needs, meta_columns=True))
        as_of = None if pin.as_of is None else self._moment(pin.as_of, args)
        query = Query("read_optimized" if pin.read_optimized else "snapshot", as_of, deleted=pin.deleted)
        return self.keep(self._scan(stored, reads, query, pin.needs, meta_columns=pin.meta_columns))

    def _moment(self, as_of: AsOf, args: Arguments) -> str | datetime:
        if not as_of.computed:
            return as_of.value
        self.check(f"select ({as_of.value})")
        return computed_moment(self._spark, as_of.value, args, as_of.said)

    def _pin_query(self, sql: str, columns: Sequence[str]) -> str:
        self.check(sql)
        frame = self._spark.sql(self.functions.resolved(sql))
        return self.keep(frame.toDF(*columns) if columns else frame)
