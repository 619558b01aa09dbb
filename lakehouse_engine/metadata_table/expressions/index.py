"""Expression indexes that this engine builds and keeps up, from their stored definitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pat

from lakehouse_engine.errors import OptionError, UnavailableError
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.format.bloom import DYNAMIC_V0, SIMPLE
from lakehouse_engine.format.metadata_table.definitions import IndexDefinition
from lakehouse_engine.format.metadata_table.forms import metadata_form
from lakehouse_engine.metadata_table.definitions import stored_definitions
from lakehouse_engine.metadata_table.expressions.bounded import Expression
from lakehouse_engine.metadata_table.expressions.functions import IDENTITY, expression_of
from lakehouse_engine.metadata_table.partitions import BLOOM_FILTERS, COLUMN_STATS, EXPRESSION_INDEX
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.view.table_state import TableState

EXPRESSION_TYPES = (COLUMN_STATS, BLOOM_FILTERS)
"""What an expression index has of each file: statistics of the values, or a Bloom filter of them."""
_BY_VALUE_TYPE = "V2"
_KIND, _RATE, _ENTRIES, _MOST = "filtertype", "fpp", "numentries", "maxentries"


@dataclass(frozen=True, slots=True)
class FilterShape:
    """How Bloom filters of an index are made (Hudi `HoodieExpressionIndex.BLOOM_FILTER_CONFIG_MAPPING`). `entries` None: by the values."""

    kind: str = DYNAMIC_V0
    fpp: float = 1e-9
    entries: int | None = None
    max_entries: int = 100_000

    @classmethod
    def of(cls, options: Mapping[str, str]) -> FilterShape:
        """Raises `OptionError` for a value that no filter can have."""
        try:
            rate = float(options.get(_RATE, cls().fpp))
            entries, most = (int(options[name]) if name in options else None for name in (_ENTRIES, _MOST))
        except ValueError as error:
            raise OptionError(f"an option of a Bloom filter is no number: {error}") from error
        kind = options.get(_KIND, DYNAMIC_V0)
        if kind not in (DYNAMIC_V0, SIMPLE) or not 0 < rate < 1 or any(one is not None and one < 1 for one in (entries, most)):
            raise OptionError(f"no Bloom filter is {kind!r}, fpp {rate}, of {entries} and {most} entries; kinds: {DYNAMIC_V0}, {SIMPLE}")
        return cls(kind, rate, entries, most or cls().max_entries)


_SHAPE_OPTIONS = (_KIND, _RATE, _ENTRIES, _MOST)


@dataclass(frozen=True, slots=True)
class ExpressionIndex:
    """An index on `expression` over the column `source`. `shape` is that of its Bloom filters; None: it has statistics.

    `by_value_type`: bounds have the form of version V2.
    """

    partition: str
    source: pa.Field
    expression: Expression
    shape: FilterShape | None
    by_value_type: bool

    @classmethod
    def of(cls, data: TableState, definition: IndexDefinition) -> ExpressionIndex:
        """The index that a definition means for a table.

        Raises `OptionError` for a column, function or option that does not fit, and `UnavailableError` for an expression that is not
        computed here.
        """
        source = _source(data, definition)
        if definition.index_type not in EXPRESSION_TYPES:
            kinds = " or ".join(EXPRESSION_TYPES)
            raise OptionError(f"{definition.name} has the type {definition.index_type!r}; expression indexes have {kinds}")
        has_filters = definition.index_type == BLOOM_FILTERS
        own = {name: value for name, value in definition.options.items() if not has_filters or name not in _SHAPE_OPTIONS}
        expression = expression_of(definition.function, own, source.type)
        if has_filters and not (expression.is_exact and _has_plain_text(expression.kind)):
            raise UnavailableError(
                f"{definition.function} of {source.type} depends on the time zone of the session, or is no text or whole number, so it has"
                f" no Bloom filter; make the index one of {COLUMN_STATS}"
            )
        if definition.function == IDENTITY and not has_filters:
            raise OptionError(f"statistics of a whole column are those of {COLUMN_STATS}: name {source.name} there")
        shape = FilterShape.of(definition.options) if has_filters else None
        return cls(definition.name, source, expression, shape, definition.version == _BY_VALUE_TYPE)


def _source(data: TableState, definition: IndexDefinition) -> pa.Field:
    schema, fields = table_schema(data), definition.source_fields
    if len(fields) != 1:
        raise OptionError(f"an expression index is about one column; {definition.name} of {data.config.name} is given {len(fields)}")
    if fields[0] not in schema.names:
        raise OptionError(f"{data.config.name} has no top-level column {fields[0]!r}; it has {', '.join(schema.names)}", column=fields[0])
    return schema.field(fields[0])


def _has_plain_text(kind: pa.DataType) -> bool:
    return bool(pat.is_string(kind) or pat.is_integer(kind))


def check_has_expressions(config: TableConfig, name: str) -> None:
    """Raise `OptionError` in version 6, whose metadata table has no indexes on expressions."""
    if not metadata_form(config.version).has_partition_stats:
        raise OptionError(f"{name}: expression indexes are for table versions 8 and 9; {config.name} has version {int(config.version)}")


def check_expression(data: TableState, name: str, definition: IndexDefinition | None) -> None:
    """Raises as `ExpressionIndex.of`, naming the index; `OptionError` without a definition, and in version 6."""
    config = data.config
    check_has_expressions(config, name)
    if definition is None:
        raise OptionError(f"{config.name} has no definition of {name}; create the index with its column and its expression")
    try:
        ExpressionIndex.of(data, definition)
    except UnavailableError as error:
        raise UnavailableError(
            f"{name} of {config.name}: {error.message}; choose another expression, or let Hudi build the index (Spark, CREATE INDEX),"
            " which this engine then drops with its next write",
            table=config.name,
        ) from error


def is_computed(data: TableState, definition: IndexDefinition | None) -> bool:
    """True if the engine builds and keeps up the index of this definition."""
    try:
        check_expression(data, "", definition)
    except (OptionError, UnavailableError):
        return False
    return True


def kept_expressions(data: TableState, partitions: Iterable[str]) -> dict[str, ExpressionIndex]:
    """Those of the partitions that are expression indexes which the engine keeps up. Raises `FormatError` for bad definitions."""
    named = [name for name in partitions if name.startswith(EXPRESSION_INDEX)]
    known = stored_definitions(data) if named else {}
    return {name: ExpressionIndex.of(data, known[name]) for name in named if is_computed(data, known.get(name))}
