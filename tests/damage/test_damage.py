"""Every file of a table is damaged in every way: a read gives the right rows or an error that names the file, and `verify` finds it.

Of a part some files are damaged, in one bit each, others with each commit; LAKEHOUSE_DEPTH=full takes every file, and 50 bits of each.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.repair import Disorder, DisorderKind, RepairReport, repair
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.verify import verify
from tests.damage.tables import VARIANTS, Built, answer, build, copied, kind_of, opened, rows
from tests.damage.ways import WAYS, damages
from tests.support.depth import IS_FULL
from tests.support.untouched import files_below

MANY, FILES = ("commit", "timeline"), 4
"""Of these parts, which have the most files, so many are damaged."""
HISTORY = ("manifest", "version")
"""Parts of the history of versions 8 and 9."""
PARTS = ("base", "log", "metafile", "properties", "savepoint", "commit", "timeline", "archive", "kept", *HISTORY)


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Built]:
    known: dict[str, Built] = {}

    def get(variant: str) -> Built:
        if variant not in known:
            known[variant] = build(variant, tmp_path_factory.mktemp("damage"))
        return known[variant]

    return get


def cases(built: Built, part: str, way: str, seed: str) -> Iterator[tuple[str, Path]]:
    """The table with one file of `part` damaged, again and again; whole again afterwards. Empty files have nothing to lose."""
    names = [name for name in built.files() if kind_of(name) == part and (built.path / name).stat().st_size]
    names = [name for name in names if not untellable(part, way, name, names)]
    dice = random.Random(f"{seed}/{part}/{way}")
    for name in dice.sample(names, min(FILES, len(names))) if part in MANY and not IS_FULL else names:
        path = built.path / name
        data = path.read_bytes()
        for number, left in enumerate(damages(data, way, dice)):
            if left is None:
                path.unlink()
            else:
                path.write_bytes(left)
            yield f"{way} {number} of {name}", path
            path.write_bytes(data)


def untellable(part: str, way: str, name: str, commits: list[str]) -> bool:
    """Damage that makes another table that is whole, too: nothing rests on the newest commit, so that it is a dead write without its
    completed file.
    """
    return way == "delete" and part == "commit" and name == max(commits)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What is wrong with the answers, and the reads that refused."""

    wrong: list[str]
    refused: list[str]

    @classmethod
    def of(cls, built: Built, damaged: Path, *, named: bool) -> Outcomes:
        found = cls([], [])
        for name in built.reads:
            found.read(built, name, damaged.name if named else "")
        return found

    def read(self, built: Built, name: str, must_name: str) -> None:
        try:
            rows_read = answer(built.path, built.reads[name])
        except LakehouseError as error:
            self.refused.append(name)
            if must_name not in str(error):
                self.wrong.append(f"{name}: the error does not name the file: {error}")
        except Exception as error:  # noqa: BLE001 - an error that is not of the engine is what must not be
            self.wrong.append(f"{name}: {error!r}")
        else:
            if rows_read != built.answers[name]:
                self.wrong.append(f"{name}: {len(rows_read)} rows are not the {len(built.answers[name])} right ones")


def findings(built: Built) -> list[str]:
    """What `verify` says; a table that cannot be opened is an error of the command."""
    try:
        report = verify(opened(built.path).state)
    except LakehouseError as error:
        return [str(error)]
    return [f"{one.kind} {one.path}: {one.message}" for one in report.findings]


def has_part(variant: str, part: str) -> bool:
    kind, age, *later = variant.split("-")
    if part in HISTORY:
        return age == "archived" and bool(later)
    return not ((part == "log" and kind == "cow") or (part in ("archive", "kept") and age == "active"))


def parameters(ways: tuple[str, ...]) -> list[Any]:
    return [
        pytest.param(variant, part, way, id=f"{variant}-{part}-{way}")
        for variant in VARIANTS
        for part in PARTS
        for way in ways
        if has_part(variant, part)
    ]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_whole_table_has_no_findings(tables: Callable[[str], Built], variant: str) -> None:
    built = tables(variant)
    assert findings(built) == []
    assert {kind_of(name) for name in built.files()} >= {part for part in PARTS if has_part(variant, part)}
    assert {"snapshot", "read optimized", "savepoint", "all changes"} <= set(built.reads)


@pytest.mark.parametrize(("variant", "part", "way"), parameters(WAYS))
def test_reads_are_right_or_name_the_file_and_verify_finds_it(
    tables: Callable[[str], Built], seed: str, tmp_path: Path, variant: str, part: str, way: str
) -> None:
    built = copied(tables(variant), tmp_path / "t")
    wrong, tried = [], 0
    for case, path in cases(built, part, way, seed):
        tried += 1
        # Without the file there may be nothing that tells of it; what is damaged is there to be named.
        found = Outcomes.of(built, path, named=way != "delete" or part in ("base", "log"))
        wrong += [f"{case}: {one}" for one in found.wrong]
        if found.refused and not findings(built):
            wrong.append(f"{case}: verify finds nothing, and {', '.join(found.refused)} failed")
    assert tried
    assert wrong == []


