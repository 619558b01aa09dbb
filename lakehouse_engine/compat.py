"""What Python 3.10 and 3.11 lack."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timezone
from enum import Enum
from typing import TYPE_CHECKING, Any

UTC = timezone.utc


class StrEnum(str, Enum):
    """`enum.StrEnum` of Python 3.11: the value is the text."""

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(str(self.value), spec)


if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property:  # noqa: N801 - the name that it stands for
        """`functools.cached_property` of Python 3.12. Earlier ones share one lock among all instances of a class, so threads that list
        different tables would wait for each other.
        """

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self.function, self.name, self.__doc__ = function, function.__name__, function.__doc__

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            # The instance attribute takes precedence, so this runs once.
            value = instance.__dict__[self.name] = self.function(instance)
            return value
