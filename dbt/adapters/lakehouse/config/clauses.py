"""Merge clauses with dbt-databricks' config names: which rows are updated, inserted, or changed because the model lacks them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.bridge.validation import assignments_of

SOURCE, TARGET = "DBT_INTERNAL_SOURCE", "DBT_INTERNAL_DEST"
CLAUSE_CONDITIONS = ("matched_condition", "not_matched_condition", "not_matched_by_source_condition")
SKIPPED_STEPS = ("skip_matched_step", "skip_not_matched_step")
ALIASES = ("source_alias", "target_alias")
CLAUSE_KEYS = (*CLAUSE_CONDITIONS, "not_matched_by_source_action", *SKIPPED_STEPS, *ALIASES)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True)
class MergeClauses:
    """What a merge does with a stored row that the model has, a new row, and a stored row that the model lacks.

    `by_source` handles the last: "delete", "update" by the `assignments` (column, expression), or None. `source` and `target` are the names
    of the two sides in conditions.
    """

    matched_condition: str | None = None
    not_matched_condition: str | None = None
    skip_matched: bool = False
    skip_not_matched: bool = False
    by_source: str | None = None
    assignments: tuple[tuple[str, str], ...] = ()
    by_source_condition: str | None = None
    source: str = SOURCE
    target: str = TARGET

    @classmethod
    def of(cls, name: str, config: Mapping[str, Any]) -> MergeClauses:
        """Clauses of a model's configs. Raises `DbtConfigError` for an unknown action."""
        source, target = str(config.get("source_alias") or SOURCE), str(config.get("target_alias") or TARGET)
        action = _text(config.get("not_matched_by_source_action"))
        assignments = () if action is None or action.lower() == "delete" else _assignments(name, action, target)
        return cls(
            matched_condition=_text(config.get("matched_condition")),
            not_matched_condition=_text(config.get("not_matched_condition")),
            skip_matched=config.get("skip_matched_step") is True,
            skip_not_matched=config.get("skip_not_matched_step") is True,
            by_source=action and ("update" if assignments else "delete"),
            assignments=assignments,
            by_source_condition=_text(config.get("not_matched_by_source_condition")),
            source=source,
            target=target,
        )

    @property
    def choose_rows(self) -> bool:
        """True if some rows of the model are skipped, depending on what is stored."""
        return bool(self.matched_condition or self.not_matched_condition or self.skip_matched or self.skip_not_matched)

    def __bool__(self) -> bool:
        return self.choose_rows or self.by_source is not None


def clause_findings(name: str, config: Mapping[str, Any], strategy: str, fixed: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Find clauses that are mistyped, contradict each other, or do not apply to the strategy.

    `fixed` maps configs to columns that no clause may assign. Each finding starts with `name`.
    """
    mistyped = list(_text_findings(name, config))
    yield from mistyped
    given = [key for key in CLAUSE_KEYS if config.get(key)]
    if given and strategy != "merge":
        yield f"{name}: {given[0]} belongs to incremental_strategy 'merge', but the strategy is '{strategy}'"
        return
    yield from _skip_findings(name, config)
    if mistyped:
        return
    try:
        clauses = MergeClauses.of(name, config)
    except DbtConfigError as error:
        yield error.msg
        return
    if clauses.source.lower() == clauses.target.lower():
        yield f"{name}: source_alias and target_alias are both '{clauses.source}'; give them two names"
    if clauses.by_source_condition and clauses.by_source is None:
        yield (
            f"{name}: not_matched_by_source_condition says which rows not_matched_by_source_action is for, and that one is not given"
        )
    if clauses.by_source is not None:
        yield from _by_source_findings(name, config, clauses, fixed)


def _text_findings(name: str, config: Mapping[str, Any]) -> Iterator[str]:
    for key in (*CLAUSE_CONDITIONS, "not_matched_by_source_action", *ALIASES):
        value = config.get(key)
        if not isinstance(value, str | None):
            what = "a name" if key in ALIASES else "a text in SQL"
            yield f"{name}: {key} is {what}, not {type(value).__name__} '{value}'"
        elif value and key in ALIASES and not _NAME.fullmatch(value):
            yield f"{name}: {key} '{value}' is not a plain name, of letters, digits and underscores"


def _skip_findings(name: str, config: Mapping[str, Any]) -> Iterator[str]:
    matched, not_matched = (config.get(key) is True for key in SKIPPED_STEPS)
    if matched:
        for key in ("matched_condition", "merge_update_columns", "merge_exclude_columns", "delete_condition"):
            if config.get(key):
                yield f"{name}: {key} is about stored rows, which skip_matched_step leaves as they are; keep one of the two"
    if not_matched and config.get("not_matched_condition"):
        yield f"{name}: not_matched_condition is about new rows, and skip_not_matched_step adds none; keep one of the two"
    if matched and not_matched and not config.get("not_matched_by_source_action"):
        yield f"{name}: with skip_matched_step and skip_not_matched_step merge would do nothing; leave one of them out"


def _by_source_findings(name: str, config: Mapping[str, Any], clauses: MergeClauses, fixed: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    predicates = config.get("incremental_predicates") or config.get("predicates")
    if predicates:
        yield (
            f"{name}: with incremental_predicates every stored row outside of them would count as not matched by source; leave them out, "
            "and say in not_matched_by_source_condition which rows not_matched_by_source_action may change"
        )
    for column, _ in clauses.assignments:
        for key, columns in fixed.items():
            if column.lower() in {one.strip("`").lower() for one in columns}:
                yield (
                    f"{name}: not_matched_by_source_action sets '{column}', which is in {key}: the row would become another one; "
                    "set other columns"
                )


def _assignments(name: str, action: str, target: str) -> tuple[tuple[str, str], ...]:
    try:
        found = assignments_of(action, target)
    except DbtConfigError as error:
        valid = "'delete' or 'update set column = value, ...'"
        raise DbtConfigError(f"{name}: not_matched_by_source_action is {valid}; {error.msg}") from error
    nested = next((column for column, _ in found if "." in column), None)
    if nested is not None:
        raise DbtConfigError(f"{name}: not_matched_by_source_action sets whole columns, and '{nested}' is inside of one")
    return found


def _text(value: Any) -> str | None:
    """Text without surrounding blanks; None if empty."""
    return (str(value).strip() or None) if value is not None else None
