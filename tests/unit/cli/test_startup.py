"""The command as a process: what it imports before it answers, and what it leaves with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Warehouse

HEAVY = ("pyspark", "py4j", "sqlglot", "dbt")


def run(*arguments: str, code: str | None = None) -> subprocess.CompletedProcess[str]:
    command = ["-c", code] if code else ["-m", "lakehouse_engine.cli.main"]
    return subprocess.run([sys.executable, *command, *arguments], capture_output=True, text=True, check=False, timeout=120)


COMMANDS = (
    ["--help"],
    ["tables"],
    ["read", "analytics.orders"],
    ["clean", "analytics.orders"],
    ["archive", "analytics.orders"],
    ["verify", "analytics.orders"],
    ["repair", "analytics.orders"],
    ["restore", "analytics.orders", "--to", "FIRST", "--yes"],
    ["savepoint", "create", "analytics.orders"],
    ["savepoint", "delete", "analytics.orders", "FIRST", "--yes"],
    ["rollback", "analytics.orders", "--yes"],
)


def test_no_command_needs_spark(warehouse: Warehouse) -> None:
    """One process does them one after the other: starting it is most of what a command takes."""
    commands = [[warehouse.first if one == "FIRST" else one for one in arguments] for arguments in COMMANDS]
    code = (
        "import sys\nfrom lakehouse_engine.cli.main import cli\n"
        f"for arguments in {commands!r}:\n"
        f"    try: cli(['--warehouse', {str(warehouse.root)!r}, *arguments])\n"
        f"    except SystemExit as end: print('ENDED', [name for name in {HEAVY!r} if name in sys.modules], end.code)"
    )
    ended = run(code=code)
    said = [line for line in ended.stdout.splitlines() if line.startswith("ENDED")]
    assert said == ["ENDED [] 0"] * len(COMMANDS), ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["tables"], 0), (["info", "analytics.nothing"], 1), (["info"], 2), (["read", "analytics.orders", "--format", "csv"], 3)],
)
def test_the_process_ends_with_the_exit_code(warehouse: Warehouse, arguments: list[str], code: int) -> None:
    ended = run("--warehouse", str(warehouse.root), *arguments)
    assert ended.returncode == code
    assert "Traceback" not in ended.stderr


ROOMS = tuple(f"lakehouse_engine.{room}" for room in ("commit", "write", "services", "undo", "verify", "repair"))


def test_a_command_that_looks_loads_nothing_that_changes_tables(warehouse: Warehouse) -> None:
    code = (
        "import sys\nfrom lakehouse_engine.cli.main import cli\n"
        f"try: cli(['--warehouse', {str(warehouse.root)!r}, 'info', 'analytics.orders'])\n"
        f"except SystemExit: print([name for name in sys.modules if name.startswith({ROOMS!r})])"
    )
    assert run(code=code).stdout.splitlines()[-1] == "[]"


def test_the_python_package_itself_imports_no_spark() -> None:
    assert run(code="import sys, lakehouse_engine; print('pyspark' in sys.modules)").stdout.strip() == "False"


def test_who_keeps_tables_in_directories_does_not_wait_for_the_client_of_buckets() -> None:
    loaded = "import sys, lakehouse_engine.lakehouse, lakehouse_engine.cli.warehouse; print('obstore' in sys.modules)"
    assert run(code=loaded).stdout.strip() == "False"


def test_the_public_names_of_the_package_can_all_be_imported(tmp_path: Path) -> None:
    import lakehouse_engine

    assert all(getattr(lakehouse_engine, name) is not None for name in lakehouse_engine.__all__)
    assert set(lakehouse_engine._HOMES) == set(lakehouse_engine.__all__)
