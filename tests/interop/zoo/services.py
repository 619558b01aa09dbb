"""Tables whose table services ran, or are still to run."""

from __future__ import annotations

from typing import Any

from tests.interop.zoo.kind import BOTH, FAST, HISTORY, MOR, PARTITIONED, Kind, Sql, Step, Write, sql
from tests.interop.zoo.rows import PLAIN

NO_DECIMAL = PLAIN.but(amount=None)
"""Hudi 0.15 breaks decimals of up to 18 digits when it clusters."""
SMALL = {"hoodie.parquet.small.file.limit": "0"}
CLUSTERING = {
    **SMALL,
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": "2",
    "hoodie.clustering.plan.strategy.small.file.limit": "1000000000",
    "hoodie.clustering.plan.strategy.sort.columns": "n",
}
UPDATES_ALLOWED = {
    "hoodie.clustering.updates.strategy": "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy",
}
"""Otherwise Hudi refuses updates of file groups that a pending clustering names; here they leave its plan."""
COMPACTION = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
SCHEDULED = {"hoodie.compact.schedule.inline": "true", "hoodie.compact.inline": "false", "hoodie.compact.inline.max.delta.commits": "1"}
CLEANING = {"hoodie.clean.commits.retained": "1", "hoodie.cleaner.commits.retained": "1"}
ARCHIVING = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", **CLEANING, "hoodie.commits.archival.batch": "1"}
BEYOND = {"hoodie.archive.beyond.savepoint": "true"}
MULTIWRITER = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
}
MORE: tuple[Step, ...] = tuple(Write([seed, seed + 3], seed) for seed in (1, 2, 2, 2, 2))
SAVEPOINT = sql("call create_savepoint(path => '{path}', commit_time => '{newest}')")
DELETES_LATER = Write([1], 2, "delete")


def of_service(name: str, shown: str, *steps: Step, options: dict[str, str], **more: Any) -> Kind:
    every = {**PARTITIONED, **FAST, **options}
    conf = {**FAST, **more.pop("conf", {})}
    if CLEANING.items() <= options.items():
        more["skip"] = {maker: {"as_of": "was cleaned", "from_first": "was cleaned"} for maker in BOTH}
    if more.pop("too_little", False):
        more["skip"] = {**more["skip"], "0.15.0": {**more["skip"]["0.15.0"], "incremental": "0.15 leaves out rows of archived commits"}}
    return Kind(name=f"service-{name}", shown=f"services: {shown}", steps=steps or (*HISTORY, *MORE[:2]), options=every, conf=conf, **more)


def called(statement: str, **conf: str) -> Sql:
    return Sql((statement,), conf)


PLANNED = called("call run_compaction(op => 'schedule', path => '{path}')", **{"hoodie.compact.inline.max.delta.commits": "1"})
CLUSTERED = called(
    "call run_clustering(op => 'schedule', path => '{path}', order => 'n')",
    **{"hoodie.clustering.plan.strategy.small.file.limit": "1000000000"},
)

KINDS = (
    of_service("clustering", "inline clustering", options=CLUSTERING, rows=NO_DECIMAL),
    of_service("clustering-mor", "inline clustering, merge-on-read", options={**CLUSTERING, **MOR}, rows=NO_DECIMAL),
    of_service(
        "clustering-pending",
        "a scheduled clustering that did not run",
        *HISTORY,
        CLUSTERED,
        options={**SMALL, **UPDATES_ALLOWED},
        rows=NO_DECIMAL,
    ),
    of_service("compaction", "inline compaction", options={**COMPACTION, **MOR}),
    of_service("compaction-scheduled", "compactions scheduled by the writer, not run", options={**SCHEDULED, **MOR}),
    of_service("compaction-pending", "a scheduled compaction, and writes after it", *HISTORY, PLANNED, MORE[1], options=MOR),
    of_service("cleaned", "clean", *HISTORY, *MORE, options=CLEANING),
    of_service("cleaned-mor", "clean after compactions, merge-on-read", *HISTORY, *MORE, options={**CLEANING, **COMPACTION, **MOR}),
    of_service("archived", "archive", *HISTORY, *MORE, *MORE, options=ARCHIVING, too_little=True),
    of_service("archived-mor", "archive, merge-on-read", *HISTORY, *MORE, *MORE, options={**ARCHIVING, **COMPACTION, **MOR}),
    of_service("savepoint", "a savepoint", *HISTORY, SAVEPOINT, *MORE, options=CLEANING),
    of_service("savepoint-archived", "a savepoint, archive", *HISTORY, SAVEPOINT, *MORE, *MORE, options=ARCHIVING, too_little=True),
    of_service(
        "savepoint-beyond",
        "archive beyond a savepoint",
        *HISTORY,
        SAVEPOINT,
        *MORE,
        *MORE,
        options={**ARCHIVING, **BEYOND},
        too_little=True,
    ),
    of_service(
        "savepoint-beyond-mor",
        "archive beyond a savepoint, merge-on-read",
        *HISTORY,
        SAVEPOINT,
        *MORE,
        *MORE,
        options={**ARCHIVING, **BEYOND, **COMPACTION, **MOR},
        makers=("1.2.0",),
        why_not="Hudi 0.15 loses updates of such tables itself: do not archive beyond savepoints with it",
    ),
    of_service("restored", "a restore", *HISTORY, SAVEPOINT, *MORE[:2], called("call rollback_to_savepoint(path => '{path}')"), options={}),
    of_service("occ", "optimistic concurrency control", options=MULTIWRITER),
    of_service("occ-mor", "optimistic concurrency control, merge-on-read", options={**MULTIWRITER, **MOR}),
    of_service("all-mor", "metadata table, compaction, clean and archive together", *HISTORY, *MORE, *MORE, options={
        **ARCHIVING, **COMPACTION, **MOR, "hoodie.metadata.enable": "true"
    }, conf={"hoodie.metadata.enable": "true"}),
)
