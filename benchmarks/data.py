"""The data of the benchmark: made once from a seed, stored as Parquet beside what every contender's answer must be.

    data/rows-<n>/base/part-*.parquet       n rows, 11 columns, keys in order
    data/rows-<n>/updates-1/  updates-10/   that share of the keys, picked at random, every other column new
    data/rows-<n>/expected.json             checksums of the table before and after each batch, results of each scan

Doubles are multiples of 1/256, so that their sums are exact in any order.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.checksum import Checksum, checksum_of, row_hashes
from benchmarks.queries import NARROW, WIDE, plain

GENERATOR = 1
"""Raise it when the rows change: prepared folders of another generator are made anew."""

FILE_ROWS = 500_000
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("customer_id", pa.int64()),
        ("quantity", pa.int32()),
        ("status", pa.string()),
        ("city", pa.string()),
        ("price", pa.float64()),
        ("discount", pa.float64()),
        ("amount", pa.decimal128(18, 2)),
        ("order_date", pa.date32()),
        ("updated_at", pa.timestamp("us", tz="UTC")),
        ("note", pa.string()),
    ]
)
_STATUSES = pa.array(["new", "paid", "shipped", "returned", "cancelled"])
_CITIES = pa.array([f"city-{number:04d}" for number in range(1000)])
_HEX = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint8).reshape(256, 2)
BASE_TIME_US = 1_700_000_000_000_000
_UPDATE_TIME_US = BASE_TIME_US + 400 * 86_400_000_000
_EPOCH_DAY = 18_000


@dataclass(frozen=True)
class Prepared:
    """A prepared folder: where the rows are and what the answers must be."""

    folder: Path
    rows: int
    checksums: dict[str, Checksum]
    scans: dict[str, list[Any]]

    def source(self, name: str) -> str:
        """The Parquet folder of `base`, `updates-1` or `updates-10`."""
        return str(self.folder / name)


def prepare(root: Path, rows: int) -> Prepared:
    """The data of `rows` rows under `root`, made when it is not there yet. Raises `ValueError` under 100 rows (1 % is to be a row)."""
    if rows < 100:
        raise ValueError(f"{rows} rows are too few: at least 100")
    folder = root / f"rows-{rows}"
    expected = folder / "expected.json"
    if not expected.is_file() or json.loads(expected.read_text())["generator"] != GENERATOR:
        draft = root / f"rows-{rows}.draft"
        for stale in (draft, folder):
            shutil.rmtree(stale, ignore_errors=True)
        _write_all(draft, rows)
        draft.rename(folder)
    answers = json.loads(expected.read_text())
    checksums = {name: Checksum(count, int(total, 16)) for name, (count, total) in answers["checksums"].items()}
    return Prepared(folder, rows, checksums, answers["scans"])


def _write_all(folder: Path, rows: int) -> None:
    hashes = np.empty(rows, np.uint64)
    totals = Totals()
    (folder / "base").mkdir(parents=True)
    for number, start in enumerate(range(0, rows, FILE_ROWS)):
        table = make_rows(np.arange(start, min(rows, start + FILE_ROWS)), seed=number, time_us=BASE_TIME_US)
        hashes[start : start + table.num_rows] = row_hashes(table, SCHEMA)
        totals.add(table)
        _write(table, folder / "base" / f"part-{number:05d}.parquet")
    base = Checksum.of_hashes(hashes)
    checksums, scans = {"base": base}, {"narrow": totals.of(NARROW), "wide": totals.of(WIDE)}
    for percent in (1, 10):
        name = f"updates-{percent}"
        keys = np.random.default_rng([7, percent]).permutation(rows)[: rows * percent // 100]
        table = make_rows(keys, seed=1_000_000 + percent, time_us=_UPDATE_TIME_US)
        (folder / name).mkdir()
        _write(table, folder / name / "part-00000.parquet")
        checksums[name] = base - Checksum.of_hashes(hashes[keys]) + checksum_of([table], SCHEMA)
        changed = Totals()
        changed.add(table)
        scans[name] = changed.of(NARROW)
    answers = {
        "generator": GENERATOR,
        "checksums": {name: [value.rows, f"{value.total:016x}"] for name, value in checksums.items()},
        "scans": scans,
    }
    (folder / "expected.json").write_text(json.dumps(answers, indent=1))


def _write(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, compression="zstd", row_group_size=FILE_ROWS)


def make_rows(keys: npt.NDArray[np.int64], *, seed: int, time_us: int) -> pa.Table:
    """Rows for the key numbers `keys`, the same for the same arguments; `updated_at` lies within 300 days after `time_us`."""
    count = len(keys)
    draw = np.random.default_rng([11, seed])
    days = draw.integers(0, 2000, count).astype(np.int32) + _EPOCH_DAY
    columns = [
        key_text(keys),
        pa.array(draw.integers(1, 1_000_000, count)),
        pa.array(draw.integers(1, 100, count).astype(np.int32)),
        _STATUSES.take(pa.array(draw.integers(0, len(_STATUSES), count))),
        _CITIES.take(pa.array(draw.integers(0, len(_CITIES), count))),
        pa.array(draw.integers(1, 256_000, count) / 256.0),
        pa.array(draw.integers(0, 128, count) / 256.0),
        _cents(draw.integers(-5_000_000, 100_000_000, count)),
        pa.array(days, pa.int32()).cast(pa.date32()),
        pa.array(time_us + draw.integers(0, 300 * 86_400_000_000, count)).cast(SCHEMA.field("updated_at").type),
        _hex_text(draw.integers(0, 256, (count, 12), dtype=np.uint8)),
    ]
    return pa.table(columns, schema=SCHEMA)


def key_text(keys: npt.NDArray[np.int64]) -> pa.Array:
    """`key-0000000000000042` for 42."""
    digits = pc.utf8_lpad(pa.array(keys, pa.int64()).cast(pa.string()), 16, "0")
    return pc.binary_join_element_wise("key-", digits, "")


def _cents(values: npt.NDArray[np.int64]) -> pa.Array:
    """Decimals with two places from whole cents: the 128-bit two's complement of each."""
    words = np.empty((len(values), 2), np.int64)
    words[:, 0] = values
    words[:, 1] = values >> 63
    return pa.Array.from_buffers(pa.decimal128(18, 2), len(values), [None, pa.py_buffer(words.tobytes())])


