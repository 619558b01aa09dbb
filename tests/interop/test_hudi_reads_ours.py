"""Apache Hudi reads every kind of table that we write, row by row and meta columns included, as we do and as hudi-rs does."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from tests.interop.client import HudiJudge
from tests.interop.tables import TABLES, check_answers, queries, read_ours
from tests.support.readers import assert_same_rows, read_with_hudi_rs
from tests.support.table_builder import TableBuilder

Tables = Callable[[str], TableBuilder]


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Our table of a kind, made when it is first asked for and then read by both Hudis."""
    warehouse = tmp_path_factory.mktemp("ours")
    return cache(lambda name: TABLES[name](warehouse))


@pytest.mark.parametrize("name", TABLES)
def test_hudi_and_we_read_the_same_rows(hudi: HudiJudge, ours: Tables, name: str) -> None:
    built = ours(name)
    check_answers(hudi, built, name)


@pytest.mark.parametrize("name", TABLES)
def test_hudi_rs_and_we_read_the_same_rows(ours: Tables, name: str) -> None:
    built = ours(name)
    built.check_snapshot()
    for query in queries(built, name):
        mine = read_ours(built, query)
        theirs = read_with_hudi_rs(built.path, as_of=query.as_of, begin=query.begin, end=query.end)
        # As of an instant hudi-rs has the columns of today, null in rows of then.
        assert_same_rows(theirs.select(mine.column_names) if query.as_of else theirs, mine)
