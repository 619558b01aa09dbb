"""Settings of the profile and the project that every relation depends on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Surroundings:
    """`project_root`: what paths of files are relative to; `allow_files`: whether statements may read files at all.

    `catalog`: the name of the target's own warehouse; `attached`: those of others, all in lower case.
    """

    project_root: str = "."
    allow_files: bool = True
    catalog: str | None = None
    attached: frozenset[str] = frozenset()


def surroundings_of(config: Any) -> Surroundings:
    """The settings in dbt's config. That of `dbt debug` is a profile without a project."""
    given = config.credentials
    return Surroundings(str(getattr(config, "project_root", ".")), given.allow_files, given.catalog, frozenset(given.catalogs))
