"""Constraints of a contract, enforced before the write: a batch that violates one leaves the table as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.lakehouse.columns import quoted
from dbt.adapters.lakehouse.writing.types import is_text, text_length


@dataclass(frozen=True)
class Check:
    """`violated` is a SQL condition that holds for a row that must not be written."""

    label: str
    violated: str


def checks_of(model: Mapping[str, Any]) -> list[Check]:
    """What the contract of a node, where it is enforced, says of rows: not_null, check, and the lengths of `varchar(n)`."""
    if not _is_enforced(model):
        return []
    lengths = {name: length for name, length in lengths_of(model).items() if length is not None}
    found = [Check(f"varchar({most}) of column '{name}'", f"char_length({quoted(name)}) > {most}") for name, most in lengths.items()]
    for name, column in (model.get("columns") or {}).items():
        for constraint in column.get("constraints") or []:
            found += _checks(constraint, [name])
    for constraint in model.get("constraints") or []:
        found += _checks(constraint, constraint.get("columns") or [])
    return found


def lengths_of(model: Mapping[str, Any]) -> dict[str, int | None]:
    """The most characters that each text column of an enforced contract holds, None for any number."""
    columns = (model.get("columns") or {}) if _is_enforced(model) else {}
    types = {name: str(column.get("data_type") or "") for name, column in columns.items()}
    return {name: text_length(kind) for name, kind in types.items() if is_text(kind)}


def _is_enforced(model: Mapping[str, Any]) -> bool:
    return bool((model.get("config", {}).get("contract") or {}).get("enforced"))


def _kind(constraint: Mapping[str, Any]) -> str:
    return str(getattr(constraint.get("type"), "value", constraint.get("type")))


def _checks(constraint: Mapping[str, Any], columns: Sequence[str]) -> list[Check]:
    kind = _kind(constraint)
    title = f"{kind} constraint" + (f" '{constraint['name']}'" if constraint.get("name") else "")
    if kind in ("not_null", "primary_key"):
        return [Check(f"{title} on column '{name}'", f"{quoted(name)} is null") for name in columns]
    if kind == "check" and constraint.get("expression"):
        expression = str(constraint["expression"])
        return [Check(f"{title} ({expression})", f"not ({expression})")]
    return []


def contract_text(model: Mapping[str, Any]) -> str:
    """What becomes of the constraints of an enforced contract, as comments before the query that dbt keeps as what was run."""
    lines = [f"-- refused before the commit: rows against the {' '.join(check.label.split())}\n" for check in checks_of(model)]
    if _is_enforced(model):
        columns = model.get("columns") or {}
        given = [(constraint, [name]) for name, column in columns.items() for constraint in column.get("constraints") or []]
        given += [(constraint, constraint.get("columns") or []) for constraint in model.get("constraints") or []]
        lines += [f"-- not enforced: {text}\n" for constraint, names in given if (text := _unenforced(constraint, names))]
    return "".join(lines)


def _unenforced(constraint: Mapping[str, Any], columns: Sequence[str]) -> str:
    kind = _kind(constraint)
    if kind not in ("unique", "primary_key", "foreign_key"):
        return ""
    title = f"{kind} '{constraint['name']}'" if constraint.get("name") else kind
    there = constraint.get("expression") or ""
    if constraint.get("to"):
        there = f"{constraint['to']} ({', '.join(constraint.get('to_columns') or [])})"
    keys = f"{title} ({', '.join(columns)})"
    # A text of several lines would end the comment.
    return " ".join((f"{keys} references {there}" if kind == "foreign_key" else keys).split())


def violation_query(checks: Sequence[Check], source: str) -> str:
    """One row: for each check, how many rows of `source` violate it."""
    counts = ", ".join(f"count_if({check.violated}) as `violated_{position}`" for position, check in enumerate(checks))
    return f"select {counts} from {source}"