@pytest.mark.parametrize(("variant", "part", "way"), parameters(("flip", "delete", "empty")))
def test_a_write_to_a_damaged_table_is_right_or_refused_before_anything_changes(
    tables: Callable[[str], Built], seed: str, tmp_path: Path, variant: str, part: str, way: str
) -> None:
    built = copied(tables(variant), tmp_path / "t")
    batch = rows(range(1, 4), 99, "a")
    whole = {row[1]: row[1:] for row in built.answers["snapshot"]}
    expected = sorted((whole | {row["id"]: tuple(row.values()) for row in batch.to_pylist()}).values())
    wrong = []
    for number, (case, _) in enumerate(cases(built, part, way, seed)):
        again = copied(built, tmp_path / str(number))
        before = files_below(again.path)
        done = False
        try:
            opened(again.path).upsert(batch)
            done = True
            found = sorted(row[1:] for row in answer(again.path, {}))
        except LakehouseError:
            # Of what it did not have to read, the write does not know; the read does.
            changed = set() if done else files_below(again.path).items() ^ before.items()
            if changed:
                wrong.append(f"{case}: refused, and files have changed: {sorted({Path(name).name for name, _ in changed})}")
            continue
        except Exception as error:  # noqa: BLE001 - as above
            wrong.append(f"{case}: {error!r}")
            continue
        if found != expected:
            wrong.append(f"{case}: {len(found)} rows after the upsert are not the {len(expected)} right ones")
    assert wrong == []


def repaired(built: Built) -> tuple[RepairReport | None, str]:
    """What `repair` did, and what is wrong with it: a dry run that says something else, or findings that nobody told of."""
    storage = LocalStorage(str(built.path))
    before = files_below(built.path)
    try:
        would = repair(storage, lock_timeout_ms=1000, dry_run=True)
    except LakehouseError as error:
        # Without properties, and without a copy of them, nothing of the table can be told.
        return None, "" if "hoodie.properties" in str(error) else str(error)
    if files_below(built.path) != before:
        return would, "the dry run has changed files"
    report = repair(storage, lock_timeout_ms=1000)
    done, said = ({(one.kind, one.what) for one in found.repaired} for found in (report, would))
    if not said <= done:
        return report, f"the dry run said {said}, and {done} was done"
    told = {one.what for one in report.left}
    still = [one for one in verify(opened(built.path).state, quick=True).findings if one.path not in told]
    return report, f"{still} is in no report" if still else ""


def led_out(built: Built, left: list[Disorder]) -> Iterator[str]:
    """What is wrong with the way out that is told of lost rows, where there is one without a backup."""
    ways = {found[0]: found for one in left if (found := re.search(r"`restore --(to|savepoint) (\w+)`", one.message))}
    for way in ways.values():
        again = copied(built, built.path.parent / f"{built.path.name}-restored")
        table = opened(again.path)
        table.restore(**{way[1]: way[2]}, cascade=True)  # type: ignore[arg-type]
        yield from (f"after {way[0]}: {one}" for one in findings(again))
        shutil.rmtree(again.path)


def repair_cases() -> list[Any]:
    """A file of rows that is damaged inside is found by who reads it, which is `verify`."""
    ways = ("flip", "empty", "delete")
    return [one for one in parameters(ways) if one.values[1:] not in (("base", "flip"), ("log", "flip"))]


@pytest.mark.parametrize(("variant", "part", "way"), repair_cases())
def test_repair_leads_out_of_damage_or_says_what_does(
    tables: Callable[[str], Built], seed: str, tmp_path: Path, variant: str, part: str, way: str
) -> None:
    built = copied(tables(variant), tmp_path / "t")
    wrong = []
    for number, (case, path) in enumerate(cases(built, part, way, seed)):
        if not findings(built):
            continue
        again = copied(built, tmp_path / str(number))
        report, told = repaired(again)
        if told:
            wrong.append(f"{case}: {told}")
        still = report.left if report else ()
        left = [one for one in still if fnmatch(path.name, Path(one.what).name) or one.kind is DisorderKind.LOST_DATA]
        if left and part in ("base", "log"):
            wrong += [f"{case}: {one}" for one in led_out(again, left)]
        found = Outcomes.of(again, path, named=False)
        # A savepoint that is made anew has lost its name; its instant is read as before.
        nameless = {"savepoint"} if part == "savepoint" else set()
        if not left and (found.wrong or set(found.refused) - nameless):
            wrong.append(f"{case}: repaired {report}, and left {found.wrong} {found.refused} {findings(again)}")
    assert wrong == []
