"""What Python 3.10 lacks."""

from __future__ import annotations

from datetime import timezone
from enum import Enum

UTC = timezone.utc


class StrEnum(str, Enum):
    """`enum.StrEnum` of Python 3.11: the value is the text."""

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(str(self.value), spec)
