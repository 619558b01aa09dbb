"""`hoodie.*` options, and those of readers of files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lakehouse_engine.errors import OptionError, UnavailableError
from lakehouse_engine.options import (
    CONFLICT_RETRIES,
    LOCK_TIMEOUT_MS,
    ServiceOptions,
    WriteOptions,
    check_known,
)
from lakehouse_engine.options.files import FilesRead, checked_options, files_read

__all__ = ["FilesRead", "checked_options", "conflict_retries", "files_read", "lock_timeout", "option_findings"]


def option_findings(hoodie: Mapping[str, Any]) -> list[str]:
    """What is wrong with `hoodie.*` options: each key and value by itself, and all together where each is right."""
    found = [text for key, value in hoodie.items() if (text := _refusal(check_known, {key: value}))]
    if found:
        return found
    together = (_refusal(read, hoodie) for read in (WriteOptions.read, ServiceOptions.read))
    return [text for text in together if text]


def _refusal(check: Callable[[Mapping[str, Any]], object], given: Mapping[str, Any]) -> str | None:
    try:
        check(given)
    except (OptionError, UnavailableError) as error:
        return str(error)
    return None


def conflict_retries(given: Mapping[str, Any]) -> int:
    """How often what reads and writes one table is run again because others changed what it read."""
    return CONFLICT_RETRIES.read(given)


def lock_timeout(given: Mapping[str, Any]) -> int:
    """How long a table's lock is waited for, in milliseconds."""
    return LOCK_TIMEOUT_MS.read(given)
