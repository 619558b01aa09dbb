"""Runs all checks of a table; a finding does not stop later checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from lakehouse_engine.errors import ContradictoryPropertiesError, LakehouseError, UnsupportedTableError, UnsupportedTypeError
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.timeline.config_store import PROPERTIES
from lakehouse_engine.verify.agreement import check_agreement
from lakehouse_engine.verify.files import check_contents, check_missing, check_moment, check_sizes, is_asked
from lakehouse_engine.verify.keys import check_keys
from lakehouse_engine.verify.metadata import (
    check_archive,
    check_checkpoints,
    check_kept,
    check_leftovers,
    check_metafiles,
    check_properties,
    check_timeline,
)
from lakehouse_engine.verify.moments import check_moments
from lakehouse_engine.verify.report import DATA, Finding, FindingKind, Progress, VerifyReport
from lakehouse_engine.verify.ways_out import way_out
from lakehouse_engine.view.table_state import TableState

Result = TypeVar("Result")


_LOOKS_AGAIN = 3
"""Number of checks of a table that changes meanwhile. The first one settles everything except findings without a path."""
_OF_CONTENTS = frozenset(
    (FindingKind.UNREADABLE_FILE, FindingKind.NEWER_ROWS, FindingKind.DUPLICATE_KEY, FindingKind.CORRUPT_PROPERTIES)
)
"""Findings that a quick check cannot have."""


def _silent(what: str, done: int, total: int) -> None:
    """Default callback: no progress is reported."""


def verify(state: TableState, *, quick: bool = False, progress: Progress = _silent) -> VerifyReport:
    """Check a table as of `state`. Everything wrong becomes a finding, never an exception.

    Decodes every metadata file, and compares every data file of the table, its earlier commits and its savepoints with its recorded size.
    Unless `quick`, reads each of them completely, with all checksums, and compares key columns per partition, or over the whole table if
    the index is global. If an instant of the active timeline is damaged, what depends on it is skipped, and `skipped` says so. If others
    change the table meanwhile, a finding counts only if it is still there in the new state. Raises only what opening the storage raises.
    """
    report = _Verification(state, progress).run(quick=quick)
    for _ in range(_LOOKS_AGAIN):
        now = None if report.ok else state.refresh()
        if now is None or (now.is_still(state) and not state.view.rests_on_kept):
            break
        report, state = _still_there(report, now, quick=quick), now
    return report


def _still_there(report: VerifyReport, now: TableState, *, quick: bool) -> VerifyReport:
    """The report with findings that also hold in a later state. Only data files with a finding are read again."""
    asked = frozenset(finding.path for finding in report.findings)
    kinds = {finding.kind for finding in report.findings}
    known = {_identity(finding) for finding in report.findings}
    again = _Verification(now, _silent, asked, all_keys=FindingKind.DUPLICATE_KEY in kinds)
    again.run(quick=quick or kinds.isdisjoint(_OF_CONTENTS))
    again.findings = {key: finding for key, finding in again.findings.items() if _identity(finding) in known}
    return replace(report, findings=tuple(again.findings.values()), way_out=again.way_out())


def _identity(finding: Finding) -> tuple[FindingKind, str, str]:
    """Identity of a finding; without a path, its message."""
    return finding.kind, finding.path, "" if finding.path else finding.message


@dataclass(slots=True)
class _Verification:
    """`only`: paths of data files whose contents are checked (None: all). `all_keys`: check keys of all files anyway, because a duplicate
    may be in any two.
    """

    state: TableState
    progress: Progress
    only: frozenset[str] | None = None
    all_keys: bool = True
    findings: dict[tuple[FindingKind, str], Finding] = field(default_factory=dict)
    """The first finding of each kind for a path."""
    skipped: dict[str, None] = field(default_factory=dict)

    def run(self, *, quick: bool) -> VerifyReport:
        damaged = self._check_metadata()
        retained, slices, rows = 0, list[FileSlice](), 0
        sizes = self._attempt("sizes of files", lambda: check_sizes(self.state, damaged))
        if sizes is not None:
            retained = sizes[0]
            self._add(sizes[1])
        if damaged:
            # Without its commits the table's files cannot be told from leftovers, and further findings would be guesses.
            self.skipped["lost files and keys: instants of the timeline are damaged"] = None
        else:
            slices = self._attempt("lost files", self._check_missing) or []
            order = self.state.order
            for moment in (None, *map(order.moment, order.sorted(self.state.timeline.savepointed))):
                self._attempt("reads", lambda moment=moment: self._add(check_moment(self.state, moment, quick=quick, only=self.only)))  # type: ignore[misc]
            self._attempt("earlier moments", self._check_moments)
            self._attempt("properties", lambda: self._add(check_agreement(self.state, quick=quick)))
        if not quick:
            self._attempt("contents of files", lambda: self._add(check_contents(self.state, damaged, self.progress, self.only)))
            rows = self._check_keys(slices if self.all_keys else [piece for piece in slices if is_asked(piece, self.only)])
        return self._report(slices, rows, retained)

    def _check_metadata(self) -> set[Instant]:
        damaged = set()
        for instant, finding in check_timeline(self.state):
            damaged.update({instant} if instant.is_completed else {one for one in self.state.timeline if _is_at(one, instant)})
            self._add([finding])
        for check in (check_archive, check_checkpoints, check_kept, check_properties, check_metafiles, check_leftovers):
            self._attempt("metadata", lambda check=check: self._add(check(self.state)))  # type: ignore[misc]
        return damaged

    def _check_missing(self) -> list[FileSlice]:
        slices = self.state.view.latest_slices()
        known = {path for _, path in self.findings}
        self._add(finding for finding in check_missing(self.state, slices) if finding.path not in known)
        return slices

    def _check_moments(self) -> None:
        known = {path for _, path in self.findings}
        self._add(finding for finding in check_moments(self.state) if finding.path not in known)

    def _check_keys(self, slices: list[FileSlice]) -> int:
        found = self._attempt("keys", lambda: check_keys(self.state, slices))
        if found is None:
            return 0
        rows, findings, skipped = found
        known = {path for _, path in self.findings}
        self._add(finding for finding in findings if finding.path not in known)
        self.skipped.update(dict.fromkeys(skipped))
        return rows

    def _attempt(self, what: str, check: Callable[[], Result]) -> Result | None:
        """Result of a check; None if it could not run, which is a finding unless the engine refuses such tables."""
        try:
            return check()
        except ContradictoryPropertiesError as error:
            self._add([Finding(FindingKind.CORRUPT_PROPERTIES, PROPERTIES, error.message)])
        except (UnsupportedTableError, UnsupportedTypeError) as error:
            self.skipped[f"{what}: {error.message}"] = None
        except LakehouseError as error:
            path = error.context.get("path", "")
            if path in {known for _, known in self.findings}:
                self.skipped[f"{what}, as far as they need {path}"] = None
            else:
                self._add([Finding(FindingKind.UNREADABLE_FILE, path, error.message)])
        return None

    def _add(self, found: Iterable[Finding | str]) -> None:
        for one in found:
            if isinstance(one, str):
                self.skipped[one] = None
            else:
                self.findings.setdefault((one.kind, one.path), one)

    def way_out(self) -> str | None:
        found = self.findings.values()
        lost = {one.path for one in found if one.kind in DATA and not one.path.startswith(".hoodie/")}
        ways = [f"data files: {way_out(self.state, lost)}"] if lost else []
        if any(one.kind is FindingKind.DUPLICATE_KEY for one in found):
            ways.append("keys that are stored twice: delete them and write them again")
        if any(one.kind not in (*DATA, FindingKind.DUPLICATE_KEY) or one.path.startswith(".hoodie/") for one in found):
            ways.append("metadata: `repair` sees to it or says who does (`repair --dry-run` first)")
        return "; ".join(ways) or None

    def _report(self, slices: list[FileSlice], rows: int, retained: int) -> VerifyReport:
        last = self.state.timeline.completed().writes().last()
        return VerifyReport(
            table=self.state.config.name,
            instant=last.requested_time if last else None,
            instants=len(self.state.timeline),
            files=sum((piece.base_file is not None) + len(piece.log_files) for piece in slices),
            bytes=sum(piece.size for piece in slices),
            rows=rows,
            retained_files=retained,
            findings=tuple(self.findings.values()),
            skipped=tuple(self.skipped),
            way_out=self.way_out(),
        )


def _is_at(instant: Instant, state: Instant) -> bool:
    """True if a damaged requested or inflight file matters to an instant: it is not completed."""
    return instant.requested_time == state.requested_time and not instant.is_completed
