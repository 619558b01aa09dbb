"""`python -m benchmarks`: prepare data, run the contenders one after another, print and store the report."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.cells import Cell, Measurement, Status
from benchmarks.client import REPOSITORY, ContenderError, ContenderProcess
from benchmarks.contenders import CONTENDERS, ContenderSpec
from benchmarks.data import Prepared, prepare
from benchmarks.environments import Unavailable, interpreter, jars
from benchmarks.measure import ContenderRun, Plan
from benchmarks.render import SizeReport, markdown
from benchmarks.session import CORES
from benchmarks.tables import TableSpace

FOLDER = REPOSITORY / "benchmarks"
QUICK_ROWS = 200_000
REHEARSAL_ROWS = 20_000


@dataclass(frozen=True)
class Settings:
    """The command line."""

    sizes: tuple[int, ...]
    contenders: tuple[str, ...]
    cells: tuple[Cell, ...]
    plan: Plan
    profile: bool
    memory: str
    work: Path
    results: Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 when every result was right, 1 when one was wrong or failed."""
    settings = _settings(_parser().parse_args(arguments))
    folder = settings.results / time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    folder.mkdir(parents=True)
    head = _circumstances(settings)
    print("\n".join(f"{key}: {value}" for key, value in head.items()), flush=True)
    reports = [_run_size(settings, rows, folder, head) for rows in settings.sizes]
    text = markdown(head, reports)
    (folder / "report.md").write_text(text)
    (folder / "report.json").write_text(json.dumps(_as_json(head, reports), indent=1))
    print(f"\n{text}\nstored in {folder.relative_to(REPOSITORY) if folder.is_relative_to(REPOSITORY) else folder}")
    wrong = [item for report in reports for item in report.results.values() if item.status is Status.ERROR]
    return 1 if wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS:,} rows, contenders that need nothing to be fetched")
    parser.add_argument("--rows", type=int, nargs="+", help="table sizes (default 1000000 5000000)")
    parser.add_argument("--contenders", nargs="+", choices=list(CONTENDERS), metavar="NAME", help=", ".join(CONTENDERS))
    parser.add_argument("--cells", nargs="+", choices=[cell.value for cell in Cell], metavar="CELL", help=", ".join(Cell))
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each cell (default 3)")
    parser.add_argument("--warmup", type=int, default=1, help="runs before the timed ones (default 1)")
    parser.add_argument("--profile", action="store_true", help="one more run of each cell, with a sampling profile of the Python process")
    parser.add_argument("--memory", default="6g", help="Spark driver memory (default 6g)")
    parser.add_argument("--data", type=Path, default=FOLDER / "data", help="folder of prepared data and of the tables under test")
    parser.add_argument("--results", type=Path, default=FOLDER / "results", help="folder of reports and logs")
    return parser


def _settings(given: argparse.Namespace) -> Settings:
    if given.repeats < 1 or given.warmup < 0:
        raise SystemExit(f"--repeats {given.repeats} --warmup {given.warmup}: at least one repeat, no negative warm-up")
    sizes = tuple(given.rows or ((QUICK_ROWS,) if given.quick else (1_000_000, 5_000_000)))
    names = given.contenders or [spec.name for spec in CONTENDERS.values() if spec.quick or not given.quick]
    ordered = tuple(name for name in CONTENDERS if name in names)
    cells = tuple(cell for cell in Cell if not given.cells or cell.value in given.cells)
    if min(sizes) < 100:
        raise SystemExit(f"--rows {min(sizes)}: at least 100")
    plan = Plan(given.warmup, given.repeats)
    return Settings(sizes, ordered, cells, plan, given.profile, given.memory, given.data.resolve(), given.results.resolve())


def _circumstances(settings: Settings) -> dict[str, str]:
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    return {
        "time": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": f"{os.cpu_count()} processors, {memory:.0f} GiB, {platform.system()} {platform.machine()}",
        "load at start (1, 5, 15 min)": load,
        "python": platform.python_version(),
        "sessions": f"local[{CORES}], driver memory {settings.memory}, zstd",
        "runs": f"rehearsal on {REHEARSAL_ROWS:,} rows, {settings.plan.warmup} warm-up, {settings.plan.repeats} timed, median",
    }


