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

    `data` is None for DELETE_PARTITION only; for DELETE it has key columns (or meta columns). `delete_keys` has keys to delete in
    the same commit in which `data` is upserted. `update_columns` restricts what an update changes. `partitions` are partition paths
    to replace. `extra_metadata` goes into the commit. `replace_schema` lets an INSERT_OVERWRITE_TABLE bring its own schema; with
    `redefines` the caller says anew which columns are generated, and the rows are stored as they come. `generated`: the generated
    columns of the table that the rows have; where the table has others by the time it is locked, nothing is written.
    `replaced_rows` has `_hoodie_commit_seqno` of stored rows that go when `data` is added (without being compared with what is stored);
    `missing` says whether one that is not stored any more makes the write "fail", or is one to "ignore".
    `given_keys`: rows come from the table itself and carry their record key in `_hoodie_record_key`. `as_given`: rows were computed from
    stored ones, and what they hold is stored, nulls too, whatever the payload class would fill in or keep. `single_rows`: each row is
    meant for one stored row, or is new. By keys such a write raises `RepeatedKeyError` where one of them is stored more than once; beside
    `replaced_rows` the rows are added whatever is stored of their keys. `expected`: what was read for
    it. `expected_instant`: an instant (or another moment) after which nobody may have touched the partitions that this write changes.
    `write_id` names the write: where the table has a commit of that id, nothing is written. `drop_deletions`: whether rows that are
    marked as deletions are left out of new file groups; None as Hudi has it, by all operations but BULK_INSERT.
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
