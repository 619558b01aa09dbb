"""Makes the stored functions that a statement calls temporary functions of its session.

The temporary function of `schema.name` has that whole text as its one-part name, so that Spark's results and messages show what the user
wrote.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from lakehouse_engine.catalog.catalog import Catalog
from lakehouse_engine.catalog.functions import Functions, Language, StoredFunction
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.errors import SqlError, UnsupportedSqlError
from lakehouse_engine.sql.binding.calls import Write, expanded, rewritten
from lakehouse_engine.sql.binding.scan import scan
from lakehouse_engine.sql.grammar.lexer import quote_name
from lakehouse_engine.sql.grammar.references import Parts, ReferenceKind, plain

_SAID = {None: "", True: " DETERMINISTIC", False: " NOT DETERMINISTIC"}


class SessionFunctions:
    """`knows` says whether a name is a table or view; `check` refuses SQL on files if that is not allowed.

    `prefix` separates functions of an attached catalog from the warehouse's, which share the session.
    """

    def __init__(
        self, catalog: Catalog, spark: SparkSession, knows: Callable[[Parts], bool], check: Callable[[str], None], prefix: str = ""
    ) -> None:
        self._prefix = prefix
        self._stored, self._spark, self._knows, self._check = Functions(catalog), spark, knows, check
        self._made: dict[RelationName, StoredFunction] = {}
        self._path: list[RelationName] = []

    def resolved(self, text: str) -> str:
        """`text` with stored functions replaced by temporary ones, which are made. Raises as `make`."""
        return rewritten(text, self._write)

    def make(self, name: RelationName, function: StoredFunction) -> None:
        """Make the temporary function, or check that it can be made.

        Raises `SqlError` for functions that call each other in a cycle and for Python that does not run, `UnsupportedSqlError` for a body
        that reads the warehouse, and Spark's errors for a body that it cannot analyse.
        """
        if name in self._path:
            circle = " -> ".join(map(str, (*self._path[self._path.index(name) :], name)))
            raise SqlError(f"the function {name} calls itself: {circle}; create one of them anew without the circle", relation=name)
        if self._made.get(name) == function:
            return
        self._path.append(name)
        try:
            self._make(name, function)
        finally:
            self._path.pop()
        self._made[name] = function

    def _write(self, parts: Parts) -> Write | None:
        found = self._stored.find(parts)
        if found is None:
            return None
        name, function = found
        self.make(name, function)
        return lambda arguments: _call(name, function, arguments, self._called(name))

    def _called(self, name: RelationName) -> str:
        """Name of the temporary function."""
        return f"{self._prefix}{name.schema}.{name.name}".lower()

    def _make(self, name: RelationName, function: StoredFunction) -> None:
        if function.language is Language.PYTHON:
            self._spark.udf.register(self._called(name), _python(self._spark, name, function))
            return
        self._check_body(name, function)
        if function.aggregate:
            values = ", ".join(f"cast(null as {one.type})" for one in function.parameters)
            columns = ", ".join(quote_name(one.name) for one in function.parameters)
            source = f" from values ({values}) as t({columns})" if function.parameters else ""
            self._spark.sql(f"select cast(({self.resolved(function.body)}) as {function.returns}){source}")
            return
        parameters = ", ".join(str(one) for one in function.parameters)
        body = self.resolved(function.body)
        # Spark does not let an SQL function replace one of another kind.
        self._spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {quote_name(self._called(name))}")
        self._spark.sql(
            f"CREATE OR REPLACE TEMPORARY FUNCTION {quote_name(self._called(name))}({parameters}) RETURNS {function.returns}"
            f"{_SAID[function.deterministic]} RETURN {body}"
        )

    def _check_body(self, name: RelationName, function: StoredFunction) -> None:
        self._check(f"select ({function.body})")
        reads = [one for one in scan(f"select ({function.body})").references if one.kind is not ReferenceKind.TARGET]
        read = next((one for one in reads if one.kind is ReferenceKind.FUNCTION or self._knows(plain(one.parts))), None)
        if read is not None:
            raise UnsupportedSqlError(
                f"the function {name} reads {'.'.join(read.parts)}; a function has its arguments only: join the table where it is called",
                relation=name,
            )


def _call(name: RelationName, function: StoredFunction, given: tuple[str, ...], called: str) -> str:
    """A call in SQL, with defaults for trailing arguments. Raises `SqlError` for too many or too few."""
    left = function.parameters[len(given) :]
    is_by_name = any("=>" in one for one in given)
    if not is_by_name and (len(given) > len(function.parameters) or any(one.default is None for one in left)):
        wanted = ", ".join(map(str, function.parameters))
        raise SqlError(f"{name} was given {len(given)} argument(s); it takes ({wanted})", relation=name)
    arguments = given if is_by_name else (*given, *(str(one.default) for one in left))
    if not (function.aggregate and function.language is Language.SQL):
        return f"{quote_name(called)}({', '.join(arguments)})"
    if is_by_name or any(one.split(maxsplit=1)[0].upper() in ("DISTINCT", "ALL") for one in arguments):
        raise UnsupportedSqlError(f"{name} is an aggregate in SQL: call it with plain arguments, without names and DISTINCT", relation=name)
    by_name = zip(function.parameters, arguments, strict=True)
    body = expanded(function.body, {one.name.lower(): f"cast(({text}) as {one.type})" for one, text in by_name})
    return f"cast(({body}) as {function.returns})"


def _python(spark: SparkSession, name: RelationName, function: StoredFunction) -> Any:
    """The function for Spark. Its module has a name that cannot be imported, so workers get it by value."""
    module = types.ModuleType(f"<function {name}>")
    try:
        exec(compile(function.body, module.__name__, "exec"), module.__dict__)
    except Exception as error:
        raise SqlError(f"the Python of the function {name} does not run: {type(error).__name__}: {error}", relation=name) from error
    entry = getattr(module, function.entry_point, None)
    if not callable(entry):
        raise SqlError(f"the Python of the function {name} defines no {function.entry_point}, which is its entry point", relation=name)
    if function.aggregate:
        return _aggregate(spark, name, function, entry)

    def call(*values: Any, **named: Any) -> Any:
        return entry(*values, **named)

    # Without the user's type hints, from which Spark would infer a kind of function.
    made = sf.udf(call, function.returns)
    return made.asNondeterministic() if function.deterministic is False else made


def _aggregate(spark: SparkSession, name: RelationName, function: StoredFunction, kind: Any) -> Any:
    """An aggregate implemented by a class: one instance gets a group's values."""
    missing = [method for method in ("accumulate", "finish") if not callable(getattr(kind, method, None))]
    if missing or not isinstance(kind, type):
        raise SqlError(f"the aggregate {name} needs a class with accumulate(...) and finish() as its entry point", relation=name)
    arrow: Any = sf
    if not hasattr(arrow, "arrow_udf"):
        raise UnsupportedSqlError(f"the aggregate {name} in Python needs PySpark 4.1 or newer", relation=name)

    def over_group(*columns: pa.Array) -> object:
        state = kind()
        for values in zip(*(column.to_pylist() for column in columns), strict=True):
            state.accumulate(*values)
        return state.finish()

    # The active session of this thread would read text; over Spark Connect there is none.
    returns = spark.sql(f"select cast(null as {function.returns})").schema.fields[0].dataType
    # Spark infers from these type hints that it is an aggregate.
    return arrow.arrow_udf(over_group, returns)
