"""Which files and functions of the engine an action enters, and how often it comes back to a file.

    python -m benchmarks.walks                         # every action
    python -m benchmarks.walks upsert_cow --files      # with the functions of each file
    python -m benchmarks.walks --follow Batch          # the walk of another value than the request

`functions` are the pieces of code that ran, lambdas and comprehensions among them; `stack` is the most frames of the engine at one time.
The walk follows a value (`WriteRequest`) through the functions that take it, or an object with it in a field: `stays` are runs of such
calls in one file, `rooms` the files, `returns` the stays in a file that was left before. Each action has run once on another table before
it is measured.
"""

from __future__ import annotations

import argparse
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

from lakehouse_engine import HoodieTable, Lakehouse

REPOSITORY = Path(__file__).resolve().parents[1]
_ENGINE = f"{REPOSITORY}/lakehouse_engine/"
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
        if not code.co_filename.startswith(_ENGINE):
            return
        name = code.co_filename.removeprefix(_ENGINE)
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
        count += frame.f_code.co_filename.startswith(_ENGINE)
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


Action = Callable[[HoodieTable], Any]
ACTIONS: Mapping[str, tuple[str, bool, Action]] = {
    "upsert_cow": ("cow", False, lambda table: table.upsert(_ROWS)),
    "upsert_mor": ("mor", False, lambda table: table.upsert(_ROWS)),
    "upsert_again_cow": ("cow", True, lambda table: table.upsert(_LATER)),
    "upsert_again_mor": ("mor", True, lambda table: table.upsert(_LATER)),
    "read_cow": ("cow", True, lambda table: table.to_arrow()),
    "read_mor": ("mor", True, lambda table: table.to_arrow()),
}
"""Table type, whether the table has rows before, and what is done: three rows of Arrow, no Spark."""


def measured(name: str, follow: str = "WriteRequest") -> Walk:
    """The walk of one of the `ACTIONS`."""
    kind, filled, action = ACTIONS[name]
    with tempfile.TemporaryDirectory() as folder:
        lakehouse = Lakehouse(folder)
        tables = [
            lakehouse.create_table(f"walks.t{number}", schema=_SCHEMA, record_key=["id"], ordering_fields=["ts"], table_type=kind)
            for number in range(2)
        ]
        for table in tables if filled else ():
            table.upsert(_ROWS)
        action(tables[0])
        with walked(follow) as walk:
            action(tables[1])
    return walk


def main(arguments: list[str] | None = None) -> int:
    """Print a table of the actions."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.walks", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("actions", nargs="*", metavar="action", help=", ".join(ACTIONS))
    parser.add_argument("--follow", default="WriteRequest", help="class of the value to follow")
    parser.add_argument("--files", action="store_true", help="the functions of each file, and the walk")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.actions if name not in ACTIONS]
    if unknown:
        parser.error(f"no action {unknown[0]!r}; there are {', '.join(ACTIONS)}")
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
