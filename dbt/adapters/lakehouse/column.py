"""A column, with the types of Spark SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dbt.adapters.base import Column
from dbt.adapters.spark import SparkColumn

_NUMBERS = frozenset({"tinyint", "smallint", "int", "integer", "bigint", "long", "short", "byte"})


@dataclass
class LakehouseColumn(SparkColumn):
    """Column with Spark's type names."""

    TYPE_LABELS: ClassVar[dict[str, str]] = {"LONG": "BIGINT", "INTEGER": "INT", "TEXT": "STRING"}

    @property
    def data_type(self) -> str:
        """The type as Spark names it: text without a length is a string."""
        return "string" if self.dtype.lower() in ("text", "varchar", "character varying") else self.dtype

    def is_string(self) -> bool:
        return self.dtype.lower().split("(")[0] in {"string", "varchar", "char", "text"}

    def is_integer(self) -> bool:
        return self.dtype.lower() in _NUMBERS

    def is_float(self) -> bool:
        return self.dtype.lower() in {"float", "double", "real"}

    def is_numeric(self) -> bool:
        return self.dtype.lower().startswith(("decimal", "numeric"))

    def string_size(self) -> int:
        """Strings have no length in Spark; dbt asks before it widens a column, which never is needed."""
        return 0

    def can_expand_to(self, other_column: Column) -> bool:
        return False
