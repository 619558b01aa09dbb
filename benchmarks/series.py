"""Upserts one after another: batches of 1 %, each of keys picked anew and with later rows, and what the table holds after each.

    data/rows-<n>/series/01/ ...            the batches
    data/rows-<n>/series/expected.json      checksums after each, results of the scans after the fifth

A key may be in several batches; the last one's row stays.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.cells import LOGGED_UPSERTS, SERIES_UPSERTS
from benchmarks.checksum import Checksum, Hashes, row_hashes
from benchmarks.data import BASE_TIME_US, GENERATOR, SCHEMA, Prepared, Totals, make_rows, read_tables
from benchmarks.queries import NARROW, WIDE

_STEP_US = 400 * 86_400_000_000


def batch_name(number: int) -> str:
    """The folder of batch 1, 2, ... below the prepared rows, and the name of the state after it."""
    return f"series/{number:02d}"


def prepare_series(prepared: Prepared) -> Prepared:
    """The same rows with the batches, their checksums, and the scans `narrow` and `wide` after the fifth, named as the state is."""
    folder = prepared.folder / "series"
    expected = folder / "expected.json"
    if not expected.is_file() or json.loads(expected.read_text())["generator"] != GENERATOR:
        draft = folder.with_name("series.draft")
        for stale in (draft, folder):
            shutil.rmtree(stale, ignore_errors=True)
        draft.mkdir()
        _write_all(prepared, draft)
        draft.rename(folder)
    answers = json.loads(expected.read_text())
    checksums = {name: Checksum(count, int(total, 16)) for name, (count, total) in answers["checksums"].items()}
    return replace(prepared, checksums=prepared.checksums | checksums, scans=prepared.scans | answers["scans"])


def _write_all(prepared: Prepared, draft: Path) -> None:
    hashes = np.concatenate([row_hashes(table, SCHEMA) for table in _base(prepared)])
    current, checksums = prepared.checksums["base"], {}
    newest = np.zeros(prepared.rows, np.int64)
    early: list[tuple[Any, pa.Table]] = []
    for number in range(1, SERIES_UPSERTS + 1):
        keys = np.random.default_rng([13, number]).permutation(prepared.rows)[: prepared.rows // 100]
        batch = make_rows(keys, seed=2_000_000 + number, time_us=BASE_TIME_US + number * _STEP_US)
        current = _replaced(current, hashes, keys, row_hashes(batch, SCHEMA))
        checksums[batch_name(number)] = [current.rows, f"{current.total:016x}"]
        target = draft / f"{number:02d}"
        target.mkdir()
        pq.write_table(batch, target / "part-00000.parquet", compression="zstd")
        if number <= LOGGED_UPSERTS:
            newest[keys] = number
            early.append((keys, batch))
    answers = {"generator": GENERATOR, "checksums": checksums, "scans": _scans(prepared, newest, early)}
    (draft / "expected.json").write_text(json.dumps(answers, indent=1))


def _replaced(current: Checksum, hashes: Hashes, keys: Any, fresh: Hashes) -> Checksum:
    """The checksum once the rows of `keys` are others; `hashes` is brought up to date."""
    changed = current - Checksum.of_hashes(hashes[keys]) + Checksum.of_hashes(fresh)
    hashes[keys] = fresh
    return changed


def _scans(prepared: Prepared, newest: Any, batches: list[tuple[Any, pa.Table]]) -> dict[str, list[Any]]:
    """Aggregates over the rows that stay: base rows that no batch has, and each batch's rows that no later one has."""
    totals, start = Totals(), 0
    for table in _base(prepared):
        totals.add(table.filter(newest[start : start + table.num_rows] == 0))
        start += table.num_rows
    for number, (keys, batch) in enumerate(batches, 1):
        totals.add(batch.filter(newest[keys] == number))
    state = batch_name(LOGGED_UPSERTS)
    return {f"narrow after {state}": totals.of(NARROW), f"wide after {state}": totals.of(WIDE)}


def _base(prepared: Prepared) -> Any:
    return read_tables([str(path) for path in sorted(Path(prepared.source("base")).glob("*.parquet"))])
