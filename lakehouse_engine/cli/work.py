"""Opens tables for commands that change them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakehouse_engine.cli.target import Settings
from lakehouse_engine.cli.terminal.progress import ProgressRunner
from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.storage.locations import storage_for
from lakehouse_engine.table_services import TableServices


class WatchedTable(TableServices):
    """A table whose tasks are counted on the terminal."""

    def _runner(self, options: Mapping[str, Any]) -> TaskRunner:
        return ProgressRunner(super()._runner(options).parallelism)


def open_services(settings: Settings, table: str, options: Mapping[str, str] | None = None) -> TableServices:
    """The table that a command's argument names, with `hoodie.*` options. Raises as `Settings.open`, and `UnknownOptionError`."""
    return WatchedTable(storage_for(settings.directory(table)), options=options)
