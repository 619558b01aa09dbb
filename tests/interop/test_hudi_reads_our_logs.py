"""Apache Hudi reads every kind of merge-on-read table that we write as we do, row by row and meta columns included: after each commit of a
mixed load, before, while and after a compaction is pending, in every kind of query.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise

import pyarrow as pa
import pytest

from tests.interop.client import HudiJudge, Query
from tests.support.delta_history import KINDS, History, Moment, history
from tests.support.readers import first_difference

Histories = Callable[[str], History]

AFTER_EACH_COMMIT = ("simple", "nonpartitioned_avro")
"""Kinds that are read after each commit; the others at the turning points."""
EVERY_QUERY = "nonpartitioned_avro"
"""The kind that is read as of every instant and in every range of neighbouring ones."""
TURNING_POINTS = ("deletes while pending", "last updates")


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Histories:
    """Our table of a kind, made when it is first asked for and then read by both Hudis."""
    warehouse = tmp_path_factory.mktemp("logs")
    return cache(lambda name: history(warehouse, name))


def read_ours(moment: Moment, query: Query) -> pa.Table:
    if query.begin is not None:
        return moment.table.to_arrow(meta_columns=True, query="incremental", begin=query.begin, end=query.end)
    kind = "read_optimized" if query.read_optimized else "snapshot"
    return moment.table.to_arrow(meta_columns=True, query=kind, as_of=query.as_of)


def questions(made: History, name: str) -> list[tuple[Moment, Query]]:
    """Reads worth making; few of each where others like it have them all, as a read by Spark takes half a second."""
    pending, last = (made.moment(step) for step in TURNING_POINTS)
    asked = [(moment, Query()) for moment in (made.moments if name in AFTER_EACH_COMMIT else [pending, last])]
    asked += [(moment, Query(read_optimized=True)) for moment in (pending, last)]
    instants = last.instants
    middle = len(instants) // 2
    moments, ranges = [instants[middle]], [(instants[1], instants[-1])]
    if name == EVERY_QUERY:
        moments, ranges = list(instants), [*pairwise(instants), ("000", instants[middle]), *ranges]
        asked += [(pending, Query(begin=begin, end=end)) for begin, end in pairwise(pending.instants[-3:])]
    asked += [(last, Query(as_of=time)) for time in moments]
    return asked + [(last, Query(begin=begin, end=end)) for begin, end in ranges]


@pytest.mark.parametrize("name", KINDS)
def test_hudi_and_we_read_the_same_rows(hudi: HudiJudge, ours: Histories, name: str) -> None:
    made = ours(name)
    asked = questions(made, name)
    answers = hudi.read_many([(moment.path, query) for moment, query in asked])
    for (moment, query), theirs in zip(asked, answers, strict=True):
        difference = first_difference(theirs, read_ours(moment, query))
        assert difference is None, f"{moment.step}, {query}: {difference}"
