"""`hoodie.*` options, and options of file readers."""

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
    layered,
)
from lakehouse_engine.options.files import FilesRead, checked_options, files_read
from lakehouse_engine.options.services import clean_policy_of

__all__ = [
    "FilesRead",
    "checked_options",
    "clean_policy_of",
    "conflict_retries",
    "files_read",
    "layered",
    "lock_timeout",
    "option_findings",
    "tuning_options",
]


def option_findings(hoodie: Mapping[str, Any]) -> list[str]:
    """What is wrong with `hoodie.*` options: each key and value alone, then all together if each is valid."""
    found = [text for key, value in hoodie.items() if (text := _refusal(check_known, {key: value}))]
    if found:
        return found
    together = (_refusal(read, hoodie) for read in (WriteOptions.read, ServiceOptions.read))
    return [text for text in together if text]


def tuning_options(hoodie: Mapping[str, Any]) -> list[str]:
    """Those of valid options that tune Hudi's own execution, and have no effect here."""
    return check_known(hoodie)


def _refusal(check: Callable[[Mapping[str, Any]], object], given: Mapping[str, Any]) -> str | None:
    try:
        check(given)
    except (OptionError, UnavailableError) as error:
        return str(error)
    return None


def conflict_retries(given: Mapping[str, Any]) -> int:
    """How often a write is repeated because others changed what it had read."""
    return CONFLICT_RETRIES.read(given)


def lock_timeout(given: Mapping[str, Any]) -> int:
    """Wait for a table's lock, in milliseconds."""
    return LOCK_TIMEOUT_MS.read(given)
