"""How rows for new file groups are distributed to tasks and ordered: Hudi's sort modes of a bulk insert."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_engine.compat import StrEnum
from lakehouse_engine.errors import OptionError
from lakehouse_engine.model.keys import PARTITION_PATH, RECORD_KEY
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.options.write import SORT_COLUMNS
from lakehouse_engine.sorting.columns import chosen_columns
from lakehouse_engine.sorting.layout import SortLayout
from lakehouse_engine.sorting.rows import sort_order, sort_rows


class SortMode(StrEnum):
    """Values of `hoodie.bulkinsert.sort.mode` (`BulkInsertSortMode`)."""

    NONE = "NONE"
    GLOBAL_SORT = "GLOBAL_SORT"
    PARTITION_SORT = "PARTITION_SORT"
    PARTITION_PATH_REPARTITION = "PARTITION_PATH_REPARTITION"
    PARTITION_PATH_REPARTITION_AND_SORT = "PARTITION_PATH_REPARTITION_AND_SORT"


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Distribution and order of rows. Picklable.

    `partition_columns` make the partition path. `order` has columns of keyed rows: the partition path first, then the option's, or the
    record key. If empty, rows keep their order.
    """

    mode: SortMode
    partition_columns: tuple[str, ...]
    order: tuple[str, ...]

    @classmethod
    def of(cls, options: WriteOptions, config: TableConfig, schema: pa.Schema) -> Arrangement:
        """Arrangement that a write's options ask for, for a table with these columns. Keys generated at insert are not sorted by.

        Raises `OptionError` for sort columns that do not exist or have no order.
        """
        mode = SortMode(options.sort_mode)
        named = _named(schema, options.sort_columns)
        whole = mode in (SortMode.GLOBAL_SORT, SortMode.PARTITION_SORT)
        keys = (RECORD_KEY,) if whole and config.record_key_fields else ()
        paths = (PARTITION_PATH,) if config.partition_fields and (whole or named) else ()
        return cls(mode, config.partition_fields, (*paths, *(named or keys)))

    def sorted(self, keyed: pa.Table) -> pa.Table:
        """Keyed rows in order."""
        return sort_rows(keyed, self.order, SortLayout.LINEAR) if self.order else keyed

    def places(self, columns: pa.Table) -> npt.NDArray[np.int64]:
        """Row numbers in order, by the columns of `order`."""
        return sort_order(columns, self.order, SortLayout.LINEAR)


def _named(schema: pa.Schema, columns: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(chosen_columns(schema, columns)) if columns else ()
    except OptionError as error:
        raise OptionError(f"{SORT_COLUMNS.key}={','.join(columns)}: {error.message}", **error.context) from None
