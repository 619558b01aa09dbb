"""A query's row filter: an Arrow expression in the table's columns, and a test for which parts of the table can hold matching rows.

A guarantee is an expression that is true for every row of a partition, or of a part of a file. Arrow's own simplification decides whether
the filter can be true given the guarantee, as for the fragments of its datasets. A guarantee that it does not understand is ignored, so at
worst more is read.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds
from pyarrow import fs

from lakehouse_engine.errors import OptionError
from lakehouse_engine.model.keys import META_COLUMNS

_CAST = "cast("
"""Marks a cast in the text of an expression, the only place where Arrow shows it. A false match in a text only costs a read."""

_REFUSED = (pa.ArrowException, TypeError, ValueError, KeyError)


@dataclass(frozen=True, slots=True, eq=False)
class Guaranteed:
    """Sets of rows with their guarantees: prepared once, for many checks."""

    guarantees: Sequence[pc.Expression]
    _dataset: pds.Dataset

    @classmethod
    def of(cls, guarantees: Sequence[pc.Expression], schema: pa.Schema) -> Guaranteed:
        form, nowhere = pds.ParquetFileFormat(), fs.LocalFileSystem()
        # A fragment is opened when it is scanned, and these are never scanned.
        fragments = [form.make_fragment(str(number), nowhere, partition_expression=one) for number, one in enumerate(guarantees)]
        return cls(guarantees, pds.FileSystemDataset(fragments, schema, form, nowhere))

    def satisfiable(self, expression: pc.Expression) -> list[bool]:
        """For each set, True if the expression can be true for one of its rows. Raises `pa.ArrowException` if that cannot be computed for a
        set.
        """
        kept = {int(fragment.path) for fragment in self._dataset.get_fragments(filter=expression)}
        return [number in kept for number in range(len(self.guarantees))]


@dataclass(frozen=True, slots=True, eq=False)
class RowFilter:
    """A filter. `schema` holds the columns that `expression` may name: the table's, and the meta columns as text; `columns` are those it
    needs.

    With `rounds`, the expression may change a column's numbers, and Arrow would compare the changed numbers with the column's bounds.
    """

    expression: pc.Expression
    schema: pa.Schema
    columns: tuple[str, ...]
    rounds: bool = False

    @classmethod
    def of(cls, expression: pc.Expression, schema: pa.Schema) -> RowFilter:
        """Filter for `schema`, which holds the user columns. Names in the expression are spelled as in the table.

        Raises `OptionError` for an expression that names a column that the table lacks, refers to a column by its number, compares what
        cannot be compared, or is not a boolean.
        """
        known = pa.schema([*schema, *(pa.field(name, pa.string()) for name in META_COLUMNS)])
        try:
            # Tasks need a picklable expression. Columns by number, which would be other columns in other tables, do not pickle.
            pickle.dumps(expression)
            known.empty_table().filter(expression)
        except _REFUSED as error:
            reason = str(error).partition("\n")[0]
            raise OptionError(
                f"filters={_text(expression)} does not fit the table: {reason}; its columns are {', '.join(schema.names)}"
            ) from error
        # A table without columns would lose its row count.
        return cls(expression, known, _needed(expression, known) or tuple(known.names[:1]), _CAST in _text(expression))

    def rows(self, table: pa.Table) -> pa.Table:
        """Rows for which the expression is true, in their order. Raises `OptionError` if it cannot be computed."""
        try:
            return table.filter(self.expression)
        except _REFUSED as error:
            raise OptionError(f"filters={_text(self.expression)} cannot be computed for the rows of the table: {error}") from error

    def may_hold(self, guarantees: Sequence[pc.Expression]) -> list[bool]:
        """For each set of rows, True if the expression can be true for one, given the guarantee for all of them."""
        return self.may_hold_in(Guaranteed.of(guarantees, self.schema))

    def may_hold_in(self, sets: Guaranteed) -> list[bool]:
        """As `may_hold`, for sets built with this schema."""
        try:
            return sets.satisfiable(self.expression)
        except pa.ArrowException:
            # For one of them it cannot be computed, e.g. division by a known zero; reading its rows, if there are any, raises the error.
            return [self._may_hold_alone(one) for one in sets.guarantees]

    def _may_hold_alone(self, guarantee: pc.Expression) -> bool:
        try:
            return Guaranteed.of([guarantee], self.schema).satisfiable(self.expression)[0]
        except pa.ArrowException:
            return True


def _text(expression: pc.Expression) -> str:
    """Arrow's text of the expression; a placeholder with a cast if Python cannot decode it, because Arrow cuts long values even inside a
    character.
    """
    try:
        return str(expression)
    except UnicodeDecodeError:
        return f"{_CAST}...)"


def _needed(expression: pc.Expression, schema: pa.Schema) -> tuple[str, ...]:
    """Columns that the expression names, found as those without which it does not bind, because Arrow does not list them."""
    left, needed, pending = list(schema.names), set(), [list(schema.names)]
    while pending:
        group = pending.pop()
        rest = [name for name in left if name not in group]
        if _binds(expression, pa.schema([schema.field(name) for name in rest])):
            left = rest
        elif len(group) == 1:
            needed.add(group[0])
        else:
            pending += [group[: len(group) // 2], group[len(group) // 2 :]]
    return tuple(name for name in schema.names if name in needed)


def _binds(expression: pc.Expression, schema: pa.Schema) -> bool:
    try:
        schema.empty_table().filter(expression)
    except pa.ArrowException:
        return False
    return True
