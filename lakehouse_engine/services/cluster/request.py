"""A clustering as users ask for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.errors import OptionError
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.model.services import ClusteringResult
from lakehouse_engine.options import ClusteringOptions, WriteOptions, layered
from lakehouse_engine.options.clustering import CLUSTERING_LAYOUT, SORT_COLUMNS
from lakehouse_engine.services.cluster.operation import run, schedule, schedule_and_run
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.partitions import partition_paths_of

CLUSTERING_OPS = ("schedule", "run", "schedule_and_run")


@dataclass(frozen=True, slots=True)
class ClusteringRequest:
    """Arguments of `HoodieTable.cluster`; None if not given."""

    op: str = "schedule_and_run"
    order_by: Sequence[str] | None = None
    layout: str | None = None
    partitions: Sequence[str | Mapping[str, Any]] | None = None
    instant: str | None = None

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Options of the call, overridden by the arguments. Raises `OptionError`."""
        said: dict[str, Any] = {}
        if self.order_by is not None:
            odd = [name for name in self.order_by if "," in name]
            if odd:
                raise OptionError(f"order_by names one column each: {odd[0]!r} holds a comma")
            said[SORT_COLUMNS.key] = ",".join(self.order_by)
            if self.layout is None and not self.order_by:
                said[CLUSTERING_LAYOUT.key] = CLUSTERING_LAYOUT.default
        if self.layout is not None:
            said[CLUSTERING_LAYOUT.key] = self.layout
        return layered(given, said)

    def check(self, state: TableState) -> None:
        """Raise `OptionError` for an unknown `op`, and for arguments that it does not take."""
        table = state.config.name
        if self.op not in CLUSTERING_OPS:
            raise OptionError(f"op={self.op!r} is not one of {', '.join(CLUSTERING_OPS)}", table=table)
        if self.instant is not None and self.op != "run":
            raise OptionError(f"op={self.op!r} takes no instant; op='run' runs the clustering of one", table=table)
        named = {"order_by": self.order_by, "layout": self.layout, "partitions": self.partitions}
        planned = [name for name, value in named.items() if value is not None]
        if self.op == "run" and planned:
            raise OptionError(f"op='run' takes no {planned[0]}: it carries out the plan that was scheduled", table=table)

    def carry_out(
        self, state: TableState, effective: Mapping[str, Any], runner: TaskRunner, *, lock_timeout_ms: int, dry_run: bool
    ) -> ClusteringResult:
        """Schedule or run as `op` says. Raises as `operation.run` and `operation.schedule`."""
        options, write_options, storage = ClusteringOptions.read(effective), WriteOptions.read(effective), state.storage
        if self.op == "run":
            return run(
                storage, options, write_options, runner, instant=self.instant, lock_timeout_ms=lock_timeout_ms, dry_run=dry_run
            )
        only = None if self.partitions is None else partition_paths_of(state.config, self.partitions, table_schema(state))
        if self.op == "schedule":
            return schedule(storage, options, write_options, lock_timeout_ms=lock_timeout_ms, only=only, dry_run=dry_run)
        return schedule_and_run(
            storage, options, write_options, runner, lock_timeout_ms=lock_timeout_ms, only=only, dry_run=dry_run
        )
