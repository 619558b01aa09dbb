"""The contender's process: reads calls as JSON lines from standard input, answers each with one JSON line.

    {"call": "upsert", "arguments": {"table": "...", "source": "..."}, "profile": null}
    {"seconds": 1.93, "jobs": 3, "value": null}      or      {"error": "ValueError: ...", "trace": "..."}

Only the call itself is timed. Standard output of libraries and of the JVM goes to standard error, so that it cannot mix with answers.
No third-party imports here: contenders run in interpreters that have only what they need.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any, TextIO

from benchmarks.contenders import load
from benchmarks.contenders.base import CALLS, Contender
from benchmarks.profiling import StackSampler


def serve(contender: Contender, requests: TextIO, replies: TextIO) -> None:
    """Answer until the requests end."""
    for line in requests:
        request = json.loads(line)
        replies.write(json.dumps(answer(contender, request["call"], request["arguments"], request["profile"])) + "\n")
        replies.flush()


def answer(contender: Contender, call: str, arguments: dict[str, Any], profile: str | None = None) -> dict[str, Any]:
    """Make one call; `profile` is a file for a sampling profile of it.

    Every error of the contender becomes part of the answer: the harness decides what it means.
    """
    if call not in CALLS:
        raise ValueError(f"unknown call {call!r}; known are {', '.join(CALLS)}")
    gc.collect()
    try:
        before = contender.jobs_started() if call != "start" else -1
        begun = time.perf_counter()
        value = _profiled(contender, call, arguments, profile) if profile else getattr(contender, call)(**arguments)
        seconds = time.perf_counter() - begun
        after = contender.jobs_started() if before >= 0 else -1
    except Exception as error:  # noqa: BLE001 - a contender may raise anything, and it is reported
        return {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
    return {"seconds": seconds, "jobs": after - before - 1 if before >= 0 else -1, "value": value}


def _profiled(contender: Contender, call: str, arguments: dict[str, Any], profile: str) -> Any:
    with StackSampler() as sampler:
        value = getattr(contender, call)(**arguments)
    Path(profile).write_text(sampler.report())
    return value


def main() -> None:
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    contender = load(sys.argv[1])
    try:
        serve(contender, sys.stdin, replies)
    finally:
        contender.stop()


if __name__ == "__main__":
    main()
