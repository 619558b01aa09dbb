"""`python -m benchmarks.dbt_models`: one model in a fresh process, and a hundred that have nothing to do, beside other adapters.

Every run is a process `dbt run` on a project of incremental models of one row, which were built before; on the largest project also
`dbt ls`, and `dbt parse` of all its files. Reported are the median seconds and processor seconds, of all processes that the run starts, the
JVM with them. Contenders take turns, so that what else the machine does meets all.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.client import REPOSITORY
from benchmarks.environments import Unavailable, interpreter

MANY, THREADS = 100, 4
_TIMEOUT_S = 900
_WITHOUT_RUNNING = ("parse --no-partial-parse", "ls")
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: a JVM that outlives dbt is ours to wait for
_PROJECT = "name: bench\nversion: '1.0'\nprofile: bench\nflags: {send_anonymous_usage_stats: false}\n"
_NEWS = "select 1 as id, 'a' as name{% if is_incremental() %} where 1 = 0{% endif %}\n"


@dataclass(frozen=True, slots=True)
class Contender:
    """An adapter: the environment that has it, its profile's target (in flow style) and its models' config."""

    name: str
    environment: str
    target: str
    config: str


_KEYED = "materialized='incremental', unique_key='id'"
CONTENDERS = (
    Contender("lakehouse", "main", "{type: lakehouse, schema: s, threads: %d}", _KEYED),
    Contender("lakehouse, no archive", "main", "{type: lakehouse, schema: s, threads: %d, jvm_cache: false}", _KEYED),
    Contender("duckdb", "dbt_duckdb", "{type: duckdb, path: bench.duckdb, threads: %d}", _KEYED),
    Contender(
        "spark session",
        "dbt_spark",
        "{type: spark, method: session, host: NA, schema: s, threads: %d}",
        "materialized='incremental', incremental_strategy='append', file_format='parquet'",
    ),
)


@dataclass(frozen=True, slots=True)
class Timed:
    """Of one run: seconds until dbt ended, and processor seconds of it and of what it started."""

    seconds: float
    processor: float


def make_project(folder: Path, contender: Contender, models: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "models").mkdir(parents=True)
    (folder / "dbt_project.yml").write_text(_PROJECT)
    (folder / "profiles.yml").write_text(f"bench: {{target: dev, outputs: {{dev: {contender.target % THREADS}}}}}\n")
    for number in range(models):
        (folder / "models" / f"m{number:03}.sql").write_text(f"{{{{ config({contender.config}) }}}}\n{_NEWS}")


def run(python: str, folder: Path, command: str = "run") -> Timed:
    """dbt with `command`, once. Raises `Unavailable` with the end of what dbt printed when it fails."""
    environment = {**os.environ, "DBT_PROFILES_DIR": str(folder), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    before, started = _processor(), time.perf_counter()
    with (folder / "output.log").open("w") as output:
        command = [str(Path(python).with_name("dbt")), "--no-use-colors", *command.split()]
        done = subprocess.run(command, cwd=folder, env=environment, stdout=output, stderr=output, timeout=_TIMEOUT_S, check=False)
    seconds = time.perf_counter() - started
    _wait_for_orphans()
    if done.returncode != 0:
        raise Unavailable((folder / "output.log").read_text()[-800:])
    return Timed(seconds, _processor() - before)


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _wait_for_orphans() -> None:
    """Until what dbt started is gone: its processor time counts from then on. That includes a class archive that a run has made."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def prepare(work: Path, models: int) -> dict[str, tuple[str, Path]]:
    """Interpreter and project of each contender that can be had, after two runs that are not timed (the first builds the tables)."""
    ready: dict[str, tuple[str, Path]] = {}
    for contender in CONTENDERS:
        folder = work / f"{contender.name.replace(', ', '-').replace(' ', '-')}-{models}"
        try:
            python = interpreter(contender.environment)
            make_project(folder, contender, models)
            for _ in range(2):
                run(python, folder)
            ready[contender.name] = (python, folder)
        except Unavailable as error:
            print(f"{contender.name} is left out: {error}", flush=True)
    return ready


def measure(ready: dict[str, tuple[str, Path]], command: str, repeats: int) -> dict[str, list[Timed]]:
    taken: dict[str, list[Timed]] = {name: [] for name in ready}
    for _ in range(repeats):
        for name, (python, folder) in ready.items():
            taken[name].append(run(python, folder, command))
    return taken


def table(title: str, taken: dict[str, list[Timed]]) -> str:
    """Markdown: medians, and the ratio to the first contender."""
    lines = [f"| {title} | s | processor s | ratio of s | ratio of processor s |", "|---|---|---|---|---|"]
    middle = statistics.median
    medians = {name: (middle(one.seconds for one in runs), middle(one.processor for one in runs)) for name, runs in taken.items()}
    reference = next(iter(medians.values()), (1.0, 1.0))
    for name, (seconds, processor) in medians.items():
        lines.append(f"| {name} | {seconds:.1f} | {processor:.1f} | {seconds / reference[0]:.2f} | {processor / reference[1]:.2f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dbt_models", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each contender (default 3)")
    parser.add_argument("--models", type=int, nargs="+", default=[1, MANY], help=f"sizes of the projects (default 1 {MANY})")
    parser.add_argument("--work", type=Path, default=REPOSITORY / "benchmarks" / "data" / "dbt", help="folder of the projects")
    given = parser.parse_args(arguments)
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    os.environ.setdefault("LAKEHOUSE_JVM_CACHE", str(given.work / "jvm"))
    print(f"load at start: {', '.join(f'{value:.2f}' for value in os.getloadavg())}; {THREADS} threads, {given.repeats} runs, medians")
    for models in given.models:
        ready = prepare(given.work.resolve(), models)
        for command in ("run", *_WITHOUT_RUNNING) if models == max(given.models) else ("run",):
            print(f"\n{table(f'dbt {command}, {models} model(s)', measure(ready, command, given.repeats))}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
