"""Several processes write, serve and read one table at once, and some are killed or paused: what was acknowledged is there, once and whole.

LAKEHOUSE_DEPTH=full makes them with six writers of 200 steps.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.histories.harness import make_history
from tests.histories.judge import Judge
from tests.histories.plans import INLINE_CLUSTERING, INLINE_COMPACTION, Plan, Sizes, seed
from tests.support.depth import IS_FULL

_LOGS = tuple(INLINE_COMPACTION.items())
_CLUSTERED = tuple(INLINE_CLUSTERING.items())
_OCC = (
    ("hoodie.write.concurrency.mode", "optimistic_concurrency_control"),
    ("hoodie.write.lock.provider", "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"),
    ("hoodie.write.lock.filesystem.expire", "1"),
)
_NOBODY_DIES = replace(Sizes.here(), kills=0)
"""Hudi's lock file outlives its holder, for a minute here."""
_SHARES = (("lakehouse.write.broadcast.max.bytes", 0),)
_SMALL_FILES = (("hoodie.parquet.max.file.size", 9000), ("hoodie.parquet.small.file.limit", 6000))
_LOCAL = (("hoodie.index.type", "SIMPLE"),)
"""Keys are looked up in their partition: then writers of versions 8 and 9 make their files at once."""
_BUCKETS = (("hoodie.index.type", "BUCKET"), ("hoodie.bucket.index.num.buckets", "2"))
_NINE = (("hoodie.write.table.version", "9"),)

PLANS = {
    "list_append-cow": Plan("list_append", "cow"),
    "list_append-mor": Plan("list_append", "mor", options=_LOGS),
    "bank-cow": Plan("bank", "cow"),
    "bank-mor": Plan("bank", "mor", options=_LOGS),
    "mixed-cow": Plan("mixed", "cow"),
    "mixed-mor": Plan("mixed", "mor"),
    "mixed-cow-bloom": Plan("mixed", "cow", (("hoodie.index.type", "GLOBAL_BLOOM"),)),
    "mixed-cow-partitions": Plan("mixed", "cow", (("hoodie.index.type", "SIMPLE"),), is_global=False),
    "mixed-cow-event-time": Plan("mixed", "cow", ordering=True),
    "mixed-cow-files": Plan("mixed", "cow", options=_SMALL_FILES),
    "mixed-cow-shares": Plan("mixed", "cow", ordering=True, options=(*_SMALL_FILES, *_SHARES)),
    "mixed-mor-shares": Plan("mixed", "mor", options=(*_LOGS, *_SHARES)),
    "mixed-mor-event-time": Plan("mixed", "mor", ordering=True),
    "mixed-mor-buckets": Plan("mixed", "mor", _BUCKETS, is_global=False),
    "mixed-mor-inline": Plan("mixed", "mor", options=_LOGS),
    "list_append-mor-avro": Plan("list_append", "mor", options=(*_LOGS, ("hoodie.logfile.data.block.format", "avro"))),
    "list_append-cow-hudis-lock": Plan("list_append", "cow", _OCC, sizes=_NOBODY_DIES),
    "bank-mor-hudis-lock": Plan("bank", "mor", _OCC, _LOGS, sizes=_NOBODY_DIES),
    "list_append-cow-clustered": Plan("list_append", "cow", options=_CLUSTERED),
    "bank-mor-clustered": Plan("bank", "mor", options=(*_LOGS, *_CLUSTERED)),
    "list_append-cow-version-9-clustered": Plan("list_append", "cow", (*_NINE, *_LOCAL), _CLUSTERED),
    "list_append-mor-version-9": Plan("list_append", "mor", _NINE, _LOGS),
    "mixed-cow-version-9": Plan("mixed", "cow", _NINE),
    "mixed-mor-version-9": Plan("mixed", "mor", _NINE, ordering=True),
    "list_append-cow-version-9-at-once": Plan("list_append", "cow", (*_NINE, *_LOCAL)),
    "list_append-mor-version-9-at-once": Plan("list_append", "mor", (*_NINE, *_LOCAL), _LOGS),
    "mixed-cow-version-9-at-once": Plan("mixed", "cow", (*_NINE, *_LOCAL), is_global=False),
    "mixed-mor-version-9-at-once": Plan("mixed", "mor", (*_NINE, *_LOCAL), _LOGS, ordering=True, is_global=False),
    "mixed-mor-version-9-buckets": Plan("mixed", "mor", (*_NINE, *_BUCKETS), _LOGS, is_global=False),
    "bank-mor-version-8": Plan("bank", "mor", (("hoodie.write.table.version", "8"),), _LOGS),
}


@pytest.mark.timeout(7200 if IS_FULL else 600)
@pytest.mark.parametrize("name", PLANS)
def test_what_was_acknowledged_is_there_and_readers_see_whole_commits(name: str, tmp_path: Path) -> None:
    judge = Judge(make_history(PLANS[name].seeded(seed()), tmp_path))
    found = judge.judge()
    print(judge.figures())
    assert not found, "\n".join(found[:20])
    assert len(judge.told.readings) > judge.plan.sizes.readers, "the readers read nothing"
