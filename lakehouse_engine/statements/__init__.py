"""Carries out statements on the warehouse. Imported as `spark`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_engine.loading import modules_of

if TYPE_CHECKING:
    from lakehouse_engine.statements import context, dispatch, reading
else:
    __getattr__ = modules_of(__name__)

__all__ = ["context", "dispatch", "reading"]
