"""The file slices of a Hudi table, told from the names of its files alone: no timeline, no engine, of Hudi or ours.

Base files are `<file id>_<token>_<instant>.parquet`, logs `.<file id>_<instant>.log.<version>_<token>`. The instant of a log is that of
its base file up to table version 6, that of its own commit from 8 on. In both, the logs that count are not older than the newest base.
This holds for tables on which nothing failed, as those of the benchmark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_LOG = re.compile(r"\.(?P<group>.+)_(?P<instant>[0-9]+)\.log\.(?P<version>[0-9]+)(_.*)?")


@dataclass(frozen=True)
class Slice:
    """The newest base file of a file group, None where there is none yet, and the logs that change it, oldest first."""

    base: Path | None
    logs: tuple[Path, ...]


def newest_slices(table: str) -> list[Slice]:
    """The newest slice of every file group, the largest base files first."""
    bases: dict[str, Path] = {}
    logs: dict[str, list[tuple[str, int, Path]]] = {}
    for path in _data_files(Path(table)):
        found = _LOG.fullmatch(path.name)
        if found is not None:
            logs.setdefault(found["group"], []).append((found["instant"], int(found["version"]), path))
        elif path.suffix == ".parquet":
            group = path.name.partition("_")[0]
            bases[group] = max(path, bases.get(group, path), key=_instant)
    slices = [_slice(bases.get(group), logs.get(group, [])) for group in sorted({*bases, *logs})]
    return sorted(slices, key=lambda one: 0 if one.base is None else -one.base.stat().st_size)


def count_logs(table: str) -> int:
    """How many logs a snapshot query has to read."""
    return sum(len(one.logs) for one in newest_slices(table))


def _slice(base: Path | None, logs: list[tuple[str, int, Path]]) -> Slice:
    since = "" if base is None else _instant(base)
    return Slice(base, tuple(path for instant, _, path in sorted(logs) if instant >= since))


def _instant(base: Path) -> str:
    return base.stem.rpartition("_")[2]


def _data_files(table: Path) -> list[Path]:
    """Without the checksum files of Hadoop, whose names begin like those of logs."""
    found = (path for path in table.rglob("*") if path.suffix != ".crc" and ".hoodie" not in path.relative_to(table).parts)
    return [path for path in found if path.is_file()]
