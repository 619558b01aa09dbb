"""`python -m benchmarks.buckets`: tables in a bucket whose every request takes some time longer, and how many requests there are.

moto's S3 server (`make object-store-setup`) stands behind a server that waits before each request. Each action opens the table anew, in a
process (and a session of Spark) that is warm; contenders take turns. Reported are medians, and the requests of the last run. Who cannot be
had says why not.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.buckets.contenders import CONTENDERS
from benchmarks.buckets.delay import Delay, delayed
from benchmarks.client import REPOSITORY
from benchmarks.environments import Unavailable, interpreter, jars

BUCKET = "bench"
_HUDI_JAR = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"
_S3A = (
    "org.apache.hadoop:hadoop-aws:3.3.4",
    "com.amazonaws:aws-java-sdk-bundle:1.12.262",
)
_ACTIONS = {"plan": "open, plan", "read": "open, read", "upsert": "open, upsert of ten rows"}


@dataclass
class Taking:
    """A contender at work. `figures` by partitions and action: seconds of each run, requests of the last."""

    process: subprocess.Popen[str]
    places: dict[int, str]
    version: str = ""
    figures: dict[tuple[int, str], tuple[list[float], int]] = field(default_factory=dict)

    def call(self, call: str, **arguments: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"call": call, "arguments": arguments}) + "\n")
        self.process.stdin.flush()
        reply: dict[str, Any] = json.loads(self.process.stdout.readline() or '{"error": "its process has ended"}')
        if "error" in reply:
            raise Unavailable(f"{reply['error']}\n{reply.get('trace', '')}")
        return reply


@contextmanager
def _store() -> Iterator[int]:
    """moto's server; its port."""
    python = REPOSITORY / os.environ.get("LAKEHOUSE_S3_VENV", ".venv-s3") / "bin" / "python"
    if not python.exists():
        raise SystemExit("there is no S3 server; `make object-store-setup` fetches one")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = int(taken.getsockname()[1])
    command = [str(python), str(REPOSITORY / "tests" / "object_store" / "server.py"), str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            while socket.socket().connect_ex(("127.0.0.1", port)) != 0:
                time.sleep(0.1)
            urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/{BUCKET}", method="PUT")).close()
            yield port
        finally:
            server.terminate()


def _begin(title: str, options: dict[str, str], sizes: list[int], log: Path, stack: ExitStack) -> Taking | None:
    """Its process, with its tables made; None, told, where it cannot be had."""
    try:
        return _made(title, options, sizes, log, stack)
    except Unavailable as error:
        print(f"{title} is left out: {error}", flush=True)
        return None


def _made(title: str, options: dict[str, str], sizes: list[int], log: Path, stack: ExitStack) -> Taking:
    environment = CONTENDERS[title][1]
    python, found = interpreter(environment), jars([_HUDI_JAR, *_S3A]) if environment == "hudi" else []
    settings = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYSPARK_PYTHON": python, "TZ": "UTC"}
    settings.pop("SPARK_HOME", None)
    process = stack.enter_context(
        subprocess.Popen(
            [python, "-m", "benchmarks.buckets.worker", title],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stack.enter_context(log.open("a")),
            env=settings,
            text=True,
        )
    )
    taking = Taking(process, {size: f"s3://{BUCKET}/{uuid.uuid4().hex}" for size in sizes})
    taking.version = str(taking.call("start", options=options, jars=found)["value"])
    for size, place in taking.places.items():
        taking.call("make", place=place, partitions=size)
    return taking


def _take(taking: Taking, server: Delay, size: int, value: int) -> None:
    """Each action once; `value` is what the ten rows hold afterwards. Raises `Unavailable` where they do not."""
    place = taking.places[size]
    for action in ("upsert", "plan", "read"):
        server.asked = 0
        more = {"value": value, "partitions": size} if action == "upsert" else {}
        reply = taking.call(action, place=place, **more)
        seconds, _ = taking.figures.setdefault((size, action), ([], 0))
        taking.figures[size, action] = ([*seconds, float(reply["seconds"])], server.asked)
        if action == "read" and reply["value"] != 10 * value:
            raise Unavailable(f"the rows of {place} sum up to {reply['value']}, not {10 * value}")


def _table(all_taken: dict[str, Taking], sizes: list[int]) -> str:
    heads = [f"{_ACTIONS[action]}, {size} partition(s)" for size in sizes for action in _ACTIONS]
    lines = [f"| seconds (requests) | {' | '.join(heads)} |", f"|---{'|---' * len(heads)}|"]
    for title, taking in all_taken.items():
        cells = []
        for size in sizes:
            for action in _ACTIONS:
                seconds, requests = taking.figures[size, action]
                # The first is not counted: sessions are warm from the second on.
                cells.append(f"{statistics.median(seconds[1:]):.2f} ({requests})")
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.buckets", description=__doc__)
    parser.add_argument("--delay", type=int, default=20, help="milliseconds that each request waits (default 20)")
    parser.add_argument("--partitions", type=int, nargs="+", default=[1, 50])
    parser.add_argument("--repeats", type=int, default=5, help="timed runs, after one that is not (default 5)")
    parser.add_argument("--contenders", nargs="+", default=list(CONTENDERS), choices=list(CONTENDERS))
    given = parser.parse_args()
    log = REPOSITORY / "benchmarks" / "data" / "buckets.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    print(f"load at start: {load}; {given.delay} ms a request, {given.repeats} runs, medians", flush=True)
    with ExitStack() as stack:
        server = stack.enter_context(delayed(stack.enter_context(_store()), given.delay / 1000))
        endpoint = f"http://127.0.0.1:{server.server_port}"
        options = {"endpoint": endpoint, "region": "us-east-1", "access_key_id": "bench", "secret_access_key": "bench"}
        begun = {title: _begin(title, options, given.partitions, log, stack) for title in given.contenders}
        all_taken = {title: taking for title, taking in begun.items() if taking is not None}
        for number in range(1, given.repeats + 2):
            for taking in all_taken.values():
                for size in given.partitions:
                    _take(taking, server, size, number)
        print(_table(all_taken, given.partitions), flush=True)
        for taking in all_taken.values():
            assert taking.process.stdin is not None
            taking.process.stdin.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
