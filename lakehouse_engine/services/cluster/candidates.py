"""Slices of a table that a clustering may take, by partition."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from lakehouse_engine.commit.versions import planned_groups
from lakehouse_engine.compat import UTC
from lakehouse_engine.engine import LocalRunner, looking_runner
from lakehouse_engine.errors import ClusteringError
from lakehouse_engine.files.footer import read_footer
from lakehouse_engine.index.bucket import BucketIndex
from lakehouse_engine.index.registry import load_index
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.instant import Action
from lakehouse_engine.options import ClusteringOptions, WriteOptions
from lakehouse_engine.services.cluster.order import SortOrder
from lakehouse_engine.services.cluster.partitions import selected
from lakehouse_engine.services.cluster.plan import Candidate
from lakehouse_engine.view.table_state import TableState

_AT_ONCE = 8
"""Footers that are read at once in an object store."""


def candidates(
    state: TableState, options: ClusteringOptions, *, only: Iterable[str] | None = None, now: datetime | None = None
) -> dict[str, list[Candidate]]:
    """Live slices that are in no plan of a pending service, of the partitions that the options select and, if given, that are in `only`.

    Raises `ClusteringError` for a partition of `only` that the table does not have.
    """
    known = state.live_partitions()
    asked = known if only is None else _checked(state, only, known)
    paths = selected(asked, options.selection, hour=(now or datetime.now(UTC)).hour)
    busy = planned_groups(state)
    pieces = [piece for path in paths for piece in state.view.latest_slices(path) if piece.group not in busy]
    in_order = _in_order(state, pieces, SortOrder.of(options))
    found: dict[str, list[Candidate]] = {path: [] for path in paths}
    for piece, is_in_order in zip(pieces, in_order, strict=True):
        found[piece.partition_path].append(Candidate(piece, is_in_order))
    return found


def _checked(state: TableState, only: Iterable[str], known: Iterable[str]) -> list[str]:
    asked, there = list(dict.fromkeys(only)), set(known)
    missing = [path for path in asked if path not in there]
    if missing:
        raise ClusteringError(f"the table has no partition {missing[0]!r} to cluster", table=state.config.name, partition=missing[0])
    return asked


def _in_order(state: TableState, pieces: list[FileSlice], order: SortOrder) -> list[bool]:
    """For each slice: True if it has no logs and its footer names the order. Opens only files that a replace commit may have made."""
    asked = [piece for piece in pieces if _may_be_clustered(state, piece)]
    runner = looking_runner(LocalRunner(1, waiting=_AT_ONCE), state.storage)
    texts = runner.run(lambda piece: _sorted_by(state, piece), asked, name="footers")
    named = {piece.group for piece, text in zip(asked, texts, strict=True) if text == order.text}
    return [piece.group in named for piece in pieces]


def _sorted_by(state: TableState, piece: FileSlice) -> str | None:
    assert piece.base_file is not None
    return read_footer(state.storage, piece.base_file).sorted_by


def _may_be_clustered(state: TableState, piece: FileSlice) -> bool:
    if piece.base_file is None or piece.log_files:
        return False
    made = state.timeline.completed().find(piece.base_instant)
    return made is None or made.action is Action.REPLACE_COMMIT


def keeps_slices_apart(state: TableState, options: WriteOptions) -> bool:
    """True if each slice has to be written alone, because its keys are those of a bucket. Raises as `load_index`, for example for buckets
    of consistent hashing.
    """
    return isinstance(load_index(state, options), BucketIndex)
