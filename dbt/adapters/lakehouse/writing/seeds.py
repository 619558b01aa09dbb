"""What a seed's file and configs say of it; its rows are read by `seed_columns`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.writing.types import is_text, text_length


def check_header(name: str, path: str) -> None:
    """Raise `DbtRuntimeError` for a file without a line, of which dbt's reader only tells that an iteration stopped."""
    if not os.path.exists(path):  # dbt tells
        return
    with open(path, encoding="utf-8-sig", errors="replace") as lines:
        if not any(line.strip() for line in lines):
            raise DbtRuntimeError(f"{name}: {path} is empty: a seed's first line has the names of its columns")


def text_lengths(columns: Sequence[str], overrides: Mapping[str, str]) -> dict[str, int | None]:
    """Of the columns that an override makes text the most characters that each holds, None for any number."""
    chosen = {name.lower(): kind for name, kind in overrides.items()}
    return {name: text_length(chosen[name.lower()]) for name in columns if name.lower() in chosen and is_text(chosen[name.lower()])}
