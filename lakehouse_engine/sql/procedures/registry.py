"""Every procedure that CALL knows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from lakehouse_engine.catalog.names import split_name
from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.options.unavailable import CLUSTERING, DOWNGRADE, UPGRADE
from lakehouse_engine.sql.grammar.references import Parts, plain
from lakehouse_engine.sql.grammar.statements import Call
from lakehouse_engine.sql.procedures.arguments import TABLE, nearest
from lakehouse_engine.sql.procedures.procedure import Procedure, Values
from lakehouse_engine.sql.procedures.services import SERVICES
from lakehouse_engine.sql.procedures.shows import SHOWS
from lakehouse_engine.table_services import TableServices


def _by_name(procedures: Iterable[Procedure]) -> dict[str, Procedure]:
    return {one.signature.name: one for one in procedures}


PROCEDURES = _by_name((*SERVICES, *SHOWS))
LATER = {**dict.fromkeys(("run_clustering", "show_clustering"), CLUSTERING), "upgrade_table": UPGRADE, "downgrade_table": DOWNGRADE}
"""Procedures of Hudi for what the engine does not do yet."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that can be carried out: all of it is checked but the table, which `table` names as the statement does."""

    procedure: Procedure
    table: Parts
    values: Values
    limit: int | None

    def answer(self, table: TableServices) -> pa.Table:
        """Carry the call out on the table it names; at most `limit` rows are answered."""
        return self.procedure.answer(table, self.values).slice(0, self.limit)


def prepare(call: Call) -> Prepared:
    """Hold a call against the registry. Raises `UnsupportedSqlError` for a procedure that there is none of, and as `values_of`."""
    found = PROCEDURES.get(call.procedure.lower())
    if found is None:
        if call.procedure.lower() in LATER:
            raise UnsupportedSqlError(f"CALL {call.procedure}: {LATER[call.procedure.lower()]}")
        raise UnsupportedSqlError(f"there is no procedure {call.procedure}{nearest(call.procedure, tuple(sorted(PROCEDURES)))}")
    values = found.signature.values_of(call)
    return Prepared(found, plain(split_name(values[TABLE.name])), values, call.limit)
