"""Changes to stored rows by position, for tables that hold a key more than once.

Statements work by key as long as each key that they touch is stored once, which the write checks on the way. Otherwise it raises
`RepeatedKeyError` before anything is changed, and the statement names each row by number and file.
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
    from lakehouse_engine.model.table_config import TableConfig
    from lakehouse_engine.statements.context import Execution
    from lakehouse_engine.table import HoodieTable

PLACE = (COMMIT_SEQNO, PARTITION_PATH, FILE_NAME)
"""Meta columns that identify a stored row and its file."""


@contextmanager
def held(run: Execution, query: str) -> Iterator[DataFrame]:
    """Compute the rows of a query once, so that all reads see the same ones, even with a random condition."""
    rows = run.spark.table(run.pins.keep(run.query(query))).cache()
    try:
        # Spark knows the size of cached rows.
        rows.count()
        yield rows
    finally:
        rows.unpersist()


def check_has_places(config: TableConfig, refused: DuplicateKeyError) -> None:
    """Raise `refused`, the error of the change by key, if rows have no meta columns with their position."""
    if not config.populates_meta_fields:
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
    """Remove the `replaced` rows (given by `PLACE`) and add `rows` in one commit; other rows of their keys stay.

    `given_keys`: rows carry the record key that they had.
    """
    return table.replace_rows(
        rows, replaced=replaced, given_keys=given_keys, as_given=True, single_rows=True, options=options, expected=expected
    )