def _run_size(settings: Settings, rows: int, folder: Path, head: dict[str, str]) -> SizeReport:
    print(f"\npreparing {rows:,} rows", flush=True)
    prepared = prepare(settings.work, rows)
    results: dict[tuple[str, Cell], Measurement] = {}
    skipped: dict[str, str] = {}
    pristine: dict[str, Path] = {}
    for name in settings.contenders:
        spec = CONTENDERS[name]
        print(f"{spec.title}: load {os.getloadavg()[0]:.2f}", flush=True)
        try:
            results.update(_run_contender(settings, spec, prepared, folder / f"{name}-{rows}.log", pristine, head))
        except (Unavailable, ContenderError) as error:
            skipped[name] = str(error)
            print(f"  skipped: {error}", flush=True)
    for table in pristine.values():
        shutil.rmtree(table.parents[2])
    titles = {name: CONTENDERS[name].title for name in settings.contenders if name not in skipped}
    return SizeReport(rows, {**titles}, settings.cells, results, skipped)


def _run_contender(
    settings: Settings, spec: ContenderSpec, prepared: Prepared, log: Path, pristine: dict[str, Path], head: dict[str, str]
) -> dict[tuple[str, Cell], Measurement]:
    if spec.needs is not None and spec.needs not in pristine:
        raise Unavailable(f"it starts from the table of {spec.needs}, which this run does not have")
    python, files = interpreter(spec.environment), jars(spec.artifacts)
    root = settings.work / "tables" / f"{spec.name}-{prepared.rows}"
    results = {}
    with ContenderProcess(spec.name, python, log) as process:
        started = process.call("start", memory=settings.memory, scratch=str(root.with_suffix(".spark")), jars=files)
        head[spec.title] = ", ".join(f"{name} {version}" for name, version in started.value.items())
        if spec.needs is None:
            _rehearse(settings, spec, process, TableSpace(root, relocatable=spec.relocatable))
        space = TableSpace(root, relocatable=spec.relocatable)
        if spec.needs is not None:
            space.adopt(pristine[spec.needs])
        plan = replace(settings.plan, profiles=log.parent if settings.profile else None)
        run = ContenderRun(spec, process, prepared, space, plan)
        for cell in settings.cells:
            results[spec.name, cell] = item = run.measure(cell)
            print(f"  {cell.label}: {_progress(item)}", flush=True)
    shutil.rmtree(root.with_suffix(".spark"), ignore_errors=True)
    if any(CONTENDERS[name].needs == spec.name for name in settings.contenders) and space.pristine.exists():
        pristine[spec.name] = space.pristine
    else:
        shutil.rmtree(root)
    return results


def _rehearse(settings: Settings, spec: ContenderSpec, process: ContenderProcess, space: TableSpace) -> None:
    """Every cell on a small table first: without it the first cells would pay for classes loaded and code compiled."""
    run = ContenderRun(spec, process, prepare(settings.work, REHEARSAL_ROWS), space, Plan(warmup=0, repeats=2))
    for cell in settings.cells:
        item = run.measure(cell)
        if item.status is Status.ERROR:
            print(f"  rehearsal, {_progress(item)}", flush=True)


def _progress(item: Measurement) -> str:
    if item.status is not Status.OK:
        return f"{item.status.value}: {item.note}"
    return f"{item.median:.2f} s of {', '.join(f'{seconds:.2f}' for seconds in item.seconds)}"


def _as_json(head: dict[str, str], reports: Sequence[SizeReport]) -> dict[str, Any]:
    return {
        "circumstances": head,
        "sizes": [
            {"rows": report.rows, "skipped": dict(report.skipped), "cells": [item.as_json() for item in report.results.values()]}
            for report in reports
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
