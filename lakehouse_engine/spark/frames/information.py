"""`information_schema` as a DataFrame; relations that the query excludes by name are not opened."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine.catalog.catalog import Catalog, RelationKind
from lakehouse_engine.catalog.information import Described, information_rows
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.files.schema import user_schema
from lakehouse_engine.record.spark_types import spark_name
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.sql.binding.predicate import Predicate, expression_of
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


def information_frame(
    spark: SparkSession,
    catalog: Catalog,
    relation: str,
    rows: Predicate | None,
    state_of: Callable[[RelationName], TableState],
    query: Callable[[str], DataFrame],
    *,
    for_columns: bool,
) -> DataFrame:
    """Rows of `information_schema.<relation>`, at least those of `rows`. `query` runs a query over the warehouse, to get views' columns.

    `for_columns`: no rows, for the columns of a view that reads this relation, and may itself be listed in it.
    """

    def described(name: RelationName, kind: RelationKind) -> Sequence[Described]:
        try:
            return _of_table(state_of(name)) if kind is RelationKind.TABLE else _of_view(name, query)
        except (PySparkException, LakehouseError) as error:
            # Skips relations of another version, damaged ones, and views whose tables changed; the others' columns are shown.
            logger.warning("information_schema.columns has no columns of %s, which cannot be read: %s", name, error)
            return []

    def wanted(names: pa.Table) -> pa.Table:
        if for_columns:
            return names.slice(0, 0)
        expression = expression_of(rows, names.schema)
        return names if expression is None else names.filter(expression)

    made = information_rows(catalog, relation, catalog.storage.root, described, wanted)
    return abilities_of(spark).frame(made)


def _of_table(state: TableState) -> list[Described]:
    config, constraints = state.config, state.config.constraints
    places = {name: number for number, name in enumerate(config.partition_fields, 1)}
    found = []
    for field in user_schema(state):
        length, generated = constraints.length_of(field.name), constraints.generated_as(field.name)
        found.append(
            Described(
                field.name,
                spark_name(field.type) if length is None else f"varchar({length})",
                not constraints.is_not_null(field.name),
                places.get(field.name),
                constraints.default_of(field.name),
                None if generated is None else generated.expression,
            )
        )
    return found


def _of_view(name: RelationName, query: Callable[[str], DataFrame]) -> list[Described]:
    return [Described(field.name, field.dataType.simpleString()) for field in query(f"select * from {name}").schema.fields]
