"""Findings of `verify` about names and sizes that no other part of repair handles: they stay, with their remedies."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from lakehouse_engine.repair.disorder import Disorder, DisorderKind
from lakehouse_engine.verify import DATA, Finding, FindingKind, verify
from lakehouse_engine.verify.ways_out import way_out
from lakehouse_engine.view.table_state import TableState

_WAYS = {
    FindingKind.CORRUPT_METAFILE: "no write that is known left files there: delete the directory, or put the file back from a backup",
    FindingKind.CORRUPT_PROPERTIES: "correct it there; `.hoodie/.aux/hoodie.properties` is as this engine wrote it last",
    FindingKind.LEFTOVER_FILE: "whoever holds the lock may be about to publish it",
}


def unhealed(state: TableState, known: Collection[str]) -> Iterator[Disorder]:
    """Findings about paths and instants that are not `known` disorders."""
    found = [finding for finding in verify(state, quick=True).findings if not _is_known(finding, known)]
    lost = [finding for finding in found if finding.kind in DATA]
    way = way_out(state, {finding.path for finding in lost}) if lost else ""
    for finding in found:
        if finding.kind in DATA:
            yield Disorder(DisorderKind.LOST_DATA, finding.path, f"{finding.message}: {way}")
        else:
            message = f"{finding.message}: {_WAYS.get(finding.kind, 'put the file back from a backup')}"
            yield Disorder(DisorderKind.BEYOND_REPAIR, finding.path, message)


def _is_known(finding: Finding, known: Collection[str]) -> bool:
    return finding.path in known or finding.path.rpartition("/")[2].partition(".")[0] in known
