"""Every procedure that CALL knows."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from lakehouse_engine.catalog.names import split_name
from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.options.unavailable import METADATA_STATEMENTS
from lakehouse_engine.sql.grammar.references import Parts, plain
from lakehouse_engine.sql.grammar.statements import Call
from lakehouse_engine.sql.procedures.arguments import TABLE
from lakehouse_engine.sql.procedures.clustering import CLUSTERING
from lakehouse_engine.sql.procedures.procedure import Procedure, Values
from lakehouse_engine.sql.procedures.services import SERVICES
from lakehouse_engine.sql.procedures.shows import SHOWS
from lakehouse_engine.sql.procedures.versions import VERSIONS
from lakehouse_engine.table_services import TableServices


def _by_name(procedures: Iterable[Procedure]) -> dict[str, Procedure]:
    return {one.signature.name: one for one in procedures}


PROCEDURES = _by_name((*SERVICES, *CLUSTERING, *SHOWS, *VERSIONS))
_TIMELINE = "CALL show_timeline, with showArchived => true the archived instants, too"
_COMMITS = "CALL show_commits, and `lakehouse timeline` and `lakehouse files`, show commits and files"
_ITSELF = "rollbacks of dead writers are the next write's own; CALL repair_table does them at once"
_SELECT = "CREATE TABLE ... AS SELECT, also AS OF a moment, copies rows, and CREATE TABLE ... CLONE a table"
_NO_CATALOG = "tables are registered in no other catalog by this version"
INSTEAD = {
    **dict.fromkeys(("show_archived_commits", "show_archived_commits_metadata", "export_instants", "show_clean_plans"), _TIMELINE),
    **dict.fromkeys(("show_rollbacks", "show_rollback_detail", "show_cleans_metadata"), _TIMELINE),
    **dict.fromkeys(("show_commit_files", "show_commit_partitions", "show_commit_write_stats", "show_commits_metadata"), _COMMITS),
    **dict.fromkeys(("show_commit_extra_metadata", "commits_compare", "show_file_status", "stats_file_sizes", "stats_wa"), _COMMITS),
    **dict.fromkeys(("show_fsview_all", "show_fsview_latest", "show_logfile_metadata", "show_logfile_records"), _COMMITS),
    **dict.fromkeys(("delete_marker", "rollback_to_instant_time", "repair_deduplicate", "repair_corrupted_clean_files"), _ITSELF),
    **dict.fromkeys(("repair_add_partition_meta", "repair_overwrite_hoodie_props", "show_invalid_parquet"), _ITSELF),
    **dict.fromkeys(("copy_to_table", "copy_to_temp_view", "run_bootstrap", "hdfs_parquet_import"), _SELECT),
    **dict.fromkeys(("hive_sync", "validate_hoodie_sync", "show_bootstrap_mapping", "show_bootstrap_partitions"), _NO_CATALOG),
    **dict.fromkeys(("create_metadata_table", "delete_metadata_table", "init_metadata_table"), METADATA_STATEMENTS),
    **dict.fromkeys(("show_metadata_table_files", "show_metadata_table_partitions", "show_metadata_table_stats"), METADATA_STATEMENTS),
    "validate_metadata_table_files": METADATA_STATEMENTS,
    "truncate_table": "write TRUNCATE TABLE",
    "drop_partition": "write ALTER TABLE ... DROP PARTITION",
    "run_ttl": "delete old partitions by ALTER TABLE ... DROP PARTITION",
}
"""Other Hudi procedures, and what to use instead."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A checked call; only the table, which `table` names as the statement does, has not been looked up."""

    procedure: Procedure
    table: Parts
    values: Values
    limit: int | None

    def answer(self, table: TableServices) -> pa.Table:
        """Run the call on its table; returns at most `limit` rows."""
        return self.procedure.answer(table, self.values).slice(0, self.limit)


def prepare(call: Call) -> Prepared:
    """Check a call. Raises `UnsupportedSqlError` for an unknown procedure, and as `values_of`."""
    found = PROCEDURES.get(call.procedure.lower())
    if found is None:
        raise _unknown(call.procedure.lower())
    values = found.signature.values_of(call)
    return Prepared(found, plain(split_name(values[TABLE.name])), values, call.limit)


def _unknown(name: str) -> UnsupportedSqlError:
    if name in INSTEAD:
        return UnsupportedSqlError(f"CALL {name} is not available: {INSTEAD[name]}")
    near = difflib.get_close_matches(name, PROCEDURES, n=1, cutoff=0.75)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(PROCEDURES))}"
    return UnsupportedSqlError(f"there is no procedure {name}; {hint}")


def help_rows(call: Call) -> list[tuple[str, str]]:
    """Answer of `CALL help`: all procedures, or the given one, with arguments. Raises `UnsupportedSqlError`."""
    wanted = [str(value).lower() for _, value in call.arguments]
    if len(wanted) > 1:
        raise UnsupportedSqlError("CALL help takes the name of a procedure, or nothing")
    if wanted and wanted[0] not in PROCEDURES:
        raise _unknown(wanted[0])
    names = wanted or sorted(PROCEDURES)
    return [(name, ", ".join(PROCEDURES[name].signature.names)) for name in names][: call.limit]
