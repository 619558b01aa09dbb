"""Apache Hudi 1.2 reads the tables that we write in table versions 8 and 9 as we do, row by row and meta columns included; hudi-rs too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakehouse_engine.read.scan import plan_snapshot
from lakehouse_engine.view.table_state import TableState
from tests.interop.client import HudiJudge, Query
from tests.interop.judging import judging
from tests.interop.shared import NULLS_IN_LISTS, Shared, rows
from tests.interop.tables import TABLES, queries, read_ours
from tests.support.delta_history import KINDS, history
from tests.support.readers import assert_same_rows, first_difference, read_with_hudi_rs
from tests.support.table_builder import TableBuilder
from tests.support.versions import tables_of

VERSIONS = (8, 9)
COPY_ON_WRITE = ("simple", "complex", "nonpartitioned_two_keys", "keyless_partitioned", "evolved", "copied_chunks", "emptied_by_overwrite")
TURNING_POINTS = ("deletes while pending", "last updates")
LOGGED = ("deletes", "deleted keys again", "updates while pending", "deletes while pending", "compacted", "some columns", "elsewhere")
"""Steps of a history at whose ends logs say positions: of rows, of deletions, and of a base file that is not the newest any more."""
BY_POSITIONS = {"hoodie.merge.use.record.positions": "true"}


MERGED_BY_A_MODE = [kind for kind in KINDS if kind not in ("partial", "overwrite_with_ordering")]


@pytest.fixture(scope="session")
def hudi() -> Iterator[HudiJudge]:
    yield from judging("1.2.0")


def in_moments(state: TableState, query: Query) -> Query:
    """The query as Hudi asks it: by completion times."""
    given = {name: getattr(query, name) for name in ("as_of", "begin", "end", "read_optimized")}
    times = {name: state.order.moment(value) if isinstance(value, str) and len(value) > 3 else value for name, value in given.items()}
    return Query(**times)


def asked_of(built: TableBuilder, name: str) -> list[Query]:
    state = TableState.load(built.table._state.storage)
    return [in_moments(state, query) for query in queries(built, name)]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", COPY_ON_WRITE)
def test_copy_on_write_tables(hudi: HudiJudge, name: str, version: int, tmp_path: Path) -> None:
    with tables_of(version):
        built = TABLES[name](tmp_path)
    built.check_snapshot()
    asked = asked_of(built, name)
    for query, theirs in zip(asked, hudi.read_all(built.path, asked), strict=True):
        mine = read_ours(built, query)
        assert_same_rows(theirs, mine, what=str(query))
    assert_same_rows(read_with_hudi_rs(built.path), read_ours(built, Query()))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", MERGED_BY_A_MODE)
def test_merge_on_read_tables(hudi: HudiJudge, name: str, version: int, tmp_path: Path) -> None:
    with tables_of(version):
        made = history(tmp_path, name)
    pending, last = (made.moment(step) for step in TURNING_POINTS)
    asked = [(pending, Query()), (last, Query()), (last, Query(read_optimized=True))]
    asked += [(last, Query(as_of=last.instants[len(last.instants) // 2])), (last, Query(begin=last.instants[1], end=last.instants[-1]))]
    asked = [(moment, in_moments(TableState.load(moment.table._state.storage), query)) for moment, query in asked]
    answers = hudi.read_many([(moment.path, query) for moment, query in asked])
    for (moment, query), theirs in zip(asked, answers, strict=True):
        kind = "incremental" if query.begin is not None else "read_optimized" if query.read_optimized else "snapshot"
        mine = moment.table.to_arrow(meta_columns=True, query=kind, as_of=query.as_of, begin=query.begin, end=query.end)
        difference = first_difference(theirs, mine)
        assert difference is None, f"{moment.step}, {query}: {difference}"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_hudi_and_we_write_one_table_in_turns(hudi: HudiJudge, table_type: str, version: int, tmp_path: Path) -> None:
    with tables_of(version):
        built = TableBuilder.create(tmp_path / "t", partition_by=["region"], ordering="ts", table_type=table_type, index="SIMPLE")
    at_version = {"hoodie.write.table.version": str(version), "hoodie.write.auto.upgrade": "false"}
    built.insert(rows(range(8), 1))
    shared = Shared(built, hudi, index="SIMPLE", more=at_version, conf={**NULLS_IN_LISTS, **at_version})
    shared.upsert(rows(range(4, 12), 2))
    shared.check()
    built.upsert(rows(range(6, 16), 3))
    built.delete(rows([1, 7], 3))
    shared.check()
    shared.delete(rows([2, 12], 4))
    if table_type == "mor":
        shared.compact()
        built.upsert(rows(range(3, 9), 5))
        shared.compact_ourselves()
        shared.upsert(rows(range(5, 18), 6))
    pinned = shared.newest()
    built.table.savepoint(name="kept")
    built.upsert(rows(range(20), 7))
    built.table.restore("kept")
    built.model.go_back(pinned)
    shared.upsert(rows(range(10, 22), 8))
    built.upsert(rows(range(15, 25), 9))
    shared.check()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", [kind for kind in MERGED_BY_A_MODE if "evolved" not in kind])
def test_hudi_reads_our_logs_by_their_positions(hudi: HudiJudge, name: str, version: int, tmp_path: Path) -> None:
    with tables_of(version):
        made = history(tmp_path, name)
    moments = [made.moment(step) for step in LOGGED]
    answers = hudi.read_many([(moment.path, Query(options=BY_POSITIONS)) for moment in moments])
    for moment, theirs in zip(moments, answers, strict=True):
        difference = first_difference(theirs, moment.table.to_arrow(meta_columns=True))
        assert difference is None, f"{moment.step}: {difference}"


def by_positions(built: TableBuilder) -> list[bool]:
    """For each slice with logs whether we find its base rows by positions."""
    plan = plan_snapshot(TableState.load(built.table._state.storage))
    return [] if plan.reader is None else [plan.reader.merge(piece, ["id"]).known is not None for piece in plan.logged]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("ordering", ["ts", None])
def test_both_say_positions_and_read_by_them(hudi: HudiJudge, ordering: str | None, version: int, tmp_path: Path) -> None:
    with tables_of(version):
        built = TableBuilder.create(tmp_path / "t", partition_by=["region"], ordering=ordering, table_type="mor", index="SIMPLE")
    at_version = {"hoodie.write.table.version": str(version), "hoodie.write.auto.upgrade": "false", "hoodie.write.record.positions": "true"}
    more = {**at_version, **({} if ordering else {"hoodie.datasource.write.precombine.field": ""})}
    shared = Shared(built, hudi, index="SIMPLE", more=more, conf={**NULLS_IN_LISTS, **at_version})

    def check(*, valid: bool = True) -> None:
        shared.check()
        ours = built.check_snapshot()
        assert_same_rows(hudi.read(built.path, options=BY_POSITIONS), ours)
        found = by_positions(built)
        assert found
        assert all(found) if valid else not all(found)

    built.insert(rows(range(16), 1))
    shared.upsert(rows(range(4, 12), 2))
    check()
    built.upsert(rows(range(6, 14), 3))
    built.delete(rows([1, 7], 3))
    check()
    shared.delete(rows([2, 12], 4))
    check()
    built.upsert(rows(range(8, 12), 4, null_elements=False), columns=["name", "ts"])
    check()
    shared.upsert(rows([8, 9, 15], 5))
    check()
    built.upsert(rows([7, 9], 6))
    if ordering is not None:  # else one slice is written anew
        check()
    built.options["hoodie.write.record.positions"] = False
    built.upsert(rows([0, 3, 5, 9], 7))
    del built.options["hoodie.write.record.positions"]
    check(valid=False)
    assert built.table.rollback().rolled_back is not None
    built.model.go_back(sorted(built.model.snapshots)[-2])
    check()
    shared.compact()
    built.delete(rows([3, 4], 8))
    shared.upsert(rows([0, 5, 9], 9))
    check()
