"""Changes of single stored rows by where they are, for tables that hold a key more than once.

Statements go by keys as long as each key they touch is stored once, which writing finds out without reading more. Where one is not, the
write raises `RepeatedKeyError` before anything is changed, and the statement names each of its rows by its number and file instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from lakehouse_engine.errors import DuplicateKeyError
from lakehouse_engine.model.keys import COMMIT_SEQNO, FILE_NAME, PARTITION_PATH
from lakehouse_engine.model.write_stats import WriteResult

if TYPE_CHECKING:
    from lakehouse_engine.commit.expected import ExpectedState
    from lakehouse_engine.statements.context import Execution
    from lakehouse_engine.table import HoodieTable

PLACE = (COMMIT_SEQNO, PARTITION_PATH, FILE_NAME)
"""Which stored row, and in which file."""


@contextmanager
def held(run: Execution, query: str) -> Iterator[DataFrame]:
    """Compute the rows of a query once, so that all readings see the same ones, also with a random condition."""
    rows = run.spark.table(run.pins.keep(run.query(query))).cache()
    try:
        # Spark knows the size of rows that are cached.
        rows.count()
        yield rows
    finally:
        rows.unpersist()


def check_has_places(table: HoodieTable, refused: DuplicateKeyError) -> None:
    """Raise `refused`, the error of the change by key, where rows have no meta columns that say where they are."""
    if not table.config.populates_meta_fields:
        raise refused


def by_row(
    table: HoodieTable,
    rows: Any,
    replaced: Any,
    expected: ExpectedState | None,
    *,
    given_keys: bool = False,
    options: Mapping[str, str] | None = None,
) -> WriteResult:
    """Take the `replaced` rows (their `PLACE`) away and add `rows`, in one commit; other rows of their keys stay.

    With `given_keys` rows carry the record key that they had.
    """
    return table.replace_rows(
        rows, replaced=replaced, given_keys=given_keys, as_given=True, single_rows=True, options=options, expected=expected
    )
