"""The engine's own code: tells versions apart, and ships it to executors that lack it."""

from __future__ import annotations

import atexit
import hashlib
import io
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from lakehouse_engine.spark.abilities import abilities_of

if TYPE_CHECKING:
    from importlib.abc import Traversable

_PACKAGE = "lakehouse_engine"
_lock = Lock()
_shipped: set[str] = set()


@cache
def engine_digest() -> str:
    """Digest of the engine's modules: equal for equal code, wherever it is installed."""
    digest = hashlib.sha256()
    for name, content in _sources():
        digest.update(f"{name}\n{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def engine_described() -> str:
    """The engine's version and place of import, for messages."""
    try:
        number = version("dbt-lakehouse")
    except PackageNotFoundError:
        number = "not installed"
    return f"version {number}, {engine_digest()[:12]}, from {files(_PACKAGE)}"


def ship_engine(spark: SparkSession) -> None:
    """Send the engine to a session's executors once; they prefer it to an installed one."""
    abilities = abilities_of(spark)
    with _lock:
        if abilities.shipping_scope not in _shipped:
            abilities.ship(_archive_file(), engine_digest())
            _shipped.add(abilities.shipping_scope)


def code_of(spark: SparkSession) -> str:
    """Identity of the code that a session's executors run: their own, or what was sent."""
    abilities = abilities_of(spark)
    with _lock:
        return abilities.shipping_scope if abilities.shipping_scope in _shipped else abilities.application


@cache
def _archive_file() -> str:
    """The engine as a zip archive, one per process: Spark serves it from there for its lifetime, and accepts no other of its name."""
    folder = tempfile.mkdtemp(prefix="lakehouse-engine-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = Path(folder, f"{_PACKAGE}-{engine_digest()[:16]}.zip")
    archive.write_bytes(_archive())
    return str(archive)


def _archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _sources():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)  # without a time: equal engines, equal archives
    return file.getvalue()


@cache
def _sources() -> tuple[tuple[str, bytes], ...]:
    """Path (as in an archive) and content of every file, sorted; also of an engine that is itself in an archive.

    Read once, so that what is sent matches the digest.
    """
    return tuple(sorted(_below(files(_PACKAGE), _PACKAGE)))


def _below(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        name = f"{path}/{entry.name}"
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _below(entry, name)
        elif not entry.name.endswith((".pyc", ".swp")):
            yield name, entry.read_bytes()
