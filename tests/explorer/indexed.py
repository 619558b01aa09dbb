"""Who meets whom on tables with a metadata table, whose record index says where keys are."""

from __future__ import annotations

from functools import partial

from lakehouse_engine.errors import RollbackError
from lakehouse_engine.options import ServiceOptions
from lakehouse_engine.services.metadata import building, indexes
from lakehouse_engine.services.metadata.upkeep import run_due
from tests.explorer import actors as do
from tests.explorer.scenarios import A2, A5, A6, B2, B5, BOTH, D1, E1, G1, MOR, Scenario, Start, aged, plain, saved
from tests.explorer.services import CLUSTERING, COMPACTION
from tests.explorer.turns import CRASH, LOST

_BY_INDEX = {"hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX", "hoodie.metadata.enable": "true"}
_DUE = ServiceOptions.read({"hoodie.metadata.compact.max.delta.commits": 1})


def _serve_metadata() -> do.Act:
    """Compaction, clean and archiving of the metadata table, as behind a write."""
    return lambda me: me.attempt(lambda: run_due(me.table.state, _DUE, me.table.runner, lock_timeout_ms=60_000))


def _build() -> do.Act:
    """The record index, built beside writers."""
    return lambda me: me.attempt(lambda: indexes.create(me.table.storage, "record_index", lock_timeout_ms=60_000))


def _listed(kind: str) -> Start:
    """With a list of files, and no index."""
    start = plain(kind, {"hoodie.index.type": "GLOBAL_SIMPLE"})
    building.build(start.disk, [], lock_timeout_ms=5000)
    return start


_plain, _saved, _aged = (partial(start, properties=_BY_INDEX) for start in (plain, saved, aged))
_compaction, _clustering = (partial(service.planned, properties=_BY_INDEX) for service in (COMPACTION, CLUSTERING))
_OTHER_A = ("a", 2, "x", "other")
_scenario = partial(Scenario, has_metadata=True)

INDEXED = (
    _scenario("indexed: two upserts of one file", _plain, {"one": do.upsert(A2, D1), "two": do.upsert(_OTHER_A, B2)}),
    _scenario("indexed: one new key", _plain, {"one": do.upsert(G1, D1), "two": do.upsert(("d", 1, "x", "other"))}),
    _scenario("indexed: upsert and delete", _plain, {"one": do.upsert(A2, D1), "two": do.delete("a", "c")}),
    _scenario("indexed: services of the metadata table", _plain, {"serves": _serve_metadata(), "one": do.upserts([A2, D1], [E1])}),
    _scenario(
        "indexed: compaction beside writes",
        _compaction,
        {"runs": COMPACTION.run, "one": do.upsert(A5), "two": do.upsert(B5, A6)},
        kinds=(MOR,),
    ),
    _scenario(
        "indexed: clustering beside writes",
        _clustering,
        {"runs": CLUSTERING.run, "one": do.upsert(A5), "two": do.insert(D1)},
        may_fail={"runs": CLUSTERING.outrun},
    ),
    _scenario("indexed: clean and archive", _aged, {"serves": do.in_turn(do.clean(), do.archive()), "one": do.upsert(A5)}),
    _scenario("indexed: restore beside a write", _saved, {"restores": do.restore("good"), "one": do.upsert(A5, D1)}),
    _scenario(
        "indexed: rollback beside a write",
        _saved,
        {"back": do.rollback(), "one": do.upsert(B5)},
        may_fail={"back": (RollbackError,)},
    ),
    _scenario(
        "indexed: dying writers",
        _plain,
        {"one": do.upsert(A2, D1), "two": do.upsert(_OTHER_A)},
        faults=(CRASH, LOST),
        faulty=("one",),
    ),
    _scenario(
        "indexed: a dying executor of a compaction",
        _compaction,
        {"runs": COMPACTION.run, "one": do.upsert(A5)},
        kinds=(MOR,),
        faults=(CRASH,),
        faulty=("runs",),
    ),
    _scenario(
        "indexed: dying services of the metadata table",
        _plain,
        {"serves": _serve_metadata(), "one": do.upserts([A2, D1], [E1])},
        kinds=BOTH,
        faults=(CRASH,),
        faulty=("serves",),
    ),
    _scenario("indexed: an index build beside writes", _listed, {"builds": _build(), "one": do.upserts([A2, D1]), "two": do.delete("b")}),
    _scenario(
        "indexed: an index build, and wrong clocks",
        _listed,
        {"builds": _build(), "one": do.upserts([A2, D1], [E1])},
        skews={"builds": 200.0, "one": -200.0},
    ),
    _scenario(
        "indexed: a dying index build",
        _listed,
        {"builds": _build(), "one": do.upserts([A2, D1], [E1])},
        faults=(CRASH,),
        faulty=("builds",),
    ),
)
