"""Configs checked as dbt's parsing checks them: one error with all findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt.adapters.lakehouse.config.findings import refuse
from dbt.adapters.lakehouse.config.model_config import config_findings
from lakehouse_engine.api.options import option_findings


def check_config(name: str, config: Mapping[str, Any], extra: Sequence[str], *, strict: bool = True) -> None:
    """Raise `DbtConfigError` with all that is wrong with a node's configs."""
    refuse(config_findings(name, config, extra, strict=strict))


def check_options(hoodie: Mapping[str, Any]) -> None:
    """Raise `DbtConfigError` with all that is wrong with `hoodie.*` options."""
    refuse(option_findings(hoodie))
