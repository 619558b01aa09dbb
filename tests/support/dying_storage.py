"""A storage whose process dies at a call that is named, and not counted."""

from __future__ import annotations

import re

from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.faults import FaultyStorage


class DyingStorage(FaultyStorage):
    """The process dies before the first mutating call whose name matches."""

    def __init__(self, inner: Storage, before: str) -> None:
        super().__init__(inner)
        self._pattern = re.compile(before)

    def _before(self, mutation: str) -> None:
        super()._before(mutation)
        if self._pattern.search(mutation):
            self._crash()
