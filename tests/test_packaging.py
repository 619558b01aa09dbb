"""What is shipped: the wheel holds every file of both packages, and the locks pin by hash without naming a place."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("dbt", "lakehouse_engine")
LOCKS = ("requirements.lock", "tests/interop/requirements.lock")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    files = {path.relative_to(ROOT).as_posix() for package in PACKAGES for path in (ROOT / package).rglob("*") if path.is_file()}
    shipped = set(zipfile.ZipFile(wheel).namelist())
    assert sorted(name for name in files if "__pycache__" not in name and name not in shipped) == []


def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert tops == {*PACKAGES, f"{wheel.name.split('-py3')[0]}.dist-info"}


def test_the_version_comes_from_the_adapter(wheel: Path) -> None:
    namespace: dict[str, str] = {}
    exec((ROOT / "dbt/adapters/lakehouse/__version__.py").read_text(), namespace)
    assert wheel.name.split("-")[1] == namespace["version"]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_place(lock: str) -> None:
    assert re.findall(r"(?i)[a-z+]+://\S*|^-.*| @ .*", (ROOT / lock).read_text(), re.MULTILINE) == []


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_every_package_by_hash(lock: str) -> None:
    entries = re.split(r"\n(?=[a-z])", (ROOT / lock).read_text())
    unpinned = [entry.split()[0] for entry in entries if not entry.startswith("#") and ("==" not in entry or "--hash=sha256:" not in entry)]
    assert unpinned == []


def test_dbt_core_is_locked_to_the_line_that_the_suite_runs_on() -> None:
    assert re.search(r"^dbt-core==1\.11\.\d+ ", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
