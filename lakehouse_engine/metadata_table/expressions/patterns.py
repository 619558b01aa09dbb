"""Patterns of dates and times as Spark writes them (`DateTimeFormatter`), as far as each field has a fixed width."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

_FIELDS = ("yyyy", "MM", "dd", "HH", "mm", "ss")
"""Fields from the greatest to the least."""
_DAYS = frozenset(_FIELDS[:3])
_WIDTHS = {field: len(field) for field in _FIELDS}
_PARTS = re.compile(r"'(?P<quoted>[^']+)'|(?P<field>([A-Za-z])\3*)|(?P<literal>[-/:., _]+)")
_OF = {"yyyy": pc.year, "MM": pc.month, "dd": pc.day, "HH": pc.hour, "mm": pc.minute, "ss": pc.second}

Parts = Sequence[tuple[str, bool]]
"""Texts in order, each with whether it is a field."""


def parsed_pattern(pattern: str) -> Parts | None:
    """The parts of a pattern of the fields yyyy, MM, dd, HH, mm, ss, of quoted letters and of signs; None if it has others."""
    parts: list[tuple[str, bool]] = []
    at = 0
    for found in _PARTS.finditer(pattern):
        text = found["field"]
        if found.start() != at or (text is not None and text not in _FIELDS):
            return None
        parts.append((text, True) if text is not None else (found["quoted"] or found["literal"], False))
        at = found.end()
    return parts if at == len(pattern) and any(is_field for _, is_field in parts) else None


def orders_by_time(parts: Parts) -> bool:
    """True if later moments have greater texts: the fields go from the year down, without a gap."""
    fields = tuple(text for text, is_field in parts if is_field)
    return fields == _FIELDS[: len(fields)]


def is_of_days(parts: Parts) -> bool:
    """True if the text says nothing of the time of day."""
    return all(text in _DAYS for text, is_field in parts if is_field)


def formatted(parts: Parts, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The texts of days or moments without a zone, whose years have four digits."""
    texts = [_field(values, text) if is_field else pa.scalar(text, pa.string()) for text, is_field in parts]
    return pc.binary_join_element_wise(*texts, pa.scalar("", pa.string()))


def _field(values: pa.ChunkedArray, field: str) -> pa.ChunkedArray:
    return pc.utf8_lpad(_OF[field](values).cast(pa.string()), _WIDTHS[field], padding="0")
