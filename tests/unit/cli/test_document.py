"""The commands of docs/cli.md, run as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from lakehouse_engine import Lakehouse
from lakehouse_engine.cli.main import COMMANDS, cli
from tests.support.documents import ROOT, blocks

LINES = [line for block in blocks("docs/cli.md", "sh") for line in block.code.splitlines()]
SCHEMA = pa.schema([("id", pa.int64()), ("status", pa.string())])


def test_the_commands_of_the_page_end_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = Lakehouse("lakehouse").create_table("shop.orders", schema=SCHEMA, record_key=["id"])
    for status in ("new", "paid", "sent"):
        table.upsert(pa.table({"id": [1, 2, 3], "status": [status] * 3}, schema=SCHEMA))
    for line in LINES:
        command, _, code = line.partition("  # exit code ")
        program, *arguments = shlex.split(command)
        assert program == "lakehouse"
        ended = CliRunner().invoke(cli, arguments)
        assert ended.exit_code == int(code or 0), f"{line}\n{ended.output}"
    assert (tmp_path / "orders.parquet").is_file()
    assert {row["status"] for row in table.to_arrow().to_pylist()} == {"sent"}


def test_every_command_is_on_the_page() -> None:
    shown = {shlex.split(line)[1] for line in LINES}
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if name not in shown and f"`{name}`" not in text] == []


def test_the_commands_of_the_readme_are_there() -> None:
    named = re.findall(r"^lakehouse (?:--\S+ \S+ )?(\w+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert named
    assert set(named) <= set(COMMANDS)
