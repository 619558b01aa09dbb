"""A sampling profile of every thread of the contender's Python process. No third-party imports.

Each sample counts for the innermost frame of our own code and the function that it called last. Time in Spark's JVM shows as a wait
for its answer (`readinto`), time in Arrow as the line that called Arrow. Spark's Python workers are other processes and are not seen.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType, TracebackType

_INTERVAL_S = 0.005
_ROOT = Path(__file__).resolve().parents[1]
_OURS = (f"{_ROOT}/lakehouse_engine/", f"{_ROOT}/benchmarks/contenders/")


class StackSampler:
    """Samples while entered; `report` then says where the threads were."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._samples = 0
        self._seconds = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stack-sampler", daemon=True)

    def __enter__(self) -> StackSampler:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        begun, own = time.perf_counter(), threading.get_ident()
        while not self._stop.wait(_INTERVAL_S):
            self._samples += 1
            found = [place(frame) for thread, frame in sys._current_frames().items() if thread != own]
            self._counts.update(item for item in found if item is not None)
        self._seconds = time.perf_counter() - begun

    def report(self) -> str:
        """Lines `thread seconds  place`, most first. Several threads may pass more seconds than the clock."""
        each = self._seconds / max(1, self._samples)
        lines = [f"{self._seconds:.2f} s, {self._samples} samples"]
        return "\n".join(lines + [f"{count * each:8.3f}  {where}" for where, count in self._counts.most_common(60)]) + "\n"


def place(frame: FrameType | None) -> str | None:
    """`file:line function -> leaf` for a stack that passes through our code, None for any other."""
    leaf = frame.f_code.co_name if frame is not None else ""
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_OURS):
            called = "" if code.co_name == leaf else f" -> {leaf}"
            return f"{Path(code.co_filename).relative_to(_ROOT)}:{frame.f_lineno} {code.co_name}{called}"
        frame = frame.f_back
    return None