def _hex_text(raw: npt.NDArray[np.uint8]) -> pa.Array:
    count, width = raw.shape
    offsets = np.arange(count + 1, dtype=np.int32) * (2 * width)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets.tobytes()), pa.py_buffer(_HEX[raw].tobytes()))


class Totals:
    """The aggregates of `queries.py` over tables that come one after another, by Arrow alone."""

    def __init__(self) -> None:
        self._parts: list[dict[str, Any]] = []

    def add(self, table: pa.Table) -> None:
        self._parts.append({f"{kind}({name})": _aggregate(table[name], kind) for kind, name in {*NARROW, *WIDE}})

    def of(self, query: tuple[tuple[str, str], ...]) -> list[Any]:
        return [plain(_combine(kind, [part[f"{kind}({name})"] for part in self._parts])) for kind, name in query]


def _aggregate(column: pa.ChunkedArray, kind: str) -> Any:
    if kind == "length":
        return pc.sum(pc.utf8_length(column)).as_py()
    return (pc.sum(column) if kind == "sum" else pc.max(column)).as_py()


def _combine(kind: str, parts: list[Any]) -> Any:
    return max(parts) if kind == "max" else sum(parts)


def read_tables(paths: list[str]) -> Iterator[pa.Table]:
    """The benchmark's columns of each Parquet file, one file at a time."""
    for path in paths:
        yield pq.ParquetFile(path).read(columns=SCHEMA.names)
