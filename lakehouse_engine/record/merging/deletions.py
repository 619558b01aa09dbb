"""Rows that mark themselves as deletions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.model.keys import IS_DELETED


@dataclass(frozen=True, slots=True)
class DeleteMarks:
    """`_hoodie_is_deleted`, and optionally a `column` that holds `text` in deleting rows (`any_case` ignores case).

    Names match exactly, as in Hudi.
    """

    column: str = ""
    text: str = ""
    any_case: bool = False

    def columns(self, names: Sequence[str]) -> list[str]:
        """The `names` that `of` reads."""
        return [name for name in (IS_DELETED, self.column) if name and name in names]

    def of(self, table: pa.Table) -> npt.NDArray[np.bool_]:
        """Which rows are deletions; none if the table lacks the columns."""
        marked = np.zeros(table.num_rows, np.bool_)
        if IS_DELETED in table.column_names and pat.is_boolean(table.schema.field(IS_DELETED).type):
            marked |= np.asarray(pc.fill_null(table.column(IS_DELETED), False), dtype=np.bool_)
        if self.column and self.column in table.column_names:
            texts, wanted = table.column(self.column).cast(pa.string()), self.text
            if self.any_case:
                texts, wanted = pc.utf8_lower(texts), wanted.lower()
            marked |= np.asarray(pc.fill_null(pc.equal(texts, wanted), False), dtype=np.bool_)
        return marked


HUDI_MARK = DeleteMarks()
"""`_hoodie_is_deleted` only."""
