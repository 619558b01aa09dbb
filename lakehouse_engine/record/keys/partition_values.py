"""What a partition path says of the values of the partition columns: the inverse of `keygen`, where there is one."""

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
    """How a table's paths are made of columns: `columns` are those of the path, in order, as the table spells and types them."""

    columns: tuple[pa.Field, ...]
    hive_style: bool
    url_encode: bool
    fields: tuple[str, ...]

    @classmethod
    def of(cls, config: TableConfig, schema: pa.Schema) -> PathRules | None:
        """None for a table without partitions, and where paths are not, or may not be, the values of columns of `schema` as text.

        They are not where a key generator makes dates of them, or is one of the user's own, and may not be where the table names none.
        """
        spelled = {field.name.lower(): field for field in schema}
        fields = config.partition_fields
        if not fields or KEY_GENERATORS.get(config.key_generator or "") not in _PLAIN or any(one.lower() not in spelled for one in fields):
            return None
        columns = tuple(spelled[one.lower()] for one in fields)
        return cls(columns, config.hive_style_partitioning, config.url_encode_partitioning, fields)

    def tell_all(self, columns: Iterable[str]) -> bool:
        """Whether all of these columns (as the table spells them) are among those of the path."""
        return set(columns) <= {column.name for column in self.columns}

    def values(self, path: str) -> list[pa.Scalar | None] | None:
        """The value of each column in all rows of a partition, None where the path does not tell it.

        It tells neither null from the empty text, nor numbers that are not whole or decimal, moments and bytes. None for a path that is
        not made by these rules.
        """
        try:
            texts = decode_partition_path(path, self.fields, self.hive_style, self.url_encode)
        except PartitionValueError:
            return None
        if len(self.fields) > 1 and path.count("/") != len(self.fields) - 1:
            return None  # which of the values has the '/' cannot be told: one may look like the next directory
        return [_value(texts[name], column.type) for name, column in zip(self.fields, self.columns, strict=True)]


def _value(text: str | None, kind: pa.DataType) -> pa.Scalar | None:
    """The only value of the type that has the text; None where there may be others, or none."""
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
