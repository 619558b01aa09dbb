"""Where the tables written by Apache Hudi itself are, and how a test gets a copy of one."""

from __future__ import annotations

import json
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

Unpack = Callable[[str], Path]
"""Gives the directory of the table `<folder>/<table>`."""

REPOSITORY = Path(__file__).resolve().parents[2]


def fixtures_root() -> Path | None:
    """The fixture folder: `LAKEHOUSE_FIXTURES`, else `../shared/fixtures` beside the repository; None where neither is there."""
    named = os.environ.get("LAKEHOUSE_FIXTURES")
    candidates = [Path(named)] if named else [REPOSITORY.parent / "shared" / "fixtures"]
    return next((path for path in candidates if path.is_dir()), None)


LATER_VERSIONS = ("v8-1.2.0", "v9-1.2.0")
EVERY_VERSION = ("v6-0.15.0", "v6-1.2.0", *LATER_VERSIONS)


def spark_fixtures(versions: tuple[str, ...] = ("v6-0.15.0", "v6-1.2.0"), table_type: str | None = None) -> list[str]:
    """Names (`<folder>/<table>`) of the tables that Hudi on Spark wrote; `table_type` is `cow` or `mor`."""
    root = fixtures_root()
    if root is None:
        return []
    found = [path for version in versions for path in sorted((root / "hudi-spark" / version).glob("*.tar.gz"))]
    names = [f"{path.parent.name}/{path.name.removesuffix('.tar.gz')}" for path in found]
    return [name for name in names if table_type is None or name.split("/")[1].startswith(table_type)]


def unpack_spark_fixture(name: str, target: Path) -> Path:
    """Unpack `<folder>/<table>` below `target` and return the table's directory."""
    root = fixtures_root()
    assert root is not None
    with tarfile.open(root / "hudi-spark" / f"{name}.tar.gz") as archive, _folder_for(target) as folder:
        archive.extractall(folder, filter="data")
    return target / name.split("/")[1]


@contextmanager
def _folder_for(target: Path) -> Iterator[Path]:
    """A directory to unpack into: `target`, or one whose files are put into the bucket that it is in."""
    if not hasattr(target, "upload"):
        yield target
        return
    with TemporaryDirectory() as folder:
        yield Path(folder)
        target.upload(Path(folder))


def expected_readings(name: str) -> tuple[Path, dict[str, dict[str, object]]]:
    """The folder with what Hudi reads from a fixture, and its manifest."""
    root = fixtures_root()
    assert root is not None
    folder = root / "hudi-spark" / f"{name}.expected"
    return folder, json.loads((folder / "manifest.json").read_text())


def rs_fixtures(table_type: str | None = None) -> list[str]:
    """Names (zip stems) of the tables of the hudi-rs test data; `table_type` is `cow` or `mor`."""
    root = fixtures_root()
    if root is None:
        return []
    names = [path.stem for path in sorted((root / "hudi-rs").glob("*.zip"))]
    return [name for name in names if table_type is None or f"__{table_type}__" in name]


def unpack_rs_fixture(name: str, target: Path) -> Path:
    """Unpack a zip of the hudi-rs set and return the directory that holds `.hoodie`."""
    root = fixtures_root()
    assert root is not None
    with zipfile.ZipFile(root / "hudi-rs" / f"{name}.zip") as archive, _folder_for(target) as folder:
        archive.extractall(folder)
    tables = [path.parent for path in target.rglob(".hoodie") if "__MACOSX" not in path.parts]
    return min(tables, key=lambda path: len(path.parts))
