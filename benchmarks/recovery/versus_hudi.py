"""Restores over two commits on tables of ten large files: ours in this process and as a command, Hudi's on a warm session."""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.checksum import checksum_of
from benchmarks.client import REPOSITORY, ContenderProcess
from benchmarks.contenders import CONTENDERS
from benchmarks.contenders.base import KEY, ORDERING
from benchmarks.data import SCHEMA, Prepared, read_tables
from benchmarks.environments import interpreter, jars
from benchmarks.measure import WrongResultError
from benchmarks.recovery.figures import Figure, Ratio
from benchmarks.series import batch_name
from benchmarks.tables import TableSpace
from lakehouse_engine import HoodieTable, Lakehouse

FILES = 10
COMMITS = 2
HUDI = {"cow": "hudi_ten_files", "mor": "hudi_mor_ten_files"}
_RESTORE = "restore over two commits, ten files, {kind}, {who}"
_SAVEPOINT = "savepoint, ten files, {kind}, {who}"
_COMMAND = "lakehouse, process start included"


@dataclass(frozen=True)
class Setting:
    """`work` is a folder for tables, `logs` one for the logs of Hudi's processes; `memory` as Spark writes it."""

    prepared: Prepared
    work: Path
    logs: Path
    memory: str
    repeats: int


def ratios() -> list[Ratio]:
    return [
        Ratio(
            f"restore over two commits, {kind}: at least 10x faster than Hudi",
            _RESTORE.format(kind=kind, who="Hudi"),
            _RESTORE.format(kind=kind, who="lakehouse_engine"),
            10,
            False,
        )
        for kind in HUDI
    ]


def figures(setting: Setting, *, hudi: bool) -> Iterator[Figure]:
    """Ours, then Hudi's, for both table types."""
    for kind in HUDI:
        yield from _guarded(_RESTORE.format(kind=kind, who="lakehouse_engine"), _ours(setting, kind))
    for kind in HUDI if hudi else ():
        yield from _guarded(_RESTORE.format(kind=kind, who="Hudi"), _hudi(setting, kind))


def _guarded(name: str, found: Iterator[Figure]) -> Iterator[Figure]:
    """What fails is a figure without times, and the rest still runs."""
    try:
        yield from found
    except Exception as error:  # noqa: BLE001 - reported
        yield Figure(name, error=f"{type(error).__name__}: {error}")


def _ours(setting: Setting, kind: str) -> Iterator[Figure]:
    space = TableSpace(setting.work / f"ours-{kind}", relocatable=True)
    table = _our_table(setting.prepared, space, kind)
    space.keep(table)
    seconds = [_timed(_savepoint, space.restored()) for _ in range(setting.repeats + 1)]
    yield Figure(_SAVEPOINT.format(kind=kind, who="lakehouse_engine"), tuple(seconds[1:]))
    table = space.restored()
    _savepoint(table)
    for number in range(1, COMMITS + 1):
        HoodieTable.open(str(table)).upsert(pq.read_table(setting.prepared.source(batch_name(number))))
    _verify(setting.prepared, table, batch_name(COMMITS))
    space.keep(table)
    for who, run in (("lakehouse_engine", _restore), (_COMMAND, _restore_by_command)):
        seconds, restored = [], Path()
        for _ in range(setting.repeats + 1):
            restored = space.restored()
            seconds.append(_timed(run, restored))
        _verify(setting.prepared, restored, "base")
        yield Figure(_RESTORE.format(kind=kind, who=who), tuple(seconds[1:]), detail="content checked")
    space.remove()


def _our_table(prepared: Prepared, space: TableSpace, kind: str) -> Path:
    """Ten loads of a tenth each: ten files."""
    path = space.fresh()
    table = Lakehouse(str(path.parent.parent)).create_table(
        f"{path.parent.name}.{path.name}", schema=SCHEMA, record_key=[KEY], ordering_fields=[ORDERING], table_type=kind
    )
    rows = pq.read_table(prepared.source("base"))
    size = -(-prepared.rows // FILES)
    for start in range(0, prepared.rows, size):
        table.bulk_insert(rows.slice(start, size))
    return path


def _savepoint(table: Path) -> None:
    HoodieTable.open(str(table)).savepoint(name="good")


def _restore(table: Path) -> None:
    HoodieTable.open(str(table)).restore("good")


def _restore_by_command(table: Path) -> None:
    """As a person types it. Raises `CalledProcessError`."""
    command = [sys.executable, "-c", "from lakehouse_engine.cli.main import main; main()"]
    warehouse = ["--warehouse", str(table.parent.parent)]
    arguments = ["restore", f"{table.parent.name}.{table.name}", "--savepoint", "good", "--yes", *warehouse]
    subprocess.run([*command, *arguments], check=True, capture_output=True, cwd=REPOSITORY)


def _timed(run: Callable[[Path], object], table: Path) -> float:
    gc.collect()
    begun = time.perf_counter()
    run(table)
    return round(time.perf_counter() - begun, 4)


def _verify(prepared: Prepared, table: Path, state: str) -> None:
    found = checksum_of([HoodieTable.open(str(table)).to_arrow()], SCHEMA)
    if found != prepared.checksums[state]:
        raise WrongResultError(f"the table has {found}, the data says {prepared.checksums[state]}")


def _hudi(setting: Setting, kind: str) -> Iterator[Figure]:
    spec = CONTENDERS[HUDI[kind]]
    python, files = interpreter(spec.environment), jars(spec.artifacts)
    space = TableSpace(setting.work / spec.name, relocatable=True)
    with ContenderProcess(spec.name, python, setting.logs / f"{spec.name}.log") as process:
        process.call("start", memory=setting.memory, scratch=str(setting.work / f"{spec.name}.spark"), jars=files)
        table = space.fresh()
        process.call("bulk_insert", table=str(table), source=setting.prepared.source("base"))
        space.keep(table)
        seconds = []
        for _ in range(setting.repeats + 1):
            table = space.restored()
            process.call("version", table=str(table))
            answer = process.call("savepoint", table=str(table))
            seconds.append(round(answer.seconds, 4))
        yield Figure(_SAVEPOINT.format(kind=kind, who="Hudi"), tuple(seconds[1:]))
        for number in range(1, COMMITS + 1):
            process.call("upsert", table=str(table), source=setting.prepared.source(batch_name(number)))
        _verify_hudi(setting.prepared, process, space, table, batch_name(COMMITS))
        space.keep(table)
        seconds = []
        for _ in range(setting.repeats + 1):
            table = space.restored()
            process.call("version", table=str(table))
            seconds.append(round(process.call("restore", table=str(table), savepoint=answer.value).seconds, 4))
        _verify_hudi(setting.prepared, process, space, table, "base")
        yield Figure(_RESTORE.format(kind=kind, who="Hudi"), tuple(seconds[1:]), detail="warm session, content checked")
    space.remove()
    shutil.rmtree(setting.work / f"{spec.name}.spark", ignore_errors=True)


def _verify_hudi(prepared: Prepared, process: ContenderProcess, space: TableSpace, table: Path, state: str) -> None:
    target = space.scratch("export")
    process.call("export", table=str(table), target=str(target))
    found = checksum_of(read_tables([str(path) for path in sorted(target.rglob("*.parquet"))]), SCHEMA)
    if found != prepared.checksums[state]:
        raise WrongResultError(f"Hudi's table has {found}, the data says {prepared.checksums[state]}")
