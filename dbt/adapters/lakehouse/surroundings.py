"""What of the profile and the project every relation depends on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Surroundings:
    """`project_root`: what paths of files are relative to; `allow_files`: whether statements may read files at all."""

    project_root: str = "."
    allow_files: bool = True
