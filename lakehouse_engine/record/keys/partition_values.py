"""Values of partition columns from a partition path: the inverse of `keygen`, where one exists."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation

import pyarrow as pa
import pyarrow.types as pat

from lakehouse_engine.errors import PartitionValueError
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.record.keys.keygen import KEY_GENERATORS
from lakehouse_engine.record.keys.partition_path import decode_partition_path

_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)", re.ASCII)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_PLAIN = ("SimpleKeyGenerator", "ComplexKeyGenerator")


@dataclass(frozen=True, slots=True)
class PathRules:
    """How a table makes paths from columns: `columns` are the path's, in order, with the table's spelling and types."""

    columns: tuple[pa.Field, ...]
    hive_style: bool
    url_encode: bool
    fields: tuple[str, ...]

    @classmethod
    def of(cls, config: TableConfig, schema: pa.Schema) -> PathRules | None:
        """Rules of a table; None without partitions, and if paths are not, or may not be, column values as text.

        They are not if a key generator formats dates, or is the user's own, and may not be if the table names none.
        """
        spelled = {field.name.lower(): field for field in schema}
        fields = config.partition_fields
        if not fields or KEY_GENERATORS.get(config.key_generator or "") not in _PLAIN or any(one.lower() not in spelled for one in fields):
            return None
        columns = tuple(spelled[one.lower()] for one in fields)
        return cls(columns, config.hive_style_partitioning, config.url_encode_partitioning, fields)

    def tell_all(self, columns: Iterable[str]) -> bool:
        """True if all these columns (in the table's spelling) are in the path."""
        return set(columns) <= {column.name for column in self.columns}

    def values(self, path: str) -> list[pa.Scalar | None] | None:
        """Value of each column in all rows of a partition; None if the path does not determine it.

        A path does not distinguish null from empty text, and does not determine floats, moments and bytes. None for a path not made by
        these rules.
        """
        try:
            texts = decode_partition_path(path, self.fields, self.hive_style, self.url_encode)
        except PartitionValueError:
            return None
        if len(self.fields) > 1 and path.count("/") != len(self.fields) - 1:
            return None  # The '/' may belong to any of the values: one may look like the next directory.
        return [_value(texts[name], column.type) for name, column in zip(self.fields, self.columns, strict=True)]


def _value(text: str | None, kind: pa.DataType) -> pa.Scalar | None:
    """The only value of the type with that text; None if there may be others, or none."""
    if text is None:
        return None if pat.is_string(kind) or pat.is_binary(kind) else pa.scalar(None, kind)
    try:
        if pat.is_string(kind):
            return pa.scalar(text, kind)
        if pat.is_integer(kind) and _WHOLE.fullmatch(text):
            return pa.scalar(int(text), kind)
        if pat.is_date32(kind) and _DAY.fullmatch(text):
            return pa.scalar(date.fromisoformat(text), kind)
        if pat.is_boolean(kind) and text in ("true", "false"):
            return pa.scalar(text == "true", kind)
        if pat.is_decimal(kind) and text.isascii():
            return pa.scalar(Decimal(text), kind)
    except (ValueError, InvalidOperation, OverflowError, pa.ArrowException):
        return None
    return None
