"""Definitions of expression indexes, from what a user asks for (Hudi `HoodieIndexUtils.getSecondaryOrExpressionIndexDefinition`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow.types as pat

from lakehouse_engine.errors import OptionError, UnavailableError
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.format.metadata_table.definitions import IndexDefinition, expression_index_definition
from lakehouse_engine.format.metadata_table.forms import metadata_form
from lakehouse_engine.metadata_table.definitions import stored_definitions
from lakehouse_engine.metadata_table.expressions.functions import EXPRESSION_OPTION, IDENTITY, expression_of
from lakehouse_engine.metadata_table.expressions.index import EXPRESSION_TYPES, check_has_expressions
from lakehouse_engine.metadata_table.partitions import BLOOM_FILTERS, COLUMN_STATS, EXPRESSION_INDEX
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.view.table_state import TableState

EXPRESSION = "expr_index"


def is_expression(name: str, kind: str) -> bool:
    """True if an index of this name and type is one on an expression: `expr_index`, or statistics or filters under another name."""
    return kind == EXPRESSION or (kind in EXPRESSION_TYPES and name != kind)


def expression_definition(
    data: TableState, name: str, kind: str, columns: Sequence[str] | None, expression: str | None, options: Mapping[str, str] | None
) -> IndexDefinition:
    """Definition of the index `name`. The function is `expression`, or the option `expr`; a Bloom filter may be of the column itself.

    Raises `OptionError` in version 6, if there are two functions, or none, for more or fewer columns than one, and for a column that has
    an expression index; and `UnavailableError` for an index by which queries or writers of Hudi fail.
    """
    given = {key: str(value) for key, value in (options or {}).items()}
    named = given.pop(EXPRESSION_OPTION, None)
    if named is not None and expression not in (None, named):
        raise OptionError(f"{name} of {data.config.name} is given two expressions, {expression!r} and {named!r}", option=EXPRESSION_OPTION)
    index_type = COLUMN_STATS if kind == EXPRESSION else kind
    function = expression or named or (IDENTITY if index_type != COLUMN_STATS else None)
    if function is None:
        raise OptionError(
            f"{name} of {data.config.name} is an index on an expression, and none is given: name a function, such as lower, as `expression`"
            f" or as the option `expr`. For statistics of whole columns, name the index {COLUMN_STATS}"
        )
    if columns is None or len(columns) != 1:
        raise OptionError(f"an expression index is about one column; {name} of {data.config.name} is given {len(columns or ())}")
    check_has_expressions(data.config, name)
    version = metadata_form(data.config.version).statistics_version
    made = expression_index_definition(f"{EXPRESSION_INDEX}{name}", index_type, function, columns[0], given, version)
    _check_useful(data, name, made)
    return made


def _check_useful(data: TableState, name: str, made: IndexDefinition) -> None:
    """Refuse what makes Hudi 1.2 wrong, or fail: it takes any index on a column for each condition on that, in version 8 reads bounds as
    days or moments if the column has such (`ExpressionIndexSupport`), and makes no filters of logs (`createBloomFilterMetadataRecord`).
    """
    (column,) = made.source_fields
    for other, defined in stored_definitions(data).items():
        if other.startswith(EXPRESSION_INDEX) and other != made.name and defined.source_fields == (column,):
            raise OptionError(
                f"{data.config.name} has an expression index on {column} already, {other.removeprefix(EXPRESSION_INDEX)}, and with two Hudi"
                " takes the wrong one, so that its queries lose rows; drop that one first",
                column=column,
            )
    if made.index_type == BLOOM_FILTERS and data.config.table_type is TableType.MERGE_ON_READ:
        raise UnavailableError(
            f"{name} of {data.config.name}: writers of Hudi fail in a merge-on-read table with such an index, as they log; make it one of"
            f" {COLUMN_STATS}",
            table=data.config.name,
        )
    kind = next((field.type for field in table_schema(data) if field.name == column), None)
    is_of_time = kind is not None and (pat.is_date(kind) or pat.is_timestamp(kind))
    as_of_column = made.version == "V1" and made.index_type == COLUMN_STATS
    if is_of_time and as_of_column and expression_of(made.function, made.options, kind).kind != kind:
        raise UnavailableError(
            f"{name} of {data.config.name}: in table version 8 queries of Hudi fail by an index on {made.function} of {kind};"
            " upgrade the table to version 9",
            table=data.config.name,
        )
