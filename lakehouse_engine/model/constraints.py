"""What is said of a table's columns beyond their types: NOT NULL, VARCHAR(n), and DEFAULT, which SQL statements alone look at.

They are properties of this engine (`lakehouse.*`), not of the table's schema: readers of Hudi tables need every column nullable. Other
writers of the table do not know them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lakehouse_engine.errors import PropertiesError

NOT_NULL_KEY = "lakehouse.columns.not.null"
MAX_LENGTH_KEY = "lakehouse.columns.max.length"
"""`column,column` and `column:length,column:length`: names in Avro's alphabet, which has neither sign."""
DEFAULTS_KEY = "lakehouse.columns.defaults"
"""A JSON object: of columns, the text of an expression of Spark SQL."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """`not_null` are columns that hold no null; `max_length` has the most characters that a text column holds; `defaults` the expressions
    whose values statements give to columns that are left out.
    """

    not_null: tuple[str, ...] = ()
    max_length: tuple[tuple[str, int], ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        """Whether rows have something to keep; defaults ask nothing of them."""
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
        return cls(tuple(_items(properties, NOT_NULL_KEY)), tuple(lengths), _defaults(properties))

    def properties(self) -> dict[str, str | None]:
        """The changes of a table's properties that keep these, and no others."""
        lengths = ",".join(f"{name}:{length}" for name, length in self.max_length)
        defaults = json.dumps(dict(self.defaults), ensure_ascii=False) if self.defaults else None
        return {NOT_NULL_KEY: ",".join(self.not_null) or None, MAX_LENGTH_KEY: lengths or None, DEFAULTS_KEY: defaults}

    def is_not_null(self, column: str) -> bool:
        return column.lower() in {name.lower() for name in self.not_null}

    def length_of(self, column: str) -> int | None:
        return next((length for name, length in self.max_length if name.lower() == column.lower()), None)

    def default_of(self, column: str) -> str | None:
        return next((text for name, text in self.defaults if name.lower() == column.lower()), None)

    def with_not_null(self, column: str, wanted: bool) -> Constraints:
        others = tuple(name for name in self.not_null if name.lower() != column.lower())
        return replace(self, not_null=(*others, column) if wanted else others)

    def with_length(self, column: str, length: int | None) -> Constraints:
        others = tuple(pair for pair in self.max_length if pair[0].lower() != column.lower())
        return replace(self, max_length=others if length is None else (*others, (column, length)))

    def with_default(self, column: str, text: str | None) -> Constraints:
        others = tuple(pair for pair in self.defaults if pair[0].lower() != column.lower())
        return replace(self, defaults=others if text is None else (*others, (column, text)))

    def without(self, column: str) -> Constraints:
        return self.with_not_null(column, False).with_length(column, None).with_default(column, None)


NO_CONSTRAINTS = Constraints()


def _items(properties: Mapping[str, str], key: str) -> list[str]:
    return [item.strip() for item in properties.get(key, "").split(",") if item.strip()]


def _defaults(properties: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    text = properties.get(DEFAULTS_KEY)
    if not text:
        return ()
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        raise PropertiesError(f"{DEFAULTS_KEY}={text!r} is not a JSON object of columns and texts")
    return tuple(found.items())
