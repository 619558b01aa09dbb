"""Result of a write for `run_results.json`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dbt.adapters.contracts.connection import AdapterResponse


@dataclass
class LakehouseResponse(AdapterResponse):
    """Fields of the commit; `files_created` and `files_updated` count base files, `bytes_written` is their size.

    `failed_services` holds messages of services that failed after the commit, which stands.
    """

    instant: str | None = None
    previous_instant: str | None = None
    operation: str | None = None
    table_type: str | None = None
    inserts: int | None = None
    updates: int | None = None
    deletes: int | None = None
    files_created: int | None = None
    files_updated: int | None = None
    log_files: int | None = None
    bytes_written: int | None = None
    failed_services: list[str] | None = None


def write_message(operation: str, inserts: int, updates: int, deletes: int, instant: str | None) -> str:
    """Line that dbt prints: `UPSERT 1,203 (12 new, 1,191 updated, 0 deleted) @20261121...`; `no new data` if nothing changed."""
    if instant is None:
        return f"{operation.upper()} 0 (no new data)"
    parts = [f"{count:,} {word}" for count, word in ((inserts, "new"), (updates, "updated"), (deletes, "deleted")) if count]
    detail = f" ({', '.join(parts)})" if parts else ""
    return f"{operation.upper()} {inserts + updates + deletes:,}{detail} @{instant}"


def held_back(response: AdapterResponse) -> AdapterResponse:
    """Result of a write to a copy of the table; its instant is not the table's."""
    if not isinstance(response, LakehouseResponse) or response.instant is None:
        return response
    message = response._message.replace(f" @{response.instant}", ", held back until its tests have passed")
    return replace(response, _message=message, instant=None, query_id=None)
