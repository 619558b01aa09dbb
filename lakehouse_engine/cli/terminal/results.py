"""What a command did to a table, or would do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

import click

from lakehouse_engine.cli.shared import show_facts
from lakehouse_engine.cli.target import Settings
from lakehouse_engine.cli.terminal.output import print_json, printable
from lakehouse_engine.compat import UTC
from lakehouse_engine.model.services import (
    ArchiveResult,
    CleanResult,
    ClusteringResult,
    CompactionResult,
    HBaseIndexChange,
    IndexChange,
    MetadataTableChange,
    RestoreResult,
    RollbackResult,
    Savepoint,
    VersionChange,
)

Result = (
    ArchiveResult
    | CleanResult
    | ClusteringResult
    | CompactionResult
    | HBaseIndexChange
    | IndexChange
    | MetadataTableChange
    | RestoreResult
    | RollbackResult
    | VersionChange
)
_LISTED = 20
_REMARKS = {"kept": "kept", "notes": "note"}
"""Lists that are told line by line, and the word before each line."""


def show_result(settings: Settings, result: Result) -> None:
    """Everything as JSON; for people, lists as their length, and in a dry run their content."""
    whole = asdict(result)
    if settings.as_json:
        print_json(whole)
        return
    lists = {name: value for name, value in whole.items() if isinstance(value, tuple | list)}
    facts = {name: len(value) if name in lists else _shares(value) for name, value in whole.items() if name not in (*_REMARKS, "dry_run")}
    show_facts(settings, facts)
    for name, word in _REMARKS.items():
        for remark in lists.get(name, ()):
            click.echo(f"{word}: {printable(remark)}")
    if whole.get("dry_run"):
        _show_plan({name: value for name, value in lists.items() if name not in _REMARKS})
        click.echo("dry run: nothing was changed")


def _shares(value: Any) -> Any:
    """Shares by name as percentages; any other value as it is."""
    return ", ".join(f"{name} {share:.0%}" for name, share in value.items()) if isinstance(value, Mapping) else value


def _show_plan(lists: Mapping[str, Any]) -> None:
    for name, entries in lists.items():
        if entries:
            click.echo(f"\n{name.replace('_', ' ')}:")
        for entry in entries[:_LISTED]:
            click.echo(f"  {printable(_line(entry))}")
        if len(entries) > _LISTED:
            click.echo(f"  and {len(entries) - _LISTED} more; --json lists all")


def _line(entry: Any) -> str:
    """A path or an instant; for a compaction's operation its slice, for a clustering's group its file groups."""
    if not isinstance(entry, Mapping):
        return str(entry)
    if "slices" in entry:
        slices = list(entry["slices"] or ())
        partition = next((one["partition_path"] for one in slices if one["partition_path"]), "")
        return f"{partition} {', '.join(str(one['file_id']) for one in slices)} (to {entry['num_output_file_groups']} files)".strip()
    return f"{entry['partition_path'] or ''} {entry['file_id']} ({len(entry['delta_file_paths'] or ())} logs)".strip()


def savepoint_row(savepoint: Savepoint) -> dict[str, Any]:
    """A savepoint with a readable time."""
    return {**asdict(savepoint), "created_at": datetime.fromtimestamp(savepoint.created_at / 1000, UTC).isoformat(timespec="seconds")}
