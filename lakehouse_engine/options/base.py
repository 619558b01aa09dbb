"""What an option is, and how its text is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lakehouse_engine.errors import OptionError

T = TypeVar("T")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_MOST = 2**31 - 1
"""Of Java's int, which Hudi reads such options as. Nothing can be waited for much longer."""


def boolean(text: str) -> bool:
    """`true` or `false`, in any case."""
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError("expected true or false")
    return lowered == "true"


def positive(text: str) -> int:
    """A whole number above 0, as Java's int has them."""
    return _at_most(positive_size(text))


def natural(text: str) -> int:
    """A whole number, 0 or more, as Java's int has them."""
    return _at_most(natural_size(text))


def positive_size(text: str) -> int:
    """A whole number above 0: of bytes, or of what may be as many."""
    value = _whole(text)
    if value is None or value <= 0:
        raise ValueError("expected a positive whole number")
    return value


def natural_size(text: str) -> int:
    """A whole number, 0 or more: of bytes, or of what may be as many."""
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
    """A number between 0 and 1, both excluded."""
    expected = ValueError("expected a number between 0 and 1")
    try:
        value = float(text)
    except ValueError:
        raise expected from None
    if not 0 < value < 1:
        raise expected
    return value


def one_of(*allowed: str) -> Callable[[str], str]:
    """One of the words given, in any case; the value is in upper case."""
    def parse(text: str) -> str:
        value = text.strip().upper()
        if value not in allowed:
            raise ValueError(f"expected one of {', '.join(allowed)}")
        return value

    return parse


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """One key. `parse` turns its text into a value; `aliases` are names that Hudi gave it in other versions."""

    key: str
    parse: Callable[[str], T]
    default: T
    doc: str
    aliases: tuple[str, ...] = ()

    def read(self, raw: Mapping[str, Any]) -> T:
        """The value in `raw` (values may be text or already typed), else the default. Raises `OptionError` naming the key used."""
        for key in (self.key, *self.aliases):
            if key in raw and raw[key] is not None:
                value = raw[key]
                text = str(value).lower() if isinstance(value, bool) else str(value)
                try:
                    return self.parse(text)
                except ValueError as error:
                    raise OptionError(f"{key}={text!r} does not parse: {error}") from error
        return self.default
