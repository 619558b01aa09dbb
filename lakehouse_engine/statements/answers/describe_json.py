"""DESCRIBE TABLE EXTENDED ... AS JSON: one row with the keys that Spark documents (sql-ref-syntax-aux-describe-table)."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as spark

from lakehouse_engine.catalog.names import CATALOG_PREFIX, RelationName
from lakehouse_engine.catalog.records import Comments
from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.model.constraints import Constraints
from lakehouse_engine.spark.schema import to_spark_schema
from lakehouse_engine.sql.grammar.statements import Describe
from lakehouse_engine.statements.context import Execution


def describe_json(run: Execution, statement: Describe) -> DataFrame:
    """Raises `UnsupportedSqlError` for a single column, which Spark refuses too."""
    if statement.column is not None:
        raise UnsupportedSqlError("DESCRIBE ... AS JSON is of a whole table; take the column's name away")
    asked = run.pins.name(statement.name)
    is_view = run.catalog.is_view(asked)
    name = asked if is_view else run.catalog.table(asked)
    said = {
        "table_name": name.name,
        "catalog_name": CATALOG_PREFIX,
        "namespace": [name.schema],
        "schema_name": name.schema,
        **(_view(run, name) if is_view else _table(run, statement, name)),
    }
    return run.rows(["json_metadata"], [[json.dumps(said, ensure_ascii=False, separators=(",", ":"))]])


def _view(run: Execution, name: RelationName) -> dict[str, Any]:
    view, comments = run.catalog.view(name), run.catalog.comments(name)
    named = Comments(None, {column: text for column, text in view.columns if text}).merged(None, comments.columns)
    fields = run.query(f"select * from {name}").schema.fields
    comment = comments.comment or view.comment
    return {
        "columns": [_column(field, named, frozenset()) for field in fields],
        "created_time": view.created,
        "type": "VIEW",
        "view_text": view.sql,
        **({"comment": comment} if comment else {}),
    }


def _table(run: Execution, statement: Describe, name: RelationName) -> dict[str, Any]:
    table, comments = run.table(statement.name), run.catalog.comments(name)
    fixed = frozenset(one.lower() for one in table.config.constraints.not_null)
    return {
        "columns": [
            {**_column(field, comments, fixed), **_value(table.config.constraints, field.name)}
            for field in to_spark_schema(table.schema).fields
        ],
        "location": table.storage.root,
        "type": "MANAGED",
        "provider": "hudi",
        **({"comment": comments.comment} if comments.comment else {}),
        "table_properties": dict(sorted(table.config.properties.items())),
        "partition_provider": "Catalog",
        "partition_columns": list(table.config.partition_fields),
    }


def _value(constraints: Constraints, column: str) -> dict[str, str]:
    text, generated = constraints.default_of(column), constraints.generated_as(column)
    if generated is not None:
        return {"generation_expression": generated.expression}
    return {} if text is None else {"default": text}


def _column(field: spark.StructField, comments: Comments, fixed: frozenset[str], above: str = "") -> dict[str, Any]:
    path = f"{above}{field.name}"
    comment = comments.columns.get(path)
    return {
        "name": field.name,
        "type": _type(field.dataType, comments, path),
        "nullable": field.nullable and path.lower() not in fixed,
        **({"comment": comment} if comment else {}),
    }


def _type(kind: spark.DataType, comments: Comments, path: str) -> dict[str, Any]:
    if isinstance(kind, spark.StructType):
        return {"name": "struct", "fields": [_column(field, comments, frozenset(), f"{path}.") for field in kind.fields]}
    if isinstance(kind, spark.ArrayType):
        element = _type(kind.elementType, comments, f"{path}.element")
        return {"name": "array", "element_type": element, "element_nullable": kind.containsNull}
    if isinstance(kind, spark.MapType):
        key, value = _type(kind.keyType, comments, f"{path}.key"), _type(kind.valueType, comments, f"{path}.value")
        return {"name": "map", "key_type": key, "value_type": value, "value_nullable": kind.valueContainsNull}
    if isinstance(kind, spark.DecimalType):
        return {"name": "decimal", "precision": kind.precision, "scale": kind.scale}
    if isinstance(kind, spark.StringType):
        return {"name": "string", "collation": kind.collation}
    return {"name": "timestamp_ltz" if isinstance(kind, spark.TimestampType) else kind.simpleString()}
