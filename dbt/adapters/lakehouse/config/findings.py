"""What is wrong with configs, told together: each check yields texts, and whoever asks raises one error with all of them."""

from __future__ import annotations

from collections.abc import Iterable

from dbt_common.exceptions import DbtConfigError


def refuse(findings: Iterable[str]) -> None:
    """Raise `DbtConfigError` with all findings, a line each; nothing where there are none."""
    if found := list(findings):
        raise DbtConfigError("\n".join(found))
