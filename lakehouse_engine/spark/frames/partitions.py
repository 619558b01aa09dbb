"""Decides whether Spark may infer partition columns from directory names, as for its own tables, and skip directories by them.

Spark reads `column=value` directories, decodes every `%XX`, and takes the default partition for null. So paths must be made that way, from
columns whose text it casts back to the value in the files. Otherwise all files are read, without skipping.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.types as pat

from lakehouse_engine.record.keys.partition_values import PathRules
from lakehouse_engine.storage.paths import parent_of

_PATTERN = re.compile(r"[{}\[\]*?\\]")
_PASSED_OVER = "._COPYING_"
"""Endings of file and directory names that Spark skips in listings."""
_PLAIN_SCALE = 6
"""Up to this scale decimals are written without an exponent (`record.text`)."""


def as_path(uri: str) -> str:
    """A file's address for Spark, which treats paths as patterns."""
    return _PATTERN.sub(r"\\\g<0>", uri)


def tells_values(rules: PathRules | None, files: Sequence[str]) -> bool:
    """True if Spark infers from all files' paths (relative to the table) the values that their rows hold."""
    if rules is None or not rules.hive_style or rules.fields != tuple(column.name for column in rules.columns):
        return False
    # A text column's default partition holds nulls, empty texts or both: its value is unknown, so None here.
    return all(_tells(rules, path) for path in {parent_of(file) for file in files})


@lru_cache(maxsize=100_000)
def _tells(rules: PathRules, path: str) -> bool:
    values = rules.values(path)
    if values is None or path.count("/") != len(values) - 1 or any(value is None or _is_fraction(value) for value in values):
        return False
    if any(name.endswith(_PASSED_OVER) for name in path.split("/")):
        return False
    return rules.url_encode or "%" not in path


def _is_fraction(value: pa.Scalar) -> bool:
    """A decimal may have an exponent, for which Spark's reading was not verified."""
    return bool(pat.is_decimal(value.type) and value.type.scale > _PLAIN_SCALE)
