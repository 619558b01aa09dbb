"""Requests of upserts into a table in an object store."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from benchmarks.counted_store import requests, use_counted_stores
from benchmarks.look_ups.tables import batches, fill_at
from lakehouse_engine.storage.objects.store import ObjectStorage
from lakehouse_engine.table import HoodieTable


def upsert_requests(files: int, rows: int, partitions: int, metadata: Sequence[str], options: dict[str, str]) -> list[int]:
    """Requests of an upsert of one row, first and third, and of 10,000 new keys. Each opens the table."""
    use_counted_stores()
    storage = ObjectStorage.at("s3://bucket/t")
    fill_at(storage, "cow", 9, files, rows, partitions)
    if metadata:
        HoodieTable(storage).rebuild_metadata(list(metadata))
    found = []
    for kind in ("one", "new"):
        made = [requests(partial(_upsert, storage, batch, options)) for batch in batches(kind, 3, partitions)]
        found += [made[0], made[2]]
    return found


def _upsert(storage: ObjectStorage, rows: pa.Table, options: dict[str, str]) -> None:
    HoodieTable(storage).upsert(rows, options=options)
