"""Joda-Time date patterns (`DateTimeFormat`) in properties of the timestamp key generator.

Only letters whose text is the same in every locale are supported; others are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import OptionError

_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_GMT_OFFSET = re.compile(r"(?:GMT|UTC)?([+-])(\d{1,2}):?(\d{2})?\Z")
_OFFSET_TEXT = re.compile(r"([+-])(\d{2}):?(\d{2})?\Z")

_NUMBERS: dict[str, Callable[[datetime], int]] = {
    "y": lambda moment: moment.year,
    "Y": lambda moment: moment.year,
    "M": lambda moment: moment.month,
    "d": lambda moment: moment.day,
    "H": lambda moment: moment.hour,
    "k": lambda moment: moment.hour or 24,
    "m": lambda moment: moment.minute,
    "s": lambda moment: moment.second,
    "D": lambda moment: moment.timetuple().tm_yday,
    "x": lambda moment: moment.isocalendar()[0],
    "w": lambda moment: moment.isocalendar()[1],
    "e": lambda moment: moment.isoweekday(),
}
_PARSED = {"y": "year", "Y": "year", "M": "month", "d": "day", "H": "hour", "m": "minute", "s": "second", "S": "fraction", "Z": "offset"}


@dataclass(frozen=True, slots=True)
class DatePattern:
    """A pattern as (letter, count or literal text) pairs; a literal has the letter ""."""

    text: str
    tokens: tuple[tuple[str, int, str], ...]

    @classmethod
    def of(cls, text: str) -> DatePattern:
        """Raises `OptionError` for unsupported letters."""
        tokens: list[tuple[str, int, str]] = []
        position = 0
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None:
                raise OptionError(f"the date pattern {text!r} has a quote that does not end")
            tokens.append(_token(found, text))
            position = found.end()
        return cls(text, tuple(tokens))

    @property
    def finer_than_minutes(self) -> bool:
        return any(letter in ("s", "S") for letter, _, _ in self.tokens)

    @property
    def finer_than_seconds(self) -> bool:
        return any(letter == "S" for letter, _, _ in self.tokens)

    def format(self, moment: datetime) -> str:
        """Text of a moment that has a zone."""
        return "".join(_formatted(letter, count, literal, moment) for letter, count, literal in self.tokens)

    def parse(self, text: str, zone: tzinfo) -> datetime | None:
        """Moment that `text` means, in `zone` unless it names an offset; None if it does not match."""
        found = re.fullmatch(self._expression(), text, re.ASCII)
        if found is None:
            return None
        parts = found.groupdict()
        fraction = ((parts.get("fraction") or "") + "000000")[:6]
        numbers = {name: int(parts[name]) for name in ("year", "month", "day", "hour", "minute", "second") if parts.get(name)}
        offset = parts.get("offset")
        try:
            moment = datetime(**{"year": 1970, "month": 1, "day": 1, **numbers}, microsecond=int(fraction), tzinfo=zone)
        except ValueError:
            return None
        return moment.replace(tzinfo=_offset(offset)) if offset else moment

    def _expression(self) -> str:
        pieces, named = [], set()
        for index, (letter, count, literal) in enumerate(self.tokens):
            if not letter:
                pieces.append(re.escape(literal))
                continue
            name = _PARSED.get(letter)
            if name is None or name in named or (name == "year" and count == 2):
                # Joda reads two-digit years relative to today, so the same text would change its partition.
                raise OptionError(f"the date pattern {self.text!r} cannot be read from text: {letter * count!r} is not known there")
            named.add(name)
            following = self.tokens[index + 1][0] if index + 1 < len(self.tokens) else ""
            pieces.append(f"(?P<{name}>{_digits(letter, count, adjacent=following in _PARSED and following != 'Z')})")
        if "year" not in named:
            raise OptionError(f"the date pattern {self.text!r} has no year")
        return "".join(pieces)


def java_zone(name: str) -> tzinfo:
    """Zone of a name (`GMT+8:00`, `UTC`, `Asia/Tokyo`), like `java.util.TimeZone.getTimeZone`.

    Raises `OptionError` for an unknown name, for which Java silently takes GMT.
    """
    if name.upper() in ("GMT", "UTC", "Z"):
        return UTC
    found = _GMT_OFFSET.match(name)
    if found and name.startswith("GMT"):
        return _fixed(found.group(1), int(found.group(2)), int(found.group(3) or 0))
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:
        raise OptionError(f"the time zone {name!r} is not known; use a name like Asia/Tokyo or GMT+8:00") from error


def _token(found: re.Match[str], text: str) -> tuple[str, int, str]:
    letter = found.group(2)
    if letter is None:
        if found.group(0) == "''":
            return "", 0, "'"
        quoted = found.group(1)
        return "", 0, found.group(0) if quoted is None else quoted.replace("''", "'")
    count = len(found.group(0))
    if (letter not in _NUMBERS and letter not in ("S", "Z", "h", "K")) or (letter == "M" and count > 2) or (letter == "Z" and count > 2):
        raise OptionError(f"the date pattern {text!r} has {letter * count!r}, which is not known; numbers, quoted text and Z are")
    return letter, count, ""


def _formatted(letter: str, count: int, literal: str, moment: datetime) -> str:
    if not letter:
        return literal
    if letter == "S":
        return f"{moment.microsecond:06d}".ljust(count, "0")[:count]
    if letter == "Z":
        offset = moment.strftime("%z")[:5]
        return offset if count == 1 else f"{offset[:3]}:{offset[3:]}"
    if letter in ("h", "K"):
        hour = moment.hour % 12
        return str(hour or 12 if letter == "h" else hour).rjust(count, "0")
    number = _NUMBERS[letter](moment)
    if letter in "yYx" and count == 2:
        return f"{number % 100:02d}"
    return str(number).rjust(count, "0")


def _digits(letter: str, count: int, *, adjacent: bool) -> str:
    if letter == "Z":
        return r"[Zz]|[+-]\d{2}(?::?\d{2})?"
    if letter == "S":
        return rf"\d{{1,{count}}}"
    if adjacent:
        return rf"\d{{{count}}}"
    return r"\d{1,9}" if letter in "yY" else rf"\d{{1,{max(count, 2)}}}"


def _offset(text: str) -> tzinfo:
    found = _OFFSET_TEXT.match(text)
    return UTC if found is None else _fixed(found.group(1), int(found.group(2)), int(found.group(3) or 0))


def _fixed(sign: str, hours: int, minutes: int) -> tzinfo:
    delta = timedelta(hours=hours, minutes=minutes)
    return timezone(-delta if sign == "-" else delta)
