from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.growth import Size, measure

GROWTHS = {"partitions": (Size(20), Size(60)), "files": (Size(12, 2), Size(12, 5)), "commits": (Size(12, commits=8), Size(12, commits=30))}
FLAT = {"open", "second upsert", "point query", "plan of a snapshot"}


@pytest.mark.parametrize("what", GROWTHS)
@pytest.mark.parametrize(("kind", "index"), [("cow", "GLOBAL_SIMPLE"), ("mor", "BUCKET")])
def test_small_actions_on_a_known_table_make_as_many_calls_however_large_it_is(tmp_path: Path, kind: str, index: str, what: str) -> None:
    if (index, what) == ("BUCKET", "files"):
        pytest.skip("a bucket is one file")
    few, many = ({one.action: one.calls for one in measure(kind, index, size, str(tmp_path))} for size in GROWTHS[what])
    assert few.keys() == many.keys()
    assert {name: many[name] for name in FLAT} == {name: few[name] for name in FLAT}
