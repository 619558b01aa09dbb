"""What is done to a table besides reading and writing rows: its history, its savepoints, and the services that keep it in shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakehouse_engine.engine import TaskRunner, local_runner
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.options import STORED_PREFIX, check_known
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.timeline.timeline import Timeline
from lakehouse_engine.view.history import HistoryEntry, history
from lakehouse_engine.view.table_state import TableState


class TableServices:
    """One table without Spark: what `HoodieTable` and the command line share.

    `options` are `hoodie.*` keys; they count over the table's own properties. Raises `TableNotFoundError`,
    `UnsupportedTableVersionError`, `UnknownOptionError`.
    """

    def __init__(self, storage: LocalStorage, *, options: Mapping[str, Any] | None = None) -> None:
        self._storage = storage
        self._options = dict(options or {})
        check_known(self._options)
        self._state = TableState.load(storage)

    @property
    def path(self) -> str:
        return self._storage.root

    @property
    def storage(self) -> LocalStorage:
        return self._storage

    @property
    def state(self) -> TableState:
        """The table as it is now: timeline, configuration and files."""
        self._state = self._state.refresh()
        return self._state

    @property
    def config(self) -> TableConfig:
        return self.state.config

    @property
    def timeline(self) -> Timeline:
        return self.state.timeline

    @property
    def services(self) -> TableServices:
        """The same table, as what is done to it besides reading and writing rows."""
        return self

    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """Instants of the active timeline, newest first, with what each keeps or holds up."""
        return history(self.state, limit)

    def _effective(self, options: Mapping[str, Any]) -> dict[str, Any]:
        check_known(options)
        return {**self._state.config.prefixed(STORED_PREFIX), **self._options, **options}

    def _runner(self, options: Mapping[str, Any]) -> TaskRunner:
        return local_runner({**self._options, **options})
