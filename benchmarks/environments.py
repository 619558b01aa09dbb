"""Interpreters and jars that contenders need beside the project's own environment, made on first use under .cache/bench.

Whatever cannot be made here and now raises `Unavailable` with the reason; its contender is then skipped, the others run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.client import REPOSITORY

CACHE = REPOSITORY / ".cache" / "bench"
_INSTALL_TIMEOUT_S = 1800
_SPARK40 = ("pyspark==4.0.1",)
_DBT = {
    "dbt_duckdb": ("dbt-core~=1.11.0", "dbt-duckdb"),
    "dbt_spark": ("dbt-core~=1.11.0", "dbt-spark[session]~=1.11.0", "setuptools<81"),
}
_SPARK35 = ("pyspark==3.5.7", "setuptools<81")


class Unavailable(Exception):
    """An interpreter or a jar cannot be had; the message is the reason to print."""


def interpreter(name: str) -> str:
    """The Python of environment `main`, `spark40`, `dbt_duckdb`, `dbt_spark` or `hudi`. Raises `Unavailable`."""
    if name == "main":
        return sys.executable
    if name == "spark40":
        return _own_environment("venv-spark40", _SPARK40)
    if name in _DBT:
        return _own_environment(f"venv-{name.replace('_', '-')}", _DBT[name])
    return _hudi_interpreter()


def _hudi_interpreter() -> str:
    """`BENCH_HUDI_PYTHON`, else the interop lane's environment, else one made here: Hudi's bundles are for Spark 3.5."""
    named = os.environ.get("BENCH_HUDI_PYTHON")
    if named:
        if not Path(named).is_file():
            raise Unavailable(f"BENCH_HUDI_PYTHON={named} is not there")
        return named
    lane = REPOSITORY / ".venv-hudi" / "bin" / "python"
    return str(lane) if lane.is_file() else _own_environment("venv-spark35", _SPARK35)


def _own_environment(folder: str, packages: Sequence[str]) -> str:
    python = CACHE / folder / "bin" / "python"
    ready = CACHE / folder / "ready"
    if not ready.is_file():
        print(f"making the environment {folder} ({', '.join(packages)})", flush=True)
        shutil.rmtree(CACHE / folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(CACHE / folder)])
        _run([str(python), "-m", "pip", "install", "--quiet", *packages])
        ready.write_text("\n".join(packages))
    return str(python)


def jars(artifacts: Sequence[str]) -> list[str]:
    """Paths of Maven artifacts (`group:name:version`, nothing transitive), copied into the cache. Raises `Unavailable`."""
    return [str(_jar(artifact)) for artifact in artifacts]


def _jar(artifact: str) -> Path:
    _, name, version = artifact.split(":")
    path = CACHE / "jars" / f"{name}-{version}.jar"
    if not path.is_file():
        maven = shutil.which("mvn")
        if maven is None:
            raise Unavailable(f"{artifact} is not in {path.parent} and there is no mvn to fetch it")
        print(f"fetching {artifact}", flush=True)
        _run([maven, "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={path.parent}"])
    return path


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{command[0]} took longer than {_INSTALL_TIMEOUT_S} s") from error
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        raise Unavailable(f"{Path(command[0]).name} failed: {lines[-1]}")
