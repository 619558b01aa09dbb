"""Which files and functions of the engine an action enters, and how often it comes back to a file.

    python -m benchmarks.walks                         # every action without Spark
    python -m benchmarks.walks merge_sql merge_dbt     # actions on Spark: seconds more
    python -m benchmarks.walks upsert_cow --files      # with the functions of each file
    python -m benchmarks.walks --follow Batch          # the walk of another value than the request

Files of the dbt adapter are counted with those of the engine. `functions` are the pieces of code that ran, lambdas and comprehensions among
them; `stack` is the most frames of the engine at one time. The walk follows a value (`WriteRequest`) through the functions that take it, or
an object with it in a field: `stays` are runs of such calls in one file, `rooms` the files, `returns` the stays in a file that was left
before. Each action has run once before it is measured, most on another table.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pyarrow as pa

from benchmarks.session import SessionSettings, start_session
from lakehouse_engine import HoodieTable, Lakehouse

REPOSITORY = Path(__file__).resolve().parents[1]
_COUNTED = (f"{REPOSITORY}/lakehouse_engine/", f"{REPOSITORY}/dbt/adapters/lakehouse/")
_SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("v", pa.string())])
_ROWS = pa.table({"id": [1, 2, 3], "ts": [1, 1, 1], "v": ["a", "b", "c"]}, schema=_SCHEMA)
_LATER = pa.table({"id": [2, 3, 4], "ts": [2, 2, 2], "v": ["x", "y", "z"]}, schema=_SCHEMA)


@dataclass(slots=True)
class Walk:
    """What one action entered. `path` has the file of each stay of the followed value, in order."""

    follow: str
    functions: dict[str, set[CodeType]] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)
    depth: int = 0

    @property
    def rooms(self) -> set[str]:
        return set(self.path)

    @property
    def returns(self) -> int:
        return len(self.path) - len(self.rooms)

    def enter(self, frame: FrameType) -> None:
        """Count a call that begins."""
        code = frame.f_code
        if not code.co_filename.startswith(_COUNTED):
            return
        name = code.co_filename.removeprefix(_COUNTED[0]).removeprefix(f"{REPOSITORY}/")
        self.functions.setdefault(name, set()).add(code)
        self.depth = max(self.depth, _depth(frame))
        if self._takes(frame) and self.path[-1:] != [name]:
            self.path.append(name)

    def _takes(self, frame: FrameType) -> bool:
        names = frame.f_code.co_varnames[: frame.f_code.co_argcount + frame.f_code.co_kwonlyargcount]
        return any(self._is_or_has(frame.f_locals.get(name)) for name in names)

    def _is_or_has(self, value: Any) -> bool:
        names = (*getattr(type(value), "__slots__", ()), *getattr(value, "__dict__", ()))
        return any(type(one).__name__ == self.follow for one in (value, *(getattr(value, name, None) for name in names)))


def _depth(frame: FrameType | None) -> int:
    count = 0
    while frame is not None:
        count += frame.f_code.co_filename.startswith(_COUNTED)
        frame = frame.f_back
    return count


@contextmanager
def walked(follow: str = "WriteRequest") -> Iterator[Walk]:
    """Watch this thread, and those that are started meanwhile."""
    walk = Walk(follow)

    def see(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            walk.enter(frame)

    threading.setprofile(see)
    sys.setprofile(see)
    try:
        yield walk
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


Action = Callable[[], Any]
"""What is watched. Everything that it needs is there, and the same has run once elsewhere."""


def _tables(lakehouse: Lakehouse, kind: str, *, rows: bool = True) -> list[HoodieTable]:
    """`walks.t0` and `walks.t1`, of that type, with or without rows."""
    tables = [
        lakehouse.create_table(f"walks.t{number}", schema=_SCHEMA, record_key=["id"], ordering_fields=["ts"], table_type=kind)
        for number in range(2)
    ]
    for table in tables if rows else ():
        table.upsert(_ROWS)
    return tables


def _filled(kind: str, folder: Path, act: Callable[[HoodieTable], Any], *, rows: bool, spark: Any = None) -> Action:
    """An action on the second of two tables."""
    first, second = _tables(Lakehouse(str(folder), spark=spark), kind, rows=rows)
    act(first)
    return lambda: act(second)


def _session(folder: Path) -> Any:
    return start_session(SessionSettings("1g", str(folder / "scratch")), {})


def _read_in_spark(folder: Path) -> Action:
    return _filled("mor", folder, lambda table: table.dataframe().collect(), rows=True, spark=_session(folder))


def _merge_in_sql(folder: Path) -> Action:
    lakehouse = Lakehouse(str(folder / "warehouse"), spark=_session(folder))
    _tables(lakehouse, "cow")

    def merge(number: int) -> None:
        source = "select * from values (2L, 2L, 'x'), (3L, 2L, 'y'), (4L, 2L, 'z') as given(id, ts, v)"
        changes = "when matched then update set * when not matched then insert *"
        lakehouse.sql(f"merge into walks.t{number} t using ({source}) s on t.id = s.id {changes}")

    merge(0)
    return lambda: merge(1)


_MERGED = """{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}
select * from values (1L, 1L, 'a'), (2L, 1L, 'b') as given(id, ts, v)
"""


@contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _merge_in_dbt(folder: Path) -> Action:
    """`dbt run` of one model, in this process: two runs before it have built the table, and merged into it."""
    from dbt.cli.main import dbtRunner

    (folder / "models").mkdir()
    (folder / "models" / "merged.sql").write_text(_MERGED)
    (folder / "dbt_project.yml").write_text("name: walks\nversion: '1.0'\nprofile: walks\nflags: {send_anonymous_usage_stats: false}\n")
    (folder / "profiles.yml").write_text("walks: {target: dev, outputs: {dev: {type: lakehouse, schema: walks, threads: 1}}}\n")

    def run() -> None:
        with _working_in(folder):
            done = dbtRunner().invoke(["--quiet", "run", "--profiles-dir", str(folder), "--project-dir", str(folder)])
        if not done.success:
            raise RuntimeError(f"dbt run failed: {done.exception or done.result}")

    run()
    run()
    return run


ACTIONS: Mapping[str, Callable[[Path], Action]] = {
    "upsert_cow": lambda folder: _filled("cow", folder, lambda table: table.upsert(_ROWS), rows=False),
    "upsert_mor": lambda folder: _filled("mor", folder, lambda table: table.upsert(_ROWS), rows=False),
    "upsert_again_cow": lambda folder: _filled("cow", folder, lambda table: table.upsert(_LATER), rows=True),
    "upsert_again_mor": lambda folder: _filled("mor", folder, lambda table: table.upsert(_LATER), rows=True),
    "read_cow": lambda folder: _filled("cow", folder, lambda table: table.to_arrow(), rows=True),
    "read_mor": lambda folder: _filled("mor", folder, lambda table: table.to_arrow(), rows=True),
}
"""Three rows of Arrow, no Spark."""
ON_SPARK: Mapping[str, Callable[[Path], Action]] = {
    "read_spark": _read_in_spark,
    "merge_sql": _merge_in_sql,
    "merge_dbt": _merge_in_dbt,
}
"""The same rows: a snapshot of a merge-on-read table, and two ways to merge into a copy-on-write table."""


def measured(name: str, follow: str = "WriteRequest") -> Walk:
    """The walk of one action, which has run once before."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            action = {**ACTIONS, **ON_SPARK}[name](Path(folder))
            with walked(follow) as walk:
                action()
        finally:
            if name in ON_SPARK:
                _stop_spark()
    return walk


