"""Finds the partitions in which a filter can find rows, by their paths, before they are listed.

A path determines the values of its rows if it is made only of them and every row is in the partition that its columns say. The files do not
prove either: a writer with a global index may update a record in its old partition, whatever its columns say now
(`hoodie.simple.index.update.partition.path=false`, in Hudi and here). This engine records that in the table's properties. Other writers do
not, so tables with their commits are pruned only by file footers, unless the reader says that paths can be trusted. Such a commit is on the
active timeline, or this engine recorded it when it archived it (where Hudi archives, newer commits of Hudi are on the timeline).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.errors import InstantNotFoundError, MetadataError
from lakehouse_engine.model.commit_metadata import WRITER_KEY
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.options import INDEX_TYPE, STORED_PREFIX
from lakehouse_engine.read.row_filter import Guaranteed, RowFilter
from lakehouse_engine.record.keys.partition_values import PathRules
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.view.table_state import TableState


@dataclass(frozen=True, slots=True)
class Scope:
    """Partitions that a read needs: all of them without `rules`."""

    wanted: RowFilter
    rules: PathRules | None
    _may: dict[str, bool] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, state: TableState, wanted: RowFilter, schema: pa.Schema, *, trusted: bool = False) -> Scope:
        """Set `trusted` if the reader knows that rows are where their columns say."""
        return cls(wanted, path_rules(state, schema, trusted=trusted))

    def within(self, partitions: Iterable[str]) -> list[str]:
        """The paths that may have rows for which the filter is true, sorted."""
        paths, rules, schema = sorted(set(partitions)), self.rules, self.wanted.schema
        if rules is None or not paths or not {column.name for column in rules.columns} & set(self.wanted.columns):
            return paths
        new = tuple(path for path in paths if path not in self._may)
        if new:
            told = _KNOWN.find((rules, schema, new), lambda: _Told.of(rules, new, schema))
            self._may.update(zip(new, told.may_hold(self.wanted), strict=True))
        return [path for path in paths if self._may[path]]


@dataclass(frozen=True, slots=True)
class _Told:
    """Guarantees that sorted paths give about their rows: for each run of `_RUN` paths, and for every path.

    Paths of a run are skipped if the filter cannot be true in the run, so finding a few of thousands of partitions takes few checks.
    """

    runs: Guaranteed
    paths: tuple[Guaranteed, ...]
    """Guarantees for the paths of each run."""

    @classmethod
    def of(cls, rules: PathRules, paths: Sequence[str], schema: pa.Schema) -> _Told:
        values = [rules.values(path) or [None] * len(rules.columns) for path in paths]
        runs = [values[start : start + _RUN] for start in range(0, len(values), _RUN)]
        ranges = Guaranteed.of([_between(rules, run) for run in runs], schema)
        return cls(ranges, tuple(Guaranteed.of([_exactly(rules, one) for one in run], schema) for run in runs))

    @property
    def weight(self) -> int:
        return 1 + sum(len(run.guarantees) for run in self.paths)

    def may_hold(self, wanted: RowFilter) -> list[bool]:
        """For each path, True if the filter can be true for a row there."""
        # If a filter rounds a column's numbers, Arrow would compare the rounded numbers with the unrounded bounds.
        chosen = [True] * len(self.paths) if wanted.rounds else wanted.may_hold_in(self.runs)
        asked = zip(chosen, self.paths, strict=True)
        return [may for run, paths in asked for may in (wanted.may_hold_in(paths) if run else [False] * len(paths.guarantees))]


_RUN = 32
_KNOWN: BoundedCache[_Told] = BoundedCache(100_000, lambda told: told.weight)
"""Partitions of the tables last read with a filter."""


def slices_of(state: TableState, as_of: str | None, scope: Scope | None) -> list[FileSlice]:
    """Slices of the current table (None) or as of an instant time; lists no files of partitions outside of the scope."""
    view = state.view
    if scope is None:
        paths: Sequence[str | None] = [None]
    else:
        # The commits know the partitions of the current table, but not those that were cleaned since an older moment.
        paths = within = scope.within(view.partitions() if as_of is not None else state.live_partitions())
        view.look_ahead(within)
    return [piece for path in paths for piece in (view.latest_slices(path) if as_of is None else view.slices_as_of(as_of, path))]


def path_rules(state: TableState, schema: pa.Schema, *, trusted: bool = False) -> PathRules | None:
    """What partition paths of the table say about every row in them; None if they say nothing or it is unknown (see above)."""
    rules = PathRules.of(state.config, schema)
    return rules if rules is not None and (trusted or _rows_are_where_they_say(state)) else None


def _rows_are_where_they_say(state: TableState) -> bool:
    try:
        return (
            paths_may_tell(state.config)
            and not has_other_writers(state, state.timeline.completed().writes())
            # The state's properties are older than its timeline, so they are read again in case they changed in between.
            and paths_may_tell(ConfigStore(state.storage).read())
        )
    except (MetadataError, InstantNotFoundError):
        return False


def paths_may_tell(config: TableConfig) -> bool:
    """True if the table's properties do not say that rows may be elsewhere than their columns say."""
    return not config.rows_keep_partitions and INDEX_TYPE.key in config.prefixed(STORED_PREFIX)


def may_be_foreign(state: TableState) -> bool:
    """True if another program may have written a file: it made the table, or a write on the active timeline."""
    try:
        is_ours = INDEX_TYPE.key in state.config.prefixed(STORED_PREFIX)
        return not is_ours or has_other_writers(state, state.timeline.completed().writes())
    except (MetadataError, InstantNotFoundError):
        return True


def has_other_writers(state: TableState, writes: Iterable[Instant]) -> bool:
    """True if another program made one of the completed writes; raises as `TableState.commit_metadata`."""
    return any(WRITER_KEY not in state.commit_metadata(write).extra_metadata for write in writes)


_Values = Sequence[pa.Scalar | None]


def _exactly(rules: PathRules, values: _Values) -> pc.Expression:
    """Expression that is true for every row in a partition with these values."""
    whole = pc.scalar(True)
    for column, value in zip(rules.columns, values, strict=True):
        if value is not None:
            name = pc.field(column.name)
            whole = whole & (name == value if value.is_valid else name.is_null())
    return whole


def _between(rules: PathRules, run: Sequence[_Values]) -> pc.Expression:
    """Expression that is true for every row in several partitions: bounds of the columns whose values all paths give."""
    whole = pc.scalar(True)
    for column, values in zip(rules.columns, zip(*run, strict=True), strict=True):
        known = [value.as_py() for value in values if value is not None and value.is_valid]
        if len(known) == len(values):
            name, kind = pc.field(column.name), column.type
            whole = whole & (name >= pa.scalar(min(known), kind)) & (name <= pa.scalar(max(known), kind))
    return whole
