"""Columns with members (structs, also in lists and maps) whose types differ between table and batch; members are matched by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.types as pat
from pyspark.sql import DataFrame

from lakehouse_engine.record.nested import children
from lakehouse_engine.record.spark_types import spark_name
from lakehouse_engine.spark.schema import to_arrow_type
from lakehouse_engine.sql.grammar.casts import storable
from lakehouse_engine.statements.nested import conformed


@dataclass(frozen=True)
class Members:
    """One such column: its type in the table, in the batch, and the wanted one."""

    stored: pa.DataType
    given: pa.DataType
    wanted: pa.DataType

    @cached_property
    def grows(self) -> bool:
        """True if the batch has members that the table lacks."""
        return bool(_parts(self.wanted).keys() - _parts(self.stored).keys())

    @cached_property
    def changes(self) -> bool:
        """True if stored members are dropped or change type."""
        return not _parts(self.stored).items() <= _parts(self.wanted).items()

    @cached_property
    def differs(self) -> bool:
        """True if the batch's members differ from the table's in name or type, in any order."""
        return _parts(self.stored) != _parts(self.given)

    def of_stored(self, value: str) -> str:
        """Expression of the stored column in the wanted type."""
        return self._of(value, self.stored)

    def of_given(self, value: str) -> str:
        """Expression of the batch's column in the wanted type."""
        return self._of(value, self.given)

    def _of(self, value: str, kind: pa.DataType) -> str:
        return conformed(value, kind, self.wanted)


def members(table: pa.Schema, frame: DataFrame, *, follows: bool) -> dict[str, Members]:
    """Such columns of a table and a DataFrame, by the table's names. `follows`: they get the batch's members and types; otherwise they keep
    theirs and gain new members.
    """
    given = {item.name.lower(): item for item in frame.schema.fields}
    found = {}
    for column in table:
        item = given.get(column.name.lower())
        if item is None or not pat.is_nested(column.type) or item.dataType.simpleString() == spark_name(column.type):
            continue
        kind = to_arrow_type(item.dataType, item.name)
        if pat.is_nested(kind):
            found[column.name] = Members(column.type, kind, _met(column.type, kind, follows))
    return found


def _met(stored: pa.DataType, given: pa.DataType, follows: bool) -> pa.DataType:
    """In stored order, new members last."""
    if pat.is_struct(stored) and pat.is_struct(given):
        return _met_structs(stored, given, follows)
    if pat.is_list(stored) and pat.is_list(given):
        return pa.list_(stored.value_field.with_type(_met(stored.value_type, given.value_type, follows)))
    if pat.is_map(stored) and pat.is_map(given) and stored.key_type == given.key_type:
        return pa.map_(stored.key_type, stored.item_field.with_type(_met(stored.item_type, given.item_type, follows)))
    keeps = not follows and storable(spark_name(given), spark_name(stored))
    return stored if keeps or pat.is_null(given) else given


def _met_structs(stored: pa.DataType, given: pa.DataType, follows: bool) -> pa.DataType:
    offered = {one.name.lower(): one for one in children(given)}
    known = children(stored)
    kept = []
    for one in known:
        other = offered.pop(one.name.lower(), None)
        if other is not None:
            kept.append(one.with_type(_met(one.type, other.type, follows)))
        elif not follows:
            kept.append(one)
    return pa.struct([*kept, *(one.with_nullable(True) for one in offered.values())])


def _parts(kind: pa.DataType) -> Mapping[str, str]:
    """Parts of a type by path: names of simple types, kinds of others."""
    return dict(_walk(kind, ""))


def _walk(kind: pa.DataType, path: str) -> Iterator[tuple[str, str]]:
    below = children(kind)
    key = f" of {spark_name(kind.key_type)}" if pat.is_map(kind) else ""
    yield path, f"{kind.id}{key}" if below else spark_name(kind)
    for one in below:
        yield from _walk(one.type, f"{path}\0{one.name.lower()}")
