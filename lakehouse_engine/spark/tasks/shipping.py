"""The engine's own code: what tells two versions of it apart, and how executors get it that lack it."""

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
    """A digest of the engine's modules, as they are imported from: the same for the same code, wherever it is installed."""
    digest = hashlib.sha256()
    for name, content in _sources():
        digest.update(f"{name}\n{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def engine_described() -> str:
    """The engine's version and where it is imported from, for people."""
    try:
        number = version("dbt-lakehouse")
    except PackageNotFoundError:
        number = "not installed"
    return f"version {number}, {engine_digest()[:12]}, from {files(_PACKAGE)}"


def ship_engine(spark: SparkSession) -> None:
    """Send the engine to the executors of a session, once; they import it before one that is installed there."""
    abilities = abilities_of(spark)
    with _lock:
        if abilities.shipping_scope not in _shipped:
            abilities.ship(_archive_file(), engine_digest())
            _shipped.add(abilities.shipping_scope)


def code_of(spark: SparkSession) -> str:
    """What stands for the code that the executors run for a session: that which they have, or what was sent to them."""
    abilities = abilities_of(spark)
    with _lock:
        return abilities.shipping_scope if abilities.shipping_scope in _shipped else abilities.application


@cache
def _archive_file() -> str:
    """The engine as a zip archive. One for the process: Spark serves it from there as long as it runs, and takes no other of its name."""
    folder = tempfile.mkdtemp(prefix="lakehouse-engine-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = Path(folder, f"{_PACKAGE}-{engine_digest()[:16]}.zip")
    archive.write_bytes(_archive())
    return str(archive)


def _archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _sources():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)  # without a time: the same for the same engine
    return file.getvalue()


@cache
def _sources() -> tuple[tuple[str, bytes], ...]:
    """Path (as in an archive) and content of every file, sorted; also of an engine that is in an archive itself.

    Read once, so that what is sent has the digest that was told.
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
