"""Every file of a metadata table is lost, cut, changed in a bit, or an older one: no read has other rows for it, and no change loses any.

Reads and changes go on without the metadata table, or say which file is damaged and what to do. Of the files, bits and changes some are
tried, others with each commit; LAKEHOUSE_DEPTH=full takes every file, five bits of each, and two changes after each damage.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.metadata_table.table import METADATA_TABLE
from lakehouse_engine.storage.memory import MemoryStorage
from tests.damage.metadata_tables import CHANGES, PARTS, READS, VARIANTS, Indexed, Rows, Use, build, compacted, found, opened
from tests.damage.ways import WAYS, damages
from tests.support.depth import IS_FULL
from tests.support.metadata_checks import check_metadata

FILES, CHANGED_FILES = 4, 1
"""Of each part so many are damaged, and as many before a change."""
FLIPS, CHANGED = (5, 2) if IS_FULL else (1, 1)
"""Bits of a file, and changes of a damaged table."""
LAG = "older"
"""Older files are put back: all of the metadata table, or a folder of it."""
CASES = [*((part, way) for part in PARTS for way in WAYS), ("folder", LAG), ("whole", LAG)]
Damaged = tuple[str, MemoryStorage]
"""What was done, and the table after that."""


@pytest.fixture(scope="session")
def tables() -> Callable[[str], Indexed]:
    known: dict[str, Indexed] = {}

    def get(variant: str) -> Indexed:
        if variant not in known:
            known[variant] = build(variant)
        return known[variant]

    return get


@pytest.fixture(scope="session")
def answers(tables: Callable[[str], Indexed]) -> Callable[[str, Use], Rows]:
    """The rows of a whole table after a use of it."""
    known: dict[tuple[str, Use], Rows] = {}

    def get(variant: str, use: Use) -> Rows:
        if (variant, use) not in known:
            known[variant, use] = use(opened(tables(variant).copy()))
        return known[variant, use]

    return get


def damaged(built: Indexed, part: str, way: str, dice: random.Random, most: int) -> Iterator[Damaged]:
    if way == LAG:
        yield from older(built, part, dice, most)
        return
    for path in chosen(built.files(part), dice, most):
        for number, left in enumerate(damages(built.storage.read(path), way, dice, FLIPS)):
            storage = built.copy()
            if left is None:
                storage.delete(path)
            else:
                storage.overwrite(path, left)
            yield f"{way} {number} of {path}", storage


def older(built: Indexed, part: str, dice: random.Random, most: int) -> Iterator[Damaged]:
    folders = sorted({path.rpartition("/")[0] for path in built.earlier if not path.startswith(f"{METADATA_TABLE}/.hoodie")})
    for folder in [METADATA_TABLE] if part == "whole" else chosen(folders, dice, most):
        storage = built.copy()
        storage.delete_tree(folder)
        for path, content in built.earlier.items():
            if path.startswith(f"{folder}/"):
                storage.create(path, content)
        yield f"an older {folder}", storage


def chosen(names: list[str], dice: random.Random, most: int) -> list[str]:
    return names if IS_FULL else dice.sample(names, min(most, len(names)))


def changes(variant: str) -> tuple[Use, ...]:
    return (*CHANGES, compacted) if variant.startswith("mor") else CHANGES


def changed(storage: MemoryStorage, use: Use, expected: Rows, before: Rows) -> Iterator[str]:
    """What is wrong after a change of a damaged table."""
    try:
        rows = use(opened(storage))
    except LakehouseError as error:
        if METADATA_TABLE not in str(error) and "metadata" not in str(error):
            yield f"the error does not name the metadata table: {error}"
        if found(opened(storage)) != before:
            yield f"refused ({error}), and rows have changed"
        return
    except Exception as error:  # noqa: BLE001 - an error that is not of the engine is what must not be
        yield repr(error)
        return
    if rows != expected:
        yield f"{len(rows)} rows are not the {len(expected)} right ones"
    try:
        check_metadata(storage, may_be_damaged=True)
    except AssertionError as error:
        yield str(error)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_whole_metadata_table_has_no_findings_after_any_change(
    tables: Callable[[str], Indexed], answers: Callable[[str, Use], Rows], variant: str
) -> None:
    assert check_metadata(tables(variant).storage)
    assert all(tables(variant).files(part) for part in PARTS)
    for use in changes(variant):
        storage = tables(variant).copy()
        assert use(opened(storage)) == answers(variant, use)
        check_metadata(storage)


@pytest.mark.parametrize(("part", "way"), CASES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_reads_have_the_right_rows(
    tables: Callable[[str], Indexed], answers: Callable[[str, Use], Rows], seed: str, variant: str, part: str, way: str
) -> None:
    wrong = []
    for case, storage in damaged(tables(variant), part, way, random.Random(f"{seed}/{variant}/{part}/{way}"), FILES):
        for use in READS:
            try:
                rows = use(opened(storage))
            except Exception as error:  # noqa: BLE001 - a read does without the metadata table
                wrong.append(f"{case}, {use.__name__}: {error!r}")
                continue
            if rows != answers(variant, use):
                wrong.append(f"{case}, {use.__name__}: {len(rows)} rows are not the {len(answers(variant, use))} right ones")
    assert wrong == []


@pytest.mark.parametrize(("part", "way"), CASES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_changes_are_right_or_refused_with_the_file(
    tables: Callable[[str], Indexed], answers: Callable[[str, Use], Rows], seed: str, variant: str, part: str, way: str
) -> None:
    dice, before, wrong = random.Random(f"{seed}/{variant}/{part}/{way}/changes"), found(opened(tables(variant).storage)), []
    for case, storage in damaged(tables(variant), part, way, dice, CHANGED_FILES):
        for use in dice.sample(changes(variant), CHANGED):
            copy = Indexed(storage, {}).copy()
            wrong += [f"{case}, {use.__name__}: {one}" for one in changed(copy, use, answers(variant, use), before)]
    assert wrong == []
