"""`python -m benchmarks`: prepare data, run the contenders one after another, print and store the report."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.cells import Cell, Measurement, Status
from benchmarks.client import REPOSITORY, ContenderError, ContenderProcess
from benchmarks.contenders import CONTENDERS, ContenderSpec
from benchmarks.data import Prepared, prepare
from benchmarks.environments import Unavailable, interpreter, jars
from benchmarks.measure import Plan
from benchmarks.measure_logs import LogsRun
from benchmarks.render import SizeReport, markdown
from benchmarks.series import prepare_series
from benchmarks.session import CORES
from benchmarks.suites import SUITES, Suite
from benchmarks.tables import TableSpace

FOLDER = REPOSITORY / "benchmarks"
QUICK_ROWS = 200_000
REHEARSAL_ROWS = 20_000


@dataclass(frozen=True)
class Settings:
    """The command line."""

    sizes: tuple[int, ...]
    suites: tuple[Suite, ...]
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
    reports: list[SizeReport] = []
    for rows in settings.sizes:
        for suite in settings.suites:
            for report in _run_suite(settings, suite, rows, folder, head):
                _store(folder, head, [*reports, report])
            reports.append(report)
            print(f"\n{markdown({}, [report])}", flush=True)
    text = _store(folder, head, reports)
    print(f"\n{text}\nstored in {folder.relative_to(REPOSITORY) if folder.is_relative_to(REPOSITORY) else folder}")
    wrong = [item for report in reports for item in report.results.values() if item.status is Status.ERROR]
    return 1 if wrong else 0


def _store(folder: Path, head: dict[str, str], reports: Sequence[SizeReport]) -> str:
    """Whatever is there so far: what ends a run early does not take the contenders before it."""
    text = markdown(head, reports)
    (folder / "report.md").write_text(text)
    (folder / "report.json").write_text(json.dumps(_as_json(head, reports), indent=1))
    return text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS:,} rows, contenders that need nothing to be fetched")
    parser.add_argument("--rows", type=int, nargs="+", help="table sizes (default 1000000 5000000)")
    parser.add_argument("--suite", choices=list(SUITES), help="cow: copy-on-write tables; mor: merge-on-read tables (default: both)")
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
    cells = given.cells or [cell.value for cell in Cell]
    chosen = [suite.reduced(names, cells) for suite in SUITES.values() if given.suite in (None, suite.name)]
    suites = tuple(suite for suite in chosen if suite.contenders and suite.cells)
    if not suites:
        raise SystemExit("no suite has these contenders and these cells")
    if min(sizes) < 100:
        raise SystemExit(f"--rows {min(sizes)}: at least 100")
    plan = Plan(given.warmup, given.repeats)
    return Settings(sizes, suites, plan, given.profile, given.memory, given.data.resolve(), given.results.resolve())


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


def _run_suite(settings: Settings, suite: Suite, rows: int, folder: Path, head: dict[str, str]) -> Iterator[SizeReport]:
    """The report after each contender, the last one whole."""
    print(f"\n{suite.title}: preparing {rows:,} rows", flush=True)
    prepared = _prepared(settings, suite, rows)
    results: dict[tuple[str, Cell], Measurement] = {}
    skipped: dict[str, str] = {}
    kept: dict[str, TableSpace] = {}
    for name in suite.contenders:
        spec = CONTENDERS[name]
        print(f"{spec.title}: load {os.getloadavg()[0]:.2f}", flush=True)
        try:
            for item in _run_contender(settings, suite, spec, prepared, folder / f"{suite.name}-{name}-{rows}.log", kept, head):
                results[name, item.cell] = item
                if item.status is not Status.ABSENT:
                    print(f"  {item.cell.label}: {_progress(item)}", flush=True)
        except Exception as error:  # noqa: BLE001 - whatever ends one contender, the others still run
            expected = isinstance(error, Unavailable | ContenderError)
            skipped[name] = str(error) if expected else f"{type(error).__name__}: {error}"
            print(f"  skipped: {skipped[name]}", flush=True)
        titles = {known: CONTENDERS[known].title for known in suite.contenders if any(key[0] == known for key in results)}
        yield SizeReport(rows, titles, suite.cells, results, skipped, suite.title, suite.reference)
    for space in kept.values():
        space.remove()


def _prepared(settings: Settings, suite: Suite, rows: int) -> Prepared:
    prepared = prepare(settings.work, rows)
    return prepare_series(prepared) if suite.needs_series else prepared


def _run_contender(
    settings: Settings, suite: Suite, spec: ContenderSpec, prepared: Prepared, log: Path, kept: dict[str, TableSpace], head: dict[str, str]
) -> Iterator[Measurement]:
    if spec.needs is not None and spec.needs not in kept:
        raise Unavailable(f"it starts from the table of {spec.needs}, which this run does not have")
    python, files = interpreter(spec.environment), jars(spec.artifacts)
    root = settings.work / "tables" / f"{spec.name}-{prepared.rows}"
    with ContenderProcess(spec.name, python, log) as process:
        started = process.call("start", memory=settings.memory, scratch=str(root.with_suffix(".spark")), jars=files)
        head[spec.title] = ", ".join(f"{name} {version}" for name, version in started.value.items())
        if spec.needs is None:
            _rehearse(settings, suite, spec, process, TableSpace(root, relocatable=spec.relocatable))
        space = TableSpace(root, relocatable=spec.relocatable)
        if spec.needs is not None:
            space.adopt(kept[spec.needs])
        plan = replace(settings.plan, profiles=log.parent if settings.profile else None)
        run = LogsRun(spec, process, prepared, space, plan)
        for cell in suite.cells:
            yield run.measure(cell)
    shutil.rmtree(root.with_suffix(".spark"), ignore_errors=True)
    if any(CONTENDERS[name].needs == spec.name for name in suite.contenders) and space.pristine.exists():
        kept[spec.name] = space
    else:
        space.remove()


def _rehearse(settings: Settings, suite: Suite, spec: ContenderSpec, process: ContenderProcess, space: TableSpace) -> None:
    """Every cell on a small table first: without it the first cells would pay for classes loaded and code compiled."""
    run = LogsRun(spec, process, _prepared(settings, suite, REHEARSAL_ROWS), space, Plan(warmup=0, repeats=2))
    for cell in suite.cells:
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
            {
                "rows": report.rows,
                "suite": report.suite,
                "skipped": dict(report.skipped),
                "cells": [item.as_json() for item in report.results.values()],
            }
            for report in reports
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
