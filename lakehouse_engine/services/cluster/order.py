"""The order that a clustering brings rows into, and how it is written in plans and footers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_engine.model.keys import FILE_NAME, META_COLUMNS
from lakehouse_engine.options import ClusteringOptions
from lakehouse_engine.options.clustering import CLUSTERING_LAYOUT, SORT_COLUMNS, columns_named, layout_named
from lakehouse_engine.sorting.columns import chosen_columns
from lakehouse_engine.sorting.layout import SortLayout
from lakehouse_engine.sorting.rows import sort_order

SORTABLE_META_COLUMNS = tuple(name for name in META_COLUMNS if name != FILE_NAME)


@dataclass(frozen=True, slots=True)
class SortOrder:
    """Rows by `columns` (as they were: none), in a layout of `options.clustering.LAYOUTS`."""

    columns: tuple[str, ...] = ()
    layout: str = CLUSTERING_LAYOUT.default

    @classmethod
    def of(cls, options: ClusteringOptions) -> SortOrder:
        return cls(options.sort_columns, options.layout)

    @classmethod
    def planned(cls, params: Mapping[str, str], layout: str) -> SortOrder:
        """What a plan's `strategyParams` say. Hudi's do not name the layout, which its executors are told: then it is `layout`.

        Raises `ValueError`.
        """
        columns = columns_named(params.get(SORT_COLUMNS.key, ""))
        named = params.get(CLUSTERING_LAYOUT.key)
        return cls(columns, CLUSTERING_LAYOUT.default if not columns else layout if named is None else layout_named(named))

    @property
    def params(self) -> dict[str, str]:
        """As `strategyParams` of a plan. A linear one is not named, as by Hudi."""
        if not self.columns:
            return {}
        named = {} if self.layout == CLUSTERING_LAYOUT.default else {CLUSTERING_LAYOUT.key: self.layout}
        return {SORT_COLUMNS.key: ",".join(self.columns), **named}

    @property
    def text(self) -> str:
        """As footers of base files name it."""
        return f"{self.layout}:{','.join(column.lower() for column in self.columns)}"

    def checked(self, schema: pa.Schema) -> SortOrder:
        """The same of columns as a table spells them, whose user columns are `schema`. Raises `OptionError` for one that it does not have,
        or whose values have no order.
        """
        if not self.columns:
            return self
        known = pa.schema([*(pa.field(name, pa.string()) for name in SORTABLE_META_COLUMNS), *schema])
        return replace(self, columns=tuple(chosen_columns(known, self.columns)))

    def permutation(self, rows: pa.Table) -> npt.NDArray[np.int64]:
        """Numbers of the rows in their order; equal ones, and all where there are no columns, stay as they were."""
        return sort_order(rows, self.columns, SortLayout(self.layout)) if self.columns else np.arange(rows.num_rows, dtype=np.int64)
