"""The order into which a clustering brings rows, and its form in plans and footers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from lakehouse_engine.model.keys import FILE_NAME, META_COLUMNS
from lakehouse_engine.options import ClusteringOptions
from lakehouse_engine.options.clustering import CLUSTERING_LAYOUT, SORT_COLUMNS, columns_named, layout_named
from lakehouse_engine.sorting.columns import chosen_columns

SORTABLE_META_COLUMNS = tuple(name for name in META_COLUMNS if name != FILE_NAME)


@dataclass(frozen=True, slots=True)
class SortOrder:
    """Order by `columns` (empty: as they were), in a layout of `options.clustering.LAYOUTS`."""

    columns: tuple[str, ...] = ()
    layout: str = CLUSTERING_LAYOUT.default

    @classmethod
    def of(cls, options: ClusteringOptions) -> SortOrder:
        return cls(options.sort_columns, options.layout)

    @classmethod
    def planned(cls, params: Mapping[str, str], layout: str) -> SortOrder:
        """Order in a plan's `strategyParams`. Hudi's plans do not name the layout, which its executors get as an option: then it is
        `layout`.

        Raises `ValueError`.
        """
        columns = columns_named(params.get(SORT_COLUMNS.key, ""))
        named = params.get(CLUSTERING_LAYOUT.key)
        return cls(columns, CLUSTERING_LAYOUT.default if not columns else layout if named is None else layout_named(named))

    @property
    def params(self) -> dict[str, str]:
        """The order as `strategyParams` of a plan. A linear layout is not named, as in Hudi."""
        if not self.columns:
            return {}
        named = {} if self.layout == CLUSTERING_LAYOUT.default else {CLUSTERING_LAYOUT.key: self.layout}
        return {SORT_COLUMNS.key: ",".join(self.columns), **named}

    @property
    def text(self) -> str:
        """The order as footers of base files name it."""
        return f"{self.layout}:{','.join(column.lower() for column in self.columns)}"

    def checked(self, schema: pa.Schema) -> SortOrder:
        """The order with columns as the table spells them; `schema` has its user columns. Raises `OptionError` for a column that is
        missing, or whose values have no order.
        """
        if not self.columns:
            return self
        known = pa.schema([*(pa.field(name, pa.string()) for name in SORTABLE_META_COLUMNS), *schema])
        return replace(self, columns=tuple(chosen_columns(known, self.columns)))
