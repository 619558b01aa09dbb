"""CREATE TABLE ... USING delta and other formats: an error message better than Spark's."""

from __future__ import annotations

from lakehouse_engine.errors import SqlError, UnsupportedSqlError
from lakehouse_engine.sql.grammar.statements import Passthrough, Query, Statement
from lakehouse_engine.sql.router import foreign_table
from lakehouse_engine.statements.context import Execution


def check_provider(run: Execution, statement: Statement) -> None:
    """Refuse a table of another format in a schema of the warehouse: Spark would report that the schema does not exist.

    If Spark's catalog has that schema, the table is Spark's. Raises `UnsupportedSqlError`.
    """
    found = foreign_table(statement.text) if isinstance(statement, (Passthrough, Query)) else None
    if found is None:
        return
    parts, provider = run.pins.qualified(found[0]), found[1]
    schema = _schema(run, parts[0]) if len(parts) == 2 else None
    if schema is None or run.spark.catalog.databaseExists(schema):
        return
    name = f"{schema}.{parts[1]}"
    if provider == "EXTERNAL":
        message = f"EXTERNAL TABLE {name}: tables of the warehouse are Hudi tables in its directory. Leave EXTERNAL and LOCATION out"
    else:
        how = "STORED AS" if provider == "STORED" else f"USING {provider.lower()}"
        message = f"{how} of {name}: tables of the warehouse are Hudi tables. Leave it out or write USING hudi"
    raise UnsupportedSqlError(f"{message}; a temporary view reads files of another format (CREATE TEMPORARY VIEW ... USING)", relation=name)


def _schema(run: Execution, name: str) -> str | None:
    try:
        return run.catalog.find_schema(name)
    except SqlError:
        return None  # not a schema name of the warehouse: Spark reports what it makes of it
