"""Which rows a batch with deletions stores as deleted, and since when."""

from __future__ import annotations

from datetime import datetime, timezone

import pyarrow as pa
import pytest

from lakehouse_engine.errors import SchemaIncompatibleError
from lakehouse_engine.model.keys import DELETED_AT
from lakehouse_engine.record.merging.deletions import DeleteMarks
from lakehouse_engine.record.merging.soft_deletes import SoftDeletes, with_deleted_at

NOW, EARLIER = datetime(2026, 1, 2, tzinfo=timezone.utc), datetime(2026, 1, 1, tzinfo=timezone.utc)
SCHEMA = with_deleted_at(pa.schema([("id", pa.int64()), ("op", pa.string())]))
SOFT = SoftDeletes(DeleteMarks("op", "D"), NOW)


def rows(*given: tuple[int, str | None, datetime | None]) -> pa.Table:
    return pa.table(dict(zip(SCHEMA.names, map(list, zip(*given, strict=True)), strict=True)), schema=SCHEMA)


def test_marked_rows_are_deleted_now_or_since_they_say_and_lose_the_mark() -> None:
    found = SOFT.applied(rows((1, "D", None), (2, "D", EARLIER), (3, "I", None), (4, None, EARLIER)))
    assert found.equals(rows((1, None, NOW), (2, None, EARLIER), (3, "I", None), (4, None, EARLIER)))


def test_a_batch_without_marks_stays_as_it_is() -> None:
    given = rows((1, "I", None), (2, None, EARLIER))
    assert SOFT.applied(given) is given


@pytest.mark.parametrize(
    ("name", "kind"), [(DELETED_AT, pa.string()), (DELETED_AT, pa.timestamp("us")), (DELETED_AT.upper(), pa.timestamp("us", "UTC"))]
)
def test_another_column_of_that_name_is_refused(name: str, kind: pa.DataType) -> None:
    with pytest.raises(SchemaIncompatibleError, match="soft deletes keep their time"):
        with_deleted_at(pa.schema([("id", pa.int64()), (name, kind)]))
