"""What a seed's file and configs say; `seed_columns` reads its rows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.writing.types import is_text, text_length


def check_header(name: str, path: str) -> None:
    """Raise `DbtRuntimeError` for an empty file, for which dbt's reader only says that an iteration stopped."""
    if not os.path.exists(path):  # dbt reports it
        return
    with open(path, encoding="utf-8-sig", errors="replace") as lines:
        if not any(line.strip() for line in lines):
            raise DbtRuntimeError(f"{name}: {path} is empty: a seed's first line has the names of its columns")


def text_lengths(columns: Sequence[str], overrides: Mapping[str, str]) -> dict[str, int | None]:
    """Maximum length of each column that an override makes text; None for any."""
    chosen = {name.lower(): kind for name, kind in overrides.items()}
    return {name: text_length(chosen[name.lower()]) for name in columns if name.lower() in chosen and is_text(chosen[name.lower()])}
