"""Random histories of tables against plain dicts: after each step the table holds what the model holds.

Every sequence is made of its number alone; a failure names it, and prints the fewest of its steps that fail. After each step the snapshot,
the newest instant, a random one and the changes between them are compared, and all instants and changes after steps that may touch what
was there. At the end every instant that there ever was and every savepoint is read, in all kinds of queries.
"""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from lakehouse_engine.read import indexed as indexed_reads
from tests.model_based.histories import History, Make, Refused, Step, replay, shrunk
from tests.support.depth import IS_FULL

SEQUENCES = int(os.environ.get("LAKEHOUSE_MODEL_SEQUENCES", "100"))
FIRST = int(os.environ.get("LAKEHOUSE_MODEL_SEED", "0"))
STEPS = 15
_BLOCK = 25
BLOCKS = [str(first) for first in range(FIRST, FIRST + SEQUENCES, _BLOCK)]
LATER_BLOCKS = [str(first) for first in range(FIRST + 1000, FIRST + 1000 + SEQUENCES // 2, _BLOCK)]
_WITH_METADATA = 8
WITH_METADATA = [str(first) for first in range(FIRST + 2000, FIRST + 2000 + (SEQUENCES if IS_FULL else _WITH_METADATA), _WITH_METADATA)]
_HARMLESS = ("bulk_insert", "insert", "upsert", "upsert_columns", "delete", "schedule", "savepoint", "delete_savepoint")


def run(number: int, version: int = 6, *, indexed: bool = False) -> Counter[str]:
    """One sequence; how many of its steps applied, and how many of its instants and ranges were read at the end."""
    chance = random.Random(number)
    history, steps = History(Make.random(chance, version, indexed=indexed)), list[Step]()
    tried = 0
    try:
        while len(steps) < STEPS and tried < 4 * STEPS:
            tried += 1
            step = history.propose(chance)
            steps.append(step)
            try:
                history.do(step)
            except Refused:
                steps.pop()
                continue
            history.check(chance, every=step.name not in _HARMLESS or len(steps) == STEPS)
        counted = history.check_everything()
    except Exception as error:
        few = shrunk(history.make, steps) if replay(history.make, steps) else steps
        script = "\n  ".join(str(step) for step in few)
        raise AssertionError(f"sequence {number}: {history.make}\n  {script}\n{replay(history.make, few) or error!r}") from error
    return counted + Counter(steps=len(steps))


@pytest.mark.parametrize("first", BLOCKS)
def test_random_histories_equal_the_model_after_each_step(first: str) -> None:
    check_block(range(int(first), min(int(first) + _BLOCK, FIRST + SEQUENCES)))


@pytest.mark.parametrize("first", LATER_BLOCKS)
def test_random_histories_on_a_later_version_equal_the_model(first: str) -> None:
    """Other numbers than those of version 6."""
    check_block(range(int(first), int(first) + _BLOCK), version=9)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("first", WITH_METADATA)
def test_random_histories_with_a_metadata_table_equal_the_model(first: str, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each step nothing is wrong with it, and what it answers is asked of it however few files there are."""
    monkeypatch.setattr(indexed_reads, "WORTH_ASKING", 0)
    check_block(range(int(first), int(first) + _WITH_METADATA), version, indexed=True)


def check_block(numbers: range, version: int = 6, *, indexed: bool = False) -> None:
    counted = sum((run(number, version, indexed=indexed) for number in numbers), Counter[str]())
    print(f"LAKEHOUSE_MODEL_SEED={numbers[0]}, version {version}: {len(numbers)} sequences, {dict(sorted(counted.items()))}")
    assert counted["steps"] >= 0.95 * STEPS * len(numbers)
    if len(numbers) < _BLOCK:
        return  # shares of few sequences say nothing
    # So that errors are no way to pass: most of what there was is there at the end.
    assert all(counted[f"{kind}read"] > 2 * counted[f"{kind}gone"] for kind in ("", "optimized ", "range "))
    assert counted["savepoints read"]
