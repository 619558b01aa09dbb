"""Who meets whom on tables of version 9, whose writers make their files at once."""

from __future__ import annotations

from functools import partial

from lakehouse_engine.errors import CommitConflictError, InstantCleanedError, MissingFileError, RollbackError, TimelineRestoredError
from tests.explorer import actors as do
from tests.explorer.scenarios import A2, A5, B2, C2, D1, E1, F1, G1, NINE, Scenario, aged, logged, plain, saved
from tests.explorer.turns import CRASH, LOST, PAUSE

_plain, _logged, _saved = partial(plain, properties=NINE), partial(logged, properties=NINE), partial(saved, properties=NINE)
_aged = partial(aged, properties=NINE)

_A, _C = ("a", 0, "x", ""), ("c", 0, "y", "")
_OTHER_A, _OTHER_D = ("a", 2, "x", "other"), ("d", 1, "x", "other")

AT_ONCE = (
    Scenario("at once: two upserts of one file", _plain, {"one": do.upsert(A2, D1), "two": do.upsert(_OTHER_A, B2)}),
    Scenario("at once: one new key", _plain, {"one": do.upsert(D1), "two": do.upsert(_OTHER_D)}),
    Scenario("at once: a new partition", _plain, {"one": do.upsert(G1), "two": do.upsert(("g", 1, "w", "other"))}),
    Scenario("at once: two inserts into one small file", _plain, {"one": do.insert(D1), "two": do.insert(E1)}),
    Scenario("at once: other partitions and a reader", _plain, {"one": do.upsert(A2), "two": do.upsert(C2, F1), "reads": do.reader()}),
    Scenario("at once: upserts and a follower", _plain, {"one": do.upserts([A2], [B2]), "two": do.upsert(C2), "follows": do.follower()}),
    Scenario("at once: upsert, delete and overwrite", _plain, {"one": do.upsert(A2, D1), "two": do.remove(_A), "three": do.overwrite(E1)}),
    Scenario("at once: two counters", _plain, {"one": do.increment_by_state("n"), "two": do.increment_by_instant("n")}),
    Scenario("at once: a counter and other partitions", _plain, {"one": do.increment_by_instant("n"), "two": do.upserts([C2], [F1])}),
    Scenario(
        "at once: wrong clocks",
        _plain,
        {"one": do.upserts([A2], [C2]), "two": do.upserts([_OTHER_A])},
        skews={"one": 200.0, "two": -200.0},
    ),
    Scenario("at once: savepoint beside writes", _plain, {"one": do.upsert(A2), "saves": do.savepoint(), "two": do.upsert(C2)}),
    Scenario(
        "at once: restore beside a write",
        _saved,
        {"restores": do.restore("good"), "one": do.upsert(A5, D1), "two": do.upsert(C2)},
    ),
    Scenario(
        "at once: restore beside a reader",
        _saved,
        {"restores": do.restore("good"), "one": do.upsert(A5), "reads": do.reader()},
        may_fail={"reads": (TimelineRestoredError, MissingFileError)},
    ),
    Scenario(
        "at once: rollback beside writes",
        _logged,
        {"back": do.rollback(), "one": do.upsert(A5), "two": do.upsert(C2)},
        may_fail={"back": (RollbackError, CommitConflictError)},
    ),
    Scenario("at once: clean beside writes", _aged, {"cleans": do.clean(), "one": do.upsert(A5), "two": do.upsert(C2)}),
    Scenario(
        "at once: clean and archive beside a write",
        _aged,
        {"serves": do.in_turn(do.clean(), do.archive()), "one": do.upsert(A5), "two": do.upsert(("a", 5, "x", "a6"))},
        may_fail={"serves": (InstantCleanedError,)},
    ),
    Scenario("at once: another column meanwhile", _plain, {"one": do.upsert_staged(A2, D1), "adds": do.add_column("w")}),
    Scenario(
        "at once: dying writers",
        _plain,
        {"one": do.upsert(A2, D1), "two": do.upsert(_OTHER_A), "three": do.upsert(C2)},
        faults=(CRASH, LOST),
        faulty=("one",),
    ),
    Scenario(
        "at once: writers that pause",
        _plain,
        {"one": do.upsert(A2, D1), "two": do.upsert(C2)},
        faults=(PAUSE,),
        faulty=("one",),
        machines=True,
    ),
    Scenario(
        "at once: a counter that dies",
        _plain,
        {"one": do.increment_by_state("n"), "two": do.increment_by_instant("n")},
        faults=(CRASH, PAUSE),
        faulty=("one",),
        machines=True,
    ),
)
