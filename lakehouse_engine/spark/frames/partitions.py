"""Whether Spark may take partition columns from the names of directories, as it does of its own tables, and skip directories by them.

It reads `column=value` directories, takes every `%XX` for an escaped character, and the default partition for null. So the paths must be
made in that way, of columns whose text it casts back to the very value that is in the files; of anything else the files are read as they
are, and nothing is skipped.
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
"""The end of names, also of directories, that Spark passes over when it lists a folder."""
_PLAIN_SCALE = 6
"""Up to this scale decimals are written without an exponent (`record.text`)."""


def as_path(uri: str) -> str:
    """One file's address for Spark, which takes paths for patterns."""
    return _PATTERN.sub(r"\\\g<0>", uri)


def tells_values(rules: PathRules | None, files: Sequence[str]) -> bool:
    """Whether Spark makes of the paths of all files (relative to the table) the values that the rows in them have."""
    if rules is None or not rules.hive_style or rules.fields != tuple(column.name for column in rules.columns):
        return False
    # A text column's default partition holds nulls, or empty texts, or both: its values are unknown, and so None here.
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
    """A decimal may be written with an exponent, in which nobody looked at what Spark makes of it."""
    return bool(pat.is_decimal(value.type) and value.type.scale > _PLAIN_SCALE)
