"""A procedure: its arguments, its action on a table, and the columns of its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakehouse_engine.sql.procedures.arguments import Argument, Refused, Signature
from lakehouse_engine.table_services import TableServices

Values = Mapping[str, Any]
Rows = Iterable[Sequence[Any]]
TEXT, LONG, FLAG = pa.string(), pa.int64(), pa.bool_()

PATH = Refused("path", "name the table with table => 'schema.table', or open its directory in Python or with the command line")
FILTER = Refused("filter", "filter the rows of the answer")


@dataclass(frozen=True, slots=True)
class Procedure:
    """`run` gets the table and the value of every argument, and returns rows in the order of `columns`."""

    signature: Signature
    columns: pa.Schema
    run: Callable[[TableServices, Values], Rows]

    def answer(self, table: TableServices, values: Values) -> pa.Table:
        """Run the procedure."""
        rows = [tuple(row) for row in self.run(table, values)]
        columns = zip(*rows, strict=True) if rows else ((),) * len(self.columns)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self.columns, strict=True)]
        return pa.Table.from_arrays(arrays, schema=self.columns)


def procedure(
    name: str,
    arguments: Sequence[Argument],
    columns: Mapping[str, pa.DataType],
    run: Callable[[TableServices, Values], Rows],
    *,
    refused: Sequence[Refused] = (PATH,),
) -> Procedure:
    """One entry of the registry."""
    schema = pa.schema([pa.field(column, kind) for column, kind in columns.items()])
    return Procedure(Signature(name, tuple(arguments), tuple(refused)), schema, run)
