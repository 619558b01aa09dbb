"""What a table's columns may hold beyond their types: NOT NULL and VARCHAR(n).

They are properties of this engine (`lakehouse.*`), not of the table's schema: readers of Hudi tables need every column nullable. Other
writers of the table do not know them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lakehouse_engine.errors import PropertiesError

NOT_NULL_KEY = "lakehouse.columns.not.null"
MAX_LENGTH_KEY = "lakehouse.columns.max.length"
"""`column,column` and `column:length,column:length`: names in Avro's alphabet, which has neither sign."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """`not_null` are columns that hold no null; `max_length` has the most characters that a text column holds."""

    not_null: tuple[str, ...] = ()
    max_length: tuple[tuple[str, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.not_null or self.max_length)

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Constraints:
        """Those that a table's properties keep. Raises `PropertiesError` naming the key where they do not parse."""
        lengths = []
        for item in _items(properties, MAX_LENGTH_KEY):
            name, _, digits = item.partition(":")
            if not digits.isdigit():
                raise PropertiesError(f"{MAX_LENGTH_KEY}={properties[MAX_LENGTH_KEY]!r}: {item!r} is not of the form column:length")
            lengths.append((name, int(digits)))
        return cls(tuple(_items(properties, NOT_NULL_KEY)), tuple(lengths))

    def properties(self) -> dict[str, str | None]:
        """The changes of a table's properties that keep these, and no others."""
        lengths = ",".join(f"{name}:{length}" for name, length in self.max_length)
        return {NOT_NULL_KEY: ",".join(self.not_null) or None, MAX_LENGTH_KEY: lengths or None}

    def is_not_null(self, column: str) -> bool:
        return column.lower() in {name.lower() for name in self.not_null}

    def length_of(self, column: str) -> int | None:
        return next((length for name, length in self.max_length if name.lower() == column.lower()), None)

    def with_not_null(self, column: str, wanted: bool) -> Constraints:
        others = tuple(name for name in self.not_null if name.lower() != column.lower())
        return replace(self, not_null=(*others, column) if wanted else others)

    def with_length(self, column: str, length: int | None) -> Constraints:
        others = tuple(pair for pair in self.max_length if pair[0].lower() != column.lower())
        return replace(self, max_length=others if length is None else (*others, (column, length)))

    def without(self, column: str) -> Constraints:
        return self.with_not_null(column, False).with_length(column, None)


NO_CONSTRAINTS = Constraints()


def _items(properties: Mapping[str, str], key: str) -> list[str]:
    return [item.strip() for item in properties.get(key, "").split(",") if item.strip()]
