"""`python -m benchmarks.live_files`: what it costs to know which files archived writes left.

Tables with 100 and 10,000 files, 1,000 archived commits and 30 active ones: the time to open one and plan a snapshot, in a process that has
never seen it (cold), opened again (warm), and refreshed. Each with the checkpoint that archiving wrote, and from the archive alone, as of
tables that others archived. Planning opens no data file, so they hold a few bytes each. `--before` also times an older checkout of the
engine (a directory to put on PYTHONPATH) on the same tables.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import pyarrow as pa

from lakehouse_engine.format.partition_metafile import render_partition_metafile
from lakehouse_engine.format.v6.table_format import FormatV6
from lakehouse_engine.model.commit_metadata import SCHEMA_KEY, HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType
from lakehouse_engine.options import ArchiveOptions
from lakehouse_engine.services.archive.execute import execute_archive
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table

ARCHIVED, ACTIVE, UPDATED, PARTITIONS, BATCH = 1000, 30, 10, 10, 100
CONTENT = b"PAR1PAR1"
REPOSITORY = Path(__file__).resolve().parents[1]
PROBE = """
import json, sys, time
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.read.scan import plan_snapshot
def timed(act):
    began = time.perf_counter()
    state = act()
    files = len(plan_snapshot(state).files)
    return state, files, time.perf_counter() - began
state, files, cold = timed(lambda: TableState.load(LocalStorage(sys.argv[1])))
state, _, warm = timed(lambda: TableState.load(LocalStorage(sys.argv[1])))
state, _, refreshed = timed(state.refresh)
print(json.dumps({"files": files, "cold": cold, "warm": warm, "refreshed": refreshed}))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="+", default=[100, 10_000])
    parser.add_argument("--archived", type=int, default=ARCHIVED)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--before", type=Path)
    given = parser.parse_args()
    print(f"load (1, 5, 15 min): {', '.join(f'{value:.2f}' for value in os.getloadavg())}; median of {given.repeats}; milliseconds\n")
    print("| files | engine | cold | warm | refreshed |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for files in given.files:
            path = Path(folder) / f"t{files}"
            make(path, files, given.archived)
            if given.before:
                report(files, "before", probe(path, given.before, given.repeats))
            report(files, "with a checkpoint", probe(path, REPOSITORY, given.repeats))
            shutil.rmtree(path / ".hoodie" / ".aux" / "live")
            report(files, "from the archive", probe(path, REPOSITORY, given.repeats))
            shutil.rmtree(path)
    return 0


def make(path: Path, files: int, archived: int) -> None:
    """A copy-on-write table in which the first commit wrote all files, and each later one new versions of some of them."""
    storage, table_format = LocalStorage(str(path)), FormatV6()
    create_table(storage, TableSpec("t", pa.schema([("id", pa.int64()), ("p", pa.string())]), ["id"], [], ["p"], "cow"))
    newest: dict[int, str] = {}
    for number in range(archived + ACTIVE):
        time = f"{20260101000000000 + number}"
        written = range(files) if not newest else [(number * UPDATED + step) % files for step in range(min(UPDATED, files))]
        stats: dict[str, list[HoodieWriteStat]] = {}
        for file in written:
            partition = f"p={file % PARTITIONS}"
            stat = HoodieWriteStat(
                file_id=f"{file:08d}-0",
                path=f"{partition}/{file:08d}-0_0-0-0_{time}.parquet",
                prev_commit=newest.get(file, "null"),
                partition_path=partition,
                file_size_in_bytes=len(CONTENT),
            )
            stats.setdefault(partition, []).append(stat)
            newest[file] = time
        metadata = HoodieCommitMetadata(
            partition_to_write_stats={partition: tuple(found) for partition, found in stats.items()},
            operation_type=WriteOperationType.UPSERT,
            extra_metadata={SCHEMA_KEY: '{"type":"record","name":"t","fields":[{"name":"id","type":["null","long"],"default":null}]}'},
        )
        for step in State:
            content = table_format.encode_commit(metadata) if step is State.COMPLETED else b""
            name = table_format.file_name(Instant(time, Action.COMMIT, step))
            (path / ".hoodie" / name).write_bytes(content)
    for file, time in newest.items():
        folder = path / f"p={file % PARTITIONS}"
        folder.mkdir(exist_ok=True)
        (folder / ".hoodie_partition_metadata").write_bytes(render_partition_metafile(time, 1))
        (folder / f"{file:08d}-0_0-0-0_{time}.parquet").write_bytes(CONTENT)
    for _ in range(0, archived, BATCH):
        state = TableState.load(storage)
        execute_archive(state, state.timeline.completed().writes().instants[: min(BATCH, archived)], ArchiveOptions(merges=False))


def probe(path: Path, engine: Path, repeats: int) -> dict[str, float]:
    runs = []
    for _ in range(repeats):
        command = [sys.executable, "-c", PROBE, str(path)]
        # In the table's directory, since Python looks for modules in the current one first.
        environment = {**os.environ, "PYTHONPATH": str(engine.resolve())}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=path)
        runs.append(json.loads(done.stdout))
    return {name: median(run[name] for run in runs) for name in runs[0]}


def report(files: int, engine: str, found: dict[str, float]) -> None:
    assert found["files"] == files, f"{found['files']} of {files} files were planned"
    times = " | ".join(f"{found[name] * 1000:.1f}" for name in ("cold", "warm", "refreshed"))
    print(f"| {files:,} | {engine} | {times} |", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
