"""Which partitions a filter can find rows in, by their paths, before they are listed.

A path tells the values of its rows where it is made of nothing else, and every row is in the partition that its columns say. Neither
follows from the files: a writer with a global index may update a record in the partition that it is in, whatever its columns say now
(`hoodie.simple.index.update.partition.path=false`, in Hudi and here). This engine notes that in the table's properties; of other writers
nobody knows, and their tables are pruned by the footers of their files, unless the reader says that paths can be trusted. A commit of
theirs is on the active timeline, or it was when this engine archived it and noted that, too (Hudi, which archives, has newer ones there).
"""

from __future__ import annotations

from collections.abc import Iterable
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
    """The partitions that a read is about. Without `rules` that is all of them."""

    wanted: RowFilter
    rules: PathRules | None
    _may: dict[str, bool] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, state: TableState, wanted: RowFilter, schema: pa.Schema, *, trusted: bool = False) -> Scope:
        """`trusted`: the reader knows that rows are where their columns say."""
        return cls(wanted, path_rules(state, schema, trusted=trusted))

    def within(self, partitions: Iterable[str]) -> list[str]:
        """Those of the paths that may have rows for which the filter is true, sorted."""
        paths, rules, schema = sorted(set(partitions)), self.rules, self.wanted.schema
        if rules is None or not paths or not {column.name for column in rules.columns} & set(self.wanted.columns):
            return paths
        new = tuple(path for path in paths if path not in self._may)
        if new:
            sets = _KNOWN.find((rules, self.wanted.schema, new), lambda: Guaranteed.of([_guarantee(rules, path) for path in new], schema))
            self._may.update(zip(new, self.wanted.may_hold_in(sets), strict=True))
        return [path for path in paths if self._may[path]]


_KNOWN: BoundedCache[Guaranteed] = BoundedCache(100_000, lambda sets: 1 + len(sets.guarantees))
"""What paths tell, of the partitions of the last tables that were read by a filter."""


def slices_of(state: TableState, as_of: str | None, scope: Scope | None) -> list[FileSlice]:
    """The slices that make the table now (None) or as of an instant time; of partitions outside of the scope no file is listed."""
    view = state.view
    if scope is None:
        paths: list[str | None] = [None]
    else:
        # Of the table as it is now commits know the partitions; what was cleaned since an older moment they do not.
        paths = [*scope.within(view.partitions() if as_of is not None else state.live_partitions())]
    return [piece for path in paths for piece in (view.latest_slices(path) if as_of is None else view.slices_as_of(as_of, path))]


def path_rules(state: TableState, schema: pa.Schema, *, trusted: bool = False) -> PathRules | None:
    """What partition paths of the table tell of every row in them; None where they do not, or it is not known (see above)."""
    rules = PathRules.of(state.config, schema)
    return rules if rules is not None and (trusted or _rows_are_where_they_say(state)) else None


def _rows_are_where_they_say(state: TableState) -> bool:
    try:
        return (
            paths_may_tell(state.config)
            and not has_other_writers(state, state.timeline.completed().writes())
            # The state's properties are older than its timeline: what they say now counts, in case that changed in between.
            and paths_may_tell(ConfigStore(state.storage).read())
        )
    except (MetadataError, InstantNotFoundError):
        return False


def paths_may_tell(config: TableConfig) -> bool:
    """Whether nothing in the table's properties says that rows may be elsewhere than their columns say."""
    return not config.rows_keep_partitions and INDEX_TYPE.key in config.prefixed(STORED_PREFIX)


def has_other_writers(state: TableState, writes: Iterable[Instant]) -> bool:
    """Whether one of the completed writes is of another program; raises as `TableState.commit_metadata`."""
    return any(WRITER_KEY not in state.commit_metadata(write).extra_metadata for write in writes)


def _guarantee(rules: PathRules, path: str) -> pc.Expression:
    whole = pc.scalar(True)
    for column, value in zip(rules.columns, rules.values(path) or [None] * len(rules.columns), strict=True):
        if value is not None:
            name = pc.field(column.name)
            whole = whole & (name == value if value.is_valid else name.is_null())
    return whole
