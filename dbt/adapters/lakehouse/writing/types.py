"""Column types as a project writes them: for seeds, and text lengths."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.names import did_you_mean
from lakehouse_engine import api

if TYPE_CHECKING:
    import pyarrow as pa

_ALSO = {"text": "string", "bool": "boolean"}
"""Type names that seeds use on other adapters."""
_DECIMAL = re.compile(r"(?:decimal|numeric|dec)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")
_TEXT = re.compile(r"(?:varchar|character varying)\s*(?:\(\s*(\d+)\s*\))?")
_CHAR = re.compile(r"(?:char|character)\s*(?:\(\s*\d+\s*\))?")


def arrow_type(spark_name: str) -> pa.DataType:
    """Arrow type of a column type as a user writes it (`decimal(10, 2)`, `varchar(20)`). Raises `DbtConfigError`."""
    import pyarrow as pa

    name = _ALSO.get(_plain(spark_name), _plain(spark_name))
    if found := _DECIMAL.fullmatch(name):
        return pa.decimal128(int(found.group(1) or 10), int(found.group(2) or 0))
    if _TEXT.fullmatch(name):
        return pa.string()
    if _CHAR.fullmatch(name):
        raise DbtConfigError(f"The column type '{spark_name}' is not kept: its values would have to be filled up with blanks; use varchar")
    known = api.types.stored_types()
    if name not in known:
        raise DbtConfigError(f"The column type '{spark_name}' is not one that a seed can have{did_you_mean(name, [*known, *_ALSO])}")
    return known[name]


def is_text(spark_name: str) -> bool:
    """True if a column of this type holds text."""
    name = _plain(spark_name)
    return name in ("string", "text") or _TEXT.fullmatch(name) is not None


def text_length(spark_name: str) -> int | None:
    """Maximum length of a text column of this type; None for any length and for other types."""
    found = _TEXT.fullmatch(_plain(spark_name))
    return int(found.group(1)) if found and found.group(1) else None


def _plain(spark_name: str) -> str:
    """The type as written, ignoring case and blanks."""
    return " ".join(spark_name.lower().split())
