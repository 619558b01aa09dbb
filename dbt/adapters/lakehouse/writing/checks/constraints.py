"""Constraints of a contract, checked before the write: a batch that violates one changes nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.columns import quoted
from dbt.adapters.lakehouse.writing.types import is_text, text_length


@dataclass(frozen=True)
class Check:
    """`violated` is a SQL condition that is true for a row that must not be written."""

    label: str
    violated: str


@dataclass(frozen=True)
class Unique:
    """No two rows of the table may have the same values in these columns."""

    label: str
    columns: tuple[str, ...]


def checks_of(model: Mapping[str, Any]) -> list[Check]:
    """Row constraints of a node's enforced contract: not_null, check, and lengths of `varchar(n)`.

    Raises `DbtConfigError` for a constraint of type custom: its text belongs to a statement that is never run.
    """
    if not _is_enforced(model):
        return []
    _refuse_custom(model)
    lengths = {name: length for name, length in lengths_of(model).items() if length is not None}
    found = [Check(f"varchar({most}) of column '{name}'", f"char_length({quoted(name)}) > {most}") for name, most in lengths.items()]
    for constraint, columns in _given(model):
        found += _checks(constraint, columns)
    return found


def _refuse_custom(model: Mapping[str, Any]) -> None:
    custom = next(((one, names) for one, names in _given(model) if _kind(one) == "custom"), None)
    if custom is None:
        return
    text, names = " ".join(str(custom[0].get("expression") or "").split()), ", ".join(custom[1])
    generated = re.fullmatch(r"generated\s+always\s+as\s*(\(.*\))", text, re.IGNORECASE)
    check = f"{quoted(custom[1][0])} <=> {generated[1]}" if generated and custom[1] else "<condition>"
    raise DbtConfigError(
        f"{model.get('name')}: the custom constraint ({text}) of {names or 'the model'} is not enforced: write"
        f" {{type: check, expression: '{check}'}}; a contract's columns are all in the model's SQL"
    )


def uniques_of(model: Mapping[str, Any]) -> list[Unique]:
    """Table constraints of a node's enforced contract: unique and primary_key, each set of columns once."""
    found: dict[frozenset[str], Unique] = {}
    for constraint, columns in _given(model):
        if _kind(constraint) in ("unique", "primary_key") and columns:
            label = f"{_title(constraint)} ({', '.join(columns)})"
            found.setdefault(frozenset(name.lower() for name in columns), Unique(label, tuple(columns)))
    return list(found.values())


def lengths_of(model: Mapping[str, Any]) -> dict[str, int | None]:
    """Maximum length of each text column of an enforced contract; None for any."""
    columns = (model.get("columns") or {}) if _is_enforced(model) else {}
    types = {name: str(column.get("data_type") or "") for name, column in columns.items()}
    return {name: text_length(kind) for name, kind in types.items() if is_text(kind)}


def _is_enforced(model: Mapping[str, Any]) -> bool:
    return bool((model.get("config", {}).get("contract") or {}).get("enforced"))


def _given(model: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Sequence[str]]]:
    """Constraints of an enforced contract, of columns and of the model, with their columns."""
    if not _is_enforced(model):
        return []
    of_columns = [
        (constraint, [name]) for name, column in (model.get("columns") or {}).items() for constraint in column.get("constraints") or []
    ]
    return [*of_columns, *((constraint, constraint.get("columns") or []) for constraint in model.get("constraints") or [])]


def _title(constraint: Mapping[str, Any]) -> str:
    return f"{_kind(constraint)} constraint" + (f" '{constraint['name']}'" if constraint.get("name") else "")


def _kind(constraint: Mapping[str, Any]) -> str:
    return str(getattr(constraint.get("type"), "value", constraint.get("type")))


def _checks(constraint: Mapping[str, Any], columns: Sequence[str]) -> list[Check]:
    kind = _kind(constraint)
    title = _title(constraint)
    if kind in ("not_null", "primary_key"):
        return [Check(f"{title} on column '{name}'", f"{quoted(name)} is null") for name in columns]
    if kind == "check" and constraint.get("expression"):
        expression = str(constraint["expression"])
        return [Check(f"{title} ({expression})", f"not ({expression})")]
    return []


def contract_text(model: Mapping[str, Any]) -> str:
    """What happens to the constraints of an enforced contract, as comments before the query that dbt stores as compiled."""
    # A line break in the text would end the comment.
    ours: list[Check | Unique] = [*checks_of(model), *uniques_of(model)]
    enforced = [" ".join(one.label.split()) for one in ours]
    others = [_foreign_key(constraint, names) for constraint, names in _given(model) if _kind(constraint) == "foreign_key"]
    lines = [f"-- refused before the commit: rows against the {label}\n" for label in enforced]
    return "".join(lines + [f"-- not enforced: {text}\n" for text in others])


def _foreign_key(constraint: Mapping[str, Any], columns: Sequence[str]) -> str:
    title = f"foreign_key '{constraint['name']}'" if constraint.get("name") else "foreign_key"
    there = constraint.get("expression") or ""
    if constraint.get("to"):
        there = f"{constraint['to']} ({', '.join(constraint.get('to_columns') or [])})"
    return " ".join(f"{title} ({', '.join(columns)}) references {there}".split())


def example_of(row: str) -> str:
    """Expression: a row as text with column names, about three hundred characters at most."""
    return f"left(to_json({row}, map('ignoreNullFields', 'false')), 300)"


def violation_query(checks: Sequence[Check], source: str) -> str:
    """One row: for each check the number of violating rows of `source`, and one of them as text."""
    looks = [f"count_if({check.violated}), min(case when {check.violated} then {example_of('struct(*)')} end)" for check in checks]
    return f"select {', '.join(looks)} from {source}"
