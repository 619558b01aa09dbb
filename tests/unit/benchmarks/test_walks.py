"""What an action enters is counted once, and a value is followed from file to file."""

from __future__ import annotations

import sys

import pytest

from benchmarks.walks import ACTIONS, Walk, main, measured


@pytest.mark.parametrize("name", ACTIONS)
def test_every_action_enters_the_facade_and_leaves_nobody_watching(name: str) -> None:
    walk = measured(name)
    assert "table.py" in walk.functions
    assert all(walk.functions.values())
    assert sys.getprofile() is None


def test_a_value_is_followed_by_its_class() -> None:
    walk = measured("upsert_cow")
    assert walk.path[0] == "write/request.py"
    assert {"write/operation.py", "write/batches.py"} <= walk.rooms
    assert "storage/local.py" not in walk.rooms
    assert measured("upsert_cow", "Nothing").path == []


def test_a_return_is_a_stay_in_a_file_that_was_left() -> None:
    walk = Walk("Nothing", path=["a", "b", "a", "c", "b"])
    assert (len(walk.path), walk.rooms, walk.returns) == (5, {"a", "b", "c"}, 2)


def test_only_code_of_the_engine_counts() -> None:
    walk = Walk("WriteRequest")
    walk.enter(sys._getframe())
    assert not walk.functions


def test_the_table_has_a_line_for_each_action(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["upsert_cow", "--files"]) == 0
    told = capsys.readouterr().out
    assert "| upsert_cow |" in told
    assert "write/operation.py" in told
    with pytest.raises(SystemExit):
        main(["nothing"])
