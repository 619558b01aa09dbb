"""Which rows a query asks for: an Arrow expression, brought to the table's columns, and where no row can be that it is true of.

What is known of a partition, or of a part of a file, is a guarantee: an expression that is true of every row in it. Arrow's own
simplification says whether the filter can be true beside it, as it does for the fragments of its datasets. A guarantee that is not
understood counts for nothing, so the worst that can happen is that more is read.
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
"""How the text of an expression has a cast, which Arrow gives no other way to see. That it may be in a text only costs a reading."""

_REFUSED = (pa.ArrowException, TypeError, ValueError, KeyError)


@dataclass(frozen=True, slots=True, eq=False)
class Guaranteed:
    """Sets of rows, with what is guaranteed of all rows of each: prepared once, to be asked often."""

    guarantees: Sequence[pc.Expression]
    _dataset: pds.Dataset

    @classmethod
    def of(cls, guarantees: Sequence[pc.Expression], schema: pa.Schema) -> Guaranteed:
        form, nowhere = pds.ParquetFileFormat(), fs.LocalFileSystem()
        # Fragments are opened when they are scanned, and these never are.
        fragments = [form.make_fragment(str(number), nowhere, partition_expression=one) for number, one in enumerate(guarantees)]
        return cls(guarantees, pds.FileSystemDataset(fragments, schema, form, nowhere))

    def satisfiable(self, expression: pc.Expression) -> list[bool]:
        """Of each set whether the expression can be true of a row. Raises `pa.ArrowException` where that cannot be computed of one."""
        kept = {int(fragment.path) for fragment in self._dataset.get_fragments(filter=expression)}
        return [number in kept for number in range(len(self.guarantees))]


@dataclass(frozen=True, slots=True, eq=False)
class RowFilter:
    """`schema` holds the columns that `expression` may name: the table's, and the meta columns as text. `columns` are those it needs.

    With `rounds`, the expression may make other numbers of those in a column: Arrow compares what it makes of them with bounds of
    the column as if they were the same.
    """

    expression: pc.Expression
    schema: pa.Schema
    columns: tuple[str, ...]
    rounds: bool = False

    @classmethod
    def of(cls, expression: pc.Expression, schema: pa.Schema) -> RowFilter:
        """`schema` holds the user columns. Names in an expression are spelled as in the table.

        Raises `OptionError` for an expression that names a column which the table does not have, or a column by its number, that compares
        what cannot be compared, or is not true or false.
        """
        known = pa.schema([*schema, *(pa.field(name, pa.string()) for name in META_COLUMNS)])
        try:
            # What cannot be pickled cannot be sent to tasks; columns by number are among it, which would be others in other tables.
            pickle.dumps(expression)
            known.empty_table().filter(expression)
        except _REFUSED as error:
            reason = str(error).partition("\n")[0]
            raise OptionError(
                f"filters={_text(expression)} does not fit the table: {reason}; its columns are {', '.join(schema.names)}"
            ) from error
        # A table without columns would lose count of its rows.
        return cls(expression, known, _needed(expression, known) or tuple(known.names[:1]), _CAST in _text(expression))

    def rows(self, table: pa.Table) -> pa.Table:
        """The rows for which the expression is true, in their order. Raises `OptionError` where it cannot be computed."""
        try:
            return table.filter(self.expression)
        except _REFUSED as error:
            raise OptionError(f"filters={_text(self.expression)} cannot be computed for the rows of the table: {error}") from error

    def may_hold(self, guarantees: Sequence[pc.Expression]) -> list[bool]:
        """Of each set of rows whether the expression can be true of one, by what is guaranteed of all of them."""
        return self.may_hold_in(Guaranteed.of(guarantees, self.schema))

    def may_hold_in(self, sets: Guaranteed) -> list[bool]:
        """As `may_hold`, of sets that were made of this schema's columns."""
        try:
            return sets.satisfiable(self.expression)
        except pa.ArrowException:
            # Of one of them it cannot be computed, as it divides by a known nought: reading the rows says so, if there are any.
            return [self._may_hold_alone(one) for one in sets.guarantees]

    def _may_hold_alone(self, guarantee: pc.Expression) -> bool:
        try:
            return Guaranteed.of([guarantee], self.schema).satisfiable(self.expression)[0]
        except pa.ArrowException:
            return True


def _text(expression: pc.Expression) -> str:
    """As Arrow writes it, or only that it may have a cast: Arrow cuts long values, also in the middle of a letter, so that Python does not
    read them.
    """
    try:
        return str(expression)
    except UnicodeDecodeError:
        return f"{_CAST}...)"


def _needed(expression: pc.Expression, schema: pa.Schema) -> tuple[str, ...]:
    """The columns that the expression names: those without which it does not bind. Arrow does not list them."""
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
