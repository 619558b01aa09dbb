"""SQL of dbt-tests-adapter, which is written for Postgres, in Spark's dialect."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import pytest

_CHANGES = (
    (re.compile(r"timestamp without time zone", re.IGNORECASE), "timestamp"),
    (re.compile(r"\btext\b(?!')", re.IGNORECASE), "string"),
    (re.compile(r"varchar\(\d+\)", re.IGNORECASE), "string"),
    (re.compile(r"\{database\}\."), ""),
    (re.compile(r"\{\{ *target\.database *\}\}\."), ""),
)
_SQL = re.compile(r"\b(select|insert|update|delete|create|alter)\b", re.IGNORECASE)


def spark_text(sql: str) -> str:
    """Types, quotes and names of three parts changed; the rest is as it was. Jinja keeps its quotes."""
    for pattern, replacement in _CHANGES:
        sql = pattern.sub(replacement, sql)
    return sql if "{{" in sql or "{%" in sql else sql.replace('"', "`")


def _translated(value: Any) -> Any:
    if isinstance(value, str) and _SQL.search(value) and ":\n" not in value:
        return spark_text(value)
    return [_translated(item) for item in value] if isinstance(value, list) else value


def translated(*modules: ModuleType) -> Any:
    """A class fixture that puts Spark's dialect into the SQL constants of `modules` while the class runs."""

    @pytest.fixture(scope="class", autouse=True)
    def spark_dialect(self: Any) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            for module in modules:
                for name, value in list(vars(module).items()):
                    if not name.startswith("__") and isinstance(value, (str, list)):
                        patch.setattr(module, name, _translated(value))
            yield

    return spark_dialect
