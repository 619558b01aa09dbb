"""What a caller wants to write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakehouse_engine.commit.expected import ExpectedState
from lakehouse_engine.commit.outcome import check_write_id
from lakehouse_engine.errors import OptionError
from lakehouse_engine.model.commit_metadata import WRITE_ID_KEY
from lakehouse_engine.model.constraints import Generated
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.write.batch.input import Input

MISSING = ("fail", "ignore")


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """One write.

    `data` is None for DELETE_PARTITION only; for DELETE it has key columns (or meta columns). `delete_keys` has keys to delete in the same
    commit in which `data` is upserted. `update_columns` restricts what an update changes. `partitions` are partition paths to replace.
    `extra_metadata` goes into the commit. `write_id` names the write: if the table has a commit with that id, nothing is written.

    `replace_schema` lets an INSERT_OVERWRITE_TABLE bring its own schema; with `redefines` the caller also redefines the generated columns,
    and the rows are stored as they come. `generated`: the table's generated columns that the rows have; if the table has others once it is
    locked, nothing is written.

    `replaced_rows` has `_hoodie_commit_seqno` of stored rows that go when `data` is added (without being compared with what is stored).
    `missing`: what to do with one that is no longer stored, "fail" or "ignore".

    `given_keys`: rows come from the table itself and carry their record key in `_hoodie_record_key`. `as_given`: rows were computed from
    stored ones and are stored as they are, including nulls, whatever the payload class would fill in or keep. `single_rows`: each row is
    meant for one stored row, or is new. Such a write raises `RepeatedKeyError` if one of its keys is stored more than once; with
    `replaced_rows` the rows are added whatever is stored under their keys.

    `expected`: what was read for the write. `expected_instant`: an instant (or another moment) after which no other writer may have changed
    the partitions that this write changes. `drop_deletions`: whether rows marked as deletions are left out of new file groups; None as in
    Hudi: by all operations but BULK_INSERT.
    """

    operation: WriteOperationType
    data: Input | None
    options: WriteOptions
    delete_keys: Input | None = None
    replaced_rows: Input | None = None
    missing: str = MISSING[0]
    update_columns: tuple[str, ...] | None = None
    partitions: tuple[str, ...] = ()
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    replace_schema: bool = False
    redefines: bool = False
    generated: tuple[Generated, ...] = ()
    given_keys: bool = False
    as_given: bool = False
    single_rows: bool = False
    expected: ExpectedState | None = None
    expected_instant: str | None = None
    write_id: str | None = None
    drop_deletions: bool | None = None

    def __post_init__(self) -> None:
        if self.write_id is not None:
            check_write_id(self.write_id)
        if self.missing not in MISSING or (self.replaced_rows is None and self.missing != MISSING[0]):
            raise OptionError(f"missing={self.missing!r} is for replace_rows, and one of {', '.join(MISSING)}")
        if WRITE_ID_KEY in self.extra_metadata:
            raise OptionError(f"extra_metadata has {WRITE_ID_KEY!r}, by which a commit is found again: give it as write_id")