def _stop_spark() -> None:
    """The next action has a session of its own."""
    from pyspark.sql import SparkSession

    SparkSession.builder.getOrCreate().stop()


def main(arguments: list[str] | None = None) -> int:
    """Print a table of the actions."""
    known = (*ACTIONS, *ON_SPARK)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.walks", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("actions", nargs="*", metavar="action", help=", ".join(known))
    parser.add_argument("--follow", default="WriteRequest", help="class of the value to follow")
    parser.add_argument("--files", action="store_true", help="the functions of each file, and the walk")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.actions if name not in known]
    if unknown:
        parser.error(f"no action {unknown[0]!r}; there are {', '.join(known)}")
    print("| action | files | functions | stack | stays | rooms | returns |\n|---|---|---|---|---|---|---|")
    for name in given.actions or ACTIONS:
        walk = measured(name, given.follow)
        functions = sum(map(len, walk.functions.values()))
        cells = (name, len(walk.functions), functions, walk.depth, len(walk.path), len(walk.rooms), walk.returns)
        print(f"| {' | '.join(map(str, cells))} |")
        if given.files:
            for file, codes in sorted(walk.functions.items()):
                print(f"    {len(codes):3} {file}: {', '.join(sorted(code.co_name for code in codes))}")
            print("\n".join(f"    {number:3} {file}" for number, file in enumerate(walk.path, 1)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
