"""Size and health of a table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lakehouse_engine.compat import UTC
from lakehouse_engine.files.footer import read_footer
from lakehouse_engine.repair import UNSOLVED
from lakehouse_engine.table_services import TableServices
from lakehouse_engine.verify import verify
from lakehouse_engine.verify.metadata_table import MetadataReport, check_metadata_table
from lakehouse_engine.view.table_state import TableState

__all__ = ["MetadataReport", "Statistics", "check_metadata", "findings", "is_unsolved", "last_write", "statistics"]


@dataclass(frozen=True, slots=True)
class Statistics:
    """Figures of the newest slices. `rows` come from file footers; None if there are logs, which only a read merges."""

    rows: int | None
    bytes: int
    files: int
    last_commit: str | None
    last_operation: str | None


def statistics(state: TableState) -> Statistics:
    """Reads the footers of the newest base files."""
    newest = state.timeline.completed().writes().last()
    slices = list(state.view.latest_slices())
    bases = [piece.base_file for piece in slices if piece.base_file is not None]
    logs = [log for piece in slices for log in piece.log_files]
    return Statistics(
        rows=None if logs else sum(read_footer(state.storage, base).num_rows for base in bases),
        bytes=sum(max(size, 0) for size in (*(base.size for base in bases), *(log.size for log in logs))),
        files=len(bases) + len(logs),
        last_commit=newest.requested_time if newest else None,
        last_operation=str(state.commit_metadata(newest).operation_type).lower() if newest else None,
    )


def last_write(state: TableState) -> datetime | None:
    """Time of the newest completed write, in UTC; None without one."""
    newest = state.timeline.completed().writes().last()
    return _moment(newest.requested_time, state.config.timeline_timezone) if newest else None


def _moment(instant_time: str, zone: str) -> datetime:
    digits = instant_time.ljust(17, "0")[:17]
    moment = datetime.strptime(digits[:14], "%Y%m%d%H%M%S").replace(microsecond=int(digits[14:]) * 1000)  # noqa: DTZ007 - its zone is `zone`
    return moment.replace(tzinfo=UTC) if zone == "UTC" else moment.astimezone(UTC)


def findings(table: TableServices, *, quick: bool = False) -> tuple[str | None, list[str]]:
    """Newest completed write, and findings about the table with remedies last; no findings if it is whole.

    `quick` reads no data file.
    """
    report = verify(table.state, quick=quick)
    wrong = [f"{finding.kind} {finding.path}: {finding.message}" for finding in report.findings]
    return report.instant, wrong + ([f"way out: {report.way_out}"] if wrong and report.way_out else [])


def check_metadata(table: TableServices, *, quick: bool = False) -> MetadataReport:
    """Compare the table's metadata table with its files, footers and, unless `quick`, rows.

    Raises `UnavailableError` where it has none, `TableNotFoundError` where it is named and gone.
    """
    return check_metadata_table(table.state, quick=quick)


def is_unsolved(disorder: str) -> bool:
    """True if a repair may leave it for a person to act on."""
    return disorder in map(str, UNSOLVED)
