"""Tables to bring back: many files, many commits, long timelines. Each is checked by the engine's own `verify` before it is used.

Nothing here starts a JVM. Files are small: what is measured depends on how many there are, not on their rows.
"""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.format.parquet_seal import PAGES_KEY
from lakehouse_engine.format.seal import SEAL_KEY
from lakehouse_engine.format.v6.metadata_json import decode_commit_metadata, render_commit_metadata
from lakehouse_engine.model.instant import format_instant_time, parse_instant_time
from lakehouse_engine.verify import verify

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("day", pa.string())])
_NO_SERVICES = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
_META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name")


class BrokenTableError(Exception):
    """A table that was made here is not whole: nothing measured on it would mean anything."""


def make_table(root: Path, name: str, *, partitioned: bool) -> HoodieTable:
    """An empty table `root/bench/name` that neither cleans nor archives on its own."""
    return Lakehouse(str(root)).create_table(
        f"bench.{name}",
        schema=SCHEMA,
        record_key=["id"],
        ordering_fields=["n"],
        partition_by=["day"] if partitioned else [],
        properties=_NO_SERVICES,
    )


def add_files(table: HoodieTable, *, files: int, commits: int, partitions: int, start: int) -> None:
    """`files` base files of one row each over `commits` commits; keys from `start` on. A commit adds one file to a partition at most."""
    for share in np.array_split(np.arange(start, start + files), commits):
        if len(share) > partitions:
            raise ValueError(f"{len(share)} files a commit in {partitions} partitions")
        table.bulk_insert(rows(share, partitions))


def rows(numbers: np.ndarray, partitions: int = 1) -> pa.Table:
    """Rows of distinct keys, the n-th in partition n modulo `partitions`."""
    days = pa.array([f"{number:04d}" for number in range(partitions)])
    return pa.table([pa.array(numbers), pa.array(numbers), days.take(pa.array(numbers % partitions))], schema=SCHEMA)


def long_timeline(root: Path, name: str, commits: int) -> HoodieTable:
    """A table of one file group that was upserted again and again, every version of its file still there.

    Two upserts are real. The others are copies of the second one's instants and file under new times, with that time in the commit's
    record, the file's name and its meta columns: a thousand writes would take minutes, and leave the same.
    """
    table = make_table(root, name, partitioned=False)
    table.bulk_insert(rows(np.arange(50)))
    table.upsert(rows(np.arange(50)))
    folder = Path(table.path)
    before, newest = (instant.requested_time for instant in table.timeline.completed())
    base = next(folder.glob(f"*_{newest}.parquet"))
    template = _Template(folder, before, newest, base, pq.read_table(base), pq.read_metadata(base).metadata or {})
    previous = newest
    for number in range(1, commits - 1):
        instant = format_instant_time(parse_instant_time(newest) + timedelta(milliseconds=number))
        template.stamp(previous, instant)
        previous = instant
    return HoodieTable.open(table.path)


def _unsealed(content: bytes) -> str:
    return render_commit_metadata(decode_commit_metadata(content)).decode() if content else ""


class _Template:
    """One commit, to be had again under other times."""

    def __init__(self, folder: Path, before: str, newest: str, base: Path, data: pa.Table, footer: dict[bytes, bytes]) -> None:
        self._folder, self._before, self._newest, self._base = folder, before, newest, base
        # Seals are of the template alone.
        texts = {key.decode(): value.decode() for key, value in footer.items()}
        self._data, self._footer = data, {key: value for key, value in texts.items() if key not in (SEAL_KEY, PAGES_KEY)}
        self._instants = [(path.name, _unsealed(path.read_bytes())) for path in sorted((folder / ".hoodie").glob(f"{newest}.*"))]
        self._recorded = re.compile(rf"(?<=: ){base.stat().st_size}\b")

    def stamp(self, previous: str, instant: str) -> None:
        """The commit at `instant`, which replaces the file that `previous` wrote. Its file first, as a writer would."""
        name = self._base.name.replace(self._newest, instant)
        with pq.ParquetWriter(self._folder / name, self._data.schema, compression="zstd", store_schema=False) as writer:
            writer.write_table(self._stamped(instant, name))
            writer.add_key_value_metadata(self._footer)
        size = str((self._folder / name).stat().st_size)
        for file, text in self._instants:
            moved = text.replace(self._before, "\0").replace(self._newest, instant).replace("\0", previous)
            target = self._folder / ".hoodie" / file.replace(self._newest, instant)
            target.write_text(self._recorded.sub(size, moved))

    def _stamped(self, instant: str, name: str) -> pa.Table:
        count = self._data.num_rows
        values = {
            "_hoodie_commit_time": [instant] * count,
            "_hoodie_commit_seqno": [f"{instant}_0_{row}" for row in range(count)],
            "_hoodie_file_name": [name] * count,
        }
        data = self._data
        for column in _META:
            data = data.set_column(data.column_names.index(column), data.schema.field(column), pa.array(values[column]))
        return data


def check(table: HoodieTable) -> None:
    """Raises `BrokenTableError` naming the first findings of `verify`."""
    report = verify(table.state)
    if not report.ok:
        raise BrokenTableError("; ".join(finding.message for finding in report.findings[:3]))
