"""Changes a table's columns before a write that needs it: a separate commit, taken back if the write fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.lakehouse.bridge.outcomes import EngineError, is_outcome_unknown, retried
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.columns import quoted
from dbt.adapters.lakehouse.config.model_config import ModelConfig
from lakehouse_engine import api
from lakehouse_engine.api.names import DELETED_AT

_UNTOUCHED = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.compact.schedule.inline": "false",
    "hoodie.log.compaction.inline": "false",
    "hoodie.clustering.inline": "false",
    "hoodie.clustering.schedule.inline": "false",
}
"""Options of a commit that may be taken back: no services follow it, and nothing that it replaced is deleted."""


@dataclass(frozen=True)
class Reshaping:
    """Reshapes one model's table. `metadata` goes into the commit's extra metadata."""

    warehouse: Warehouse
    schema: str
    identifier: str
    config: ModelConfig
    metadata: Mapping[str, str]

    def write(self, columns: Sequence[str]) -> str | None:
        """Rewrite the table with these columns; returns the commit, if anything changed."""
        shaped = self.warehouse.sql(self._query(columns))
        expected = self.warehouse.expected(self.schema, self.identifier)
        given = {"options": {**self.config.options, **_UNTOUCHED}, "extra_metadata": dict(self.metadata), "expected": expected}
        written = retried(
            lambda: self.warehouse.table(self.schema, self.identifier).insert_overwrite_table(
                shaped, replace_schema=True, drop_deletions=False, **given
            )
        )
        if written.instant is None:
            return None
        self.warehouse.wrote(self.schema, self.identifier, str(written.instant))
        return str(written.instant)

    def take_back(self, instant: str | None, cause: BaseException) -> None:
        """Take the table back to before the commit `instant`, unless later commits may be published."""
        if instant is None or is_outcome_unknown(cause):
            return
        try:
            self.warehouse.table(self.schema, self.identifier).rollback(instant)
        except EngineError as error:
            raise DbtDatabaseError(
                f"{self.config.name}: {cause}. The columns of {self._name} were changed by {instant} before that, and could"
                f" not be put back: {error}; take that commit back with dbt run-operation rollback"
            ) from cause

    def _query(self, columns: Sequence[str]) -> str:
        if not self.warehouse.look(self.schema, self.identifier).shape.deletes_softly:
            return f"select {', '.join(columns)} from {self._name}"
        return f"select {', '.join([*columns, DELETED_AT])} from lakehouse_with_deleted({api.sql.quote_string(self._name)})"

    @property
    def _name(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.identifier)}"
