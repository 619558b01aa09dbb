"""What an option is, and how its text is parsed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lakehouse_engine.errors import OptionError

T = TypeVar("T")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_MOST = 2**31 - 1
"""Maximum of Java's int, as which Hudi reads such options. Longer waits make no sense."""


def boolean(text: str) -> bool:
    """`true` or `false`, in any case."""
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError("expected true or false")
    return lowered == "true"


def positive(text: str) -> int:
    """A positive integer within Java's int."""
    return _at_most(positive_size(text))


def natural(text: str) -> int:
    """A non-negative integer within Java's int."""
    return _at_most(natural_size(text))


def positive_size(text: str) -> int:
    """A positive integer: bytes, or counts of that size."""
    value = _whole(text)
    if value is None or value <= 0:
        raise ValueError("expected a positive whole number")
    return value


def natural_size(text: str) -> int:
    """A non-negative integer: bytes, or counts of that size."""
    value = _whole(text)
    if value is None or value < 0:
        raise ValueError("expected a whole number, 0 or more")
    return value


def _whole(text: str) -> int | None:
    return int(text) if _WHOLE.fullmatch(text.strip()) else None


def _at_most(value: int) -> int:
    if value > _MOST:
        raise ValueError(f"expected {_MOST} at most")
    return value


def probability(text: str) -> float:
    """A number between 0 and 1, exclusive."""
    expected = ValueError("expected a number between 0 and 1")
    try:
        value = float(text)
    except ValueError:
        raise expected from None
    if not 0 < value < 1:
        raise expected
    return value


def one_of(*allowed: str) -> Callable[[str], str]:
    """One of the given words, ignoring case; the value is upper-case."""
    def parse(text: str) -> str:
        value = text.strip().upper()
        if value not in allowed:
            raise ValueError(f"expected one of {', '.join(allowed)}")
        return value

    return parse


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """One key. `parse` turns text into a value; `aliases` are its names in other Hudi versions."""

    key: str
    parse: Callable[[str], T]
    default: T
    doc: str
    aliases: tuple[str, ...] = ()

    def read(self, raw: Mapping[str, Any]) -> T:
        """The value in `raw` (text or typed), else the default. Raises `OptionError` with the key used."""
        for key in (self.key, *self.aliases):
            if key in raw and raw[key] is not None:
                value = raw[key]
                text = str(value).lower() if isinstance(value, bool) else str(value)
                try:
                    return self.parse(text)
                except ValueError as error:
                    raise OptionError(f"{key}={text!r} does not parse: {error}") from error
        return self.default
