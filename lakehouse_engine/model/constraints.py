"""Constraints on columns beyond their types: NOT NULL, VARCHAR(n), GENERATED ALWAYS AS (expression), and DEFAULT, which only SQL statements
use.

They are properties of this engine (`lakehouse.*`), not of the table's schema: readers of Hudi tables need every column nullable. Other
writers of the table do not know them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from lakehouse_engine.errors import PropertiesError

NOT_NULL_KEY = "lakehouse.columns.not.null"
MAX_LENGTH_KEY = "lakehouse.columns.max.length"
"""`column,column` and `column:length,column:length`; column names use Avro's alphabet, which has neither sign."""
DEFAULTS_KEY = "lakehouse.columns.defaults"
"""A JSON object from column to Spark SQL expression."""
GENERATED_KEY = "lakehouse.columns.generated"
"""A JSON list of objects with the fields of `Generated`."""


@dataclass(frozen=True, slots=True)
class Generated:
    """A column computed by `expression`, which Spark evaluates on the row's `inputs`, other columns of the table.

    `zone` is the time zone for the computation; empty if it does not matter.
    """

    column: str
    expression: str
    inputs: tuple[str, ...] = ()
    zone: str = ""

    def uses(self, column: str) -> bool:
        return column.lower() in {name.lower() for name in self.inputs}


@dataclass(frozen=True, slots=True)
class Constraints:
    """Constraints of a table's columns.

    `not_null`: columns without nulls; `max_length`: the most characters in a text column; `defaults`: expressions whose values statements
    give to omitted columns; `generated`: columns computed from others.
    """

    not_null: tuple[str, ...] = ()
    max_length: tuple[tuple[str, int], ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()
    generated: tuple[Generated, ...] = ()

    def __bool__(self) -> bool:
        """True if keyed rows must be checked: defaults do not constrain them, and generated columns were computed before."""
        return bool(self.not_null or self.max_length)

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Constraints:
        """Constraints in a table's properties. Raises `PropertiesError` naming the key if they do not parse."""
        lengths = []
        for item in _items(properties, MAX_LENGTH_KEY):
            name, _, digits = item.partition(":")
            if not digits.isdigit():
                raise PropertiesError(f"{MAX_LENGTH_KEY}={properties[MAX_LENGTH_KEY]!r}: {item!r} is not of the form column:length")
            lengths.append((name, int(digits)))
        return cls(tuple(_items(properties, NOT_NULL_KEY)), tuple(lengths), _defaults(properties), _generated(properties))

    def properties(self) -> dict[str, str | None]:
        """Changes to a table's properties that store exactly these constraints."""
        lengths = ",".join(f"{name}:{length}" for name, length in self.max_length)
        defaults = json.dumps(dict(self.defaults), ensure_ascii=False) if self.defaults else None
        generated = json.dumps([asdict(one) for one in self.generated], ensure_ascii=False) if self.generated else None
        return {
            NOT_NULL_KEY: ",".join(self.not_null) or None,
            MAX_LENGTH_KEY: lengths or None,
            DEFAULTS_KEY: defaults,
            GENERATED_KEY: generated,
        }

    def is_not_null(self, column: str) -> bool:
        return column.lower() in {name.lower() for name in self.not_null}

    def length_of(self, column: str) -> int | None:
        return next((length for name, length in self.max_length if name.lower() == column.lower()), None)

    def default_of(self, column: str) -> str | None:
        return next((text for name, text in self.defaults if name.lower() == column.lower()), None)

    def generated_as(self, column: str) -> Generated | None:
        return next((one for one in self.generated if one.column.lower() == column.lower()), None)

    def generated_among(self, columns: Collection[str]) -> tuple[Generated, ...]:
        """Generated columns that the table still has: another writer may have dropped a column, but not its constraint."""
        known = {name.lower() for name in columns}
        return tuple(one for one in self.generated if one.column.lower() in known)

    def with_not_null(self, column: str, wanted: bool) -> Constraints:
        others = tuple(name for name in self.not_null if name.lower() != column.lower())
        return replace(self, not_null=(*others, column) if wanted else others)

    def with_length(self, column: str, length: int | None) -> Constraints:
        others = tuple(pair for pair in self.max_length if pair[0].lower() != column.lower())
        return replace(self, max_length=others if length is None else (*others, (column, length)))

    def with_default(self, column: str, text: str | None) -> Constraints:
        others = tuple(pair for pair in self.defaults if pair[0].lower() != column.lower())
        return replace(self, defaults=others if text is None else (*others, (column, text)))

    def with_generated(self, column: str, generated: Generated | None) -> Constraints:
        others = tuple(one for one in self.generated if one.column.lower() != column.lower())
        return replace(self, generated=others if generated is None else (*others, replace(generated, column=column)))

    def without(self, column: str) -> Constraints:
        return self.with_not_null(column, False).with_length(column, None).with_default(column, None).with_generated(column, None)


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


def _generated(properties: Mapping[str, str]) -> tuple[Generated, ...]:
    text = properties.get(GENERATED_KEY)
    if not text:
        return ()
    try:
        found = json.loads(text)
        if not isinstance(found, list):
            raise TypeError("it is no list")
        return tuple(_one_generated(**one) for one in found)
    except (ValueError, TypeError) as error:
        raise PropertiesError(f"{GENERATED_KEY}={text!r} is not a JSON list of generated columns: {error}") from error


def _one_generated(column: str, expression: str, inputs: Any = (), zone: str = "") -> Generated:
    if not all(isinstance(one, str) for one in (column, expression, zone, *inputs)):
        raise TypeError("names and expressions are texts")
    return Generated(column, expression, tuple(inputs), zone)
