"""Settings of profile and project that every relation depends on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Surroundings:
    """`project_root`: base of relative file paths. `allow_files`: whether statements may read files.

    `catalog`: name of the target's own warehouse. `attached`: names of others. All in lower case.
    """

    project_root: str = "."
    allow_files: bool = True
    catalog: str | None = None
    attached: frozenset[str] = frozenset()


def surroundings_of(config: Any) -> Surroundings:
    """Settings in dbt's config. `dbt debug` passes a profile without a project."""
    given = config.credentials
    return Surroundings(str(getattr(config, "project_root", ".")), given.allow_files, given.catalog, frozenset(given.catalogs))
