"""One thing done to one table in a process of its own: `python -m benchmarks.clustering.cell '{"kind": ...}'`.

The last line of the output is what was found, as JSON.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.clustering.contenders import Asking, Place, opened
from benchmarks.clustering.data import ALL, QUERIES, SUMS
from benchmarks.memory import MemorySampler
from benchmarks.scale.peaks import Peaks, cpu_seconds, tree
from benchmarks.skipping import files_of

_MEGABYTE = 1024 * 1024
_SMALL_FILES = 4


def main() -> int:
    print(json.dumps(_cell(**json.loads(sys.argv[1]))))
    return 0


def _cell(kind: str, table: str, path: str, jars: list[str], **what: Any) -> dict[str, Any]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory(dir=Path(path).parent) as scratch:
        place = Place(path, scratch, tuple(jars))
        return {"make": _make, "cluster": _clustered, "ask": _asked}[kind](table, place, **what)


def _make(table: str, place: Place, source: str, files: int) -> dict[str, Any]:
    began = time.monotonic()
    with opened(table, place) as made:
        made.make(source, files)
        sizes = made.live()
    return {"seconds": time.monotonic() - began, "files": len(sizes), "bytes": sum(sizes)}


def _clustered(table: str, place: Place, small: str, target: int, rehearsed: bool) -> dict[str, Any]:
    """Timed after a rehearsal on a small table."""
    with opened(table, place) as made:
        if rehearsed:
            other = type(made)(replace(place, path=f"{place.path}-small"))
            other.make(small, _SMALL_FILES)
            other.cluster(target)
        with MemorySampler(os.getpid()) as sampler, Peaks() as peaks:
            began, used = time.monotonic(), cpu_seconds()
            made.cluster(target)
            seconds, used = time.monotonic() - began, cpu_seconds() - used
        sizes = made.live()
    own = max(peaks.driver, peaks.worker)
    return {
        "seconds": seconds,
        "cpu": used,
        "peak": sampler.peak.tree / _MEGABYTE,
        "anonymous": own / _MEGABYTE,
        "files": len(sizes),
        "bytes": sum(sizes),
    }


def _asked(table: str, place: Place, repeats: int) -> dict[str, Any]:
    """For each query files opened, bytes read and seconds, once warm; and all rows counted."""
    with opened(table, place) as made:
        ask = made.asking()
        found = {name: _query(ask, text, repeats) for name, text in QUERIES.items()}
        return {**found, ALL: {"answer": ask(SUMS)[0]}}


def _query(ask: Asking, text: str, repeats: int) -> dict[str, Any]:
    answer, frame = ask(text)
    seconds, read = [], 0
    for _ in range(repeats):
        before, began = _bytes_read(), time.perf_counter()
        again, frame = ask(text)
        seconds.append(time.perf_counter() - began)
        read = _bytes_read() - before
        assert again == answer, f"{text}: {again} after {answer}"
    files = files_of(frame._jdf.queryExecution().executedPlan())
    return {"answer": answer, "files": files, "bytes": read, "seconds": statistics.median(seconds)}


def _bytes_read() -> int:
    """Bytes that this process and those below it asked the kernel for."""
    return sum(_read_by(one.pid) for one in tree())


def _read_by(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/io").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(text.split("rchar: ")[1].split()[0])


if __name__ == "__main__":
    raise SystemExit(main())
