"""Collects what is wrong with configs: checks yield texts, the caller raises one error with all of them."""

from __future__ import annotations

from collections.abc import Iterable

from dbt_common.exceptions import DbtConfigError


def refuse(findings: Iterable[str]) -> None:
    """Raise `DbtConfigError` with one line a finding; nothing if there are none."""
    if found := list(findings):
        raise DbtConfigError("\n".join(found))
