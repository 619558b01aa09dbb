"""Operations on a table besides reading and writing rows: its history, its savepoints, and services that maintain it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakehouse_engine.commit.concurrency.writers import find_writers
from lakehouse_engine.engine import TaskRunner, local_runner
from lakehouse_engine.errors import OptionError, SavepointError
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
    TableIndex,
    VersionChange,
)
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.model.writers import Writer
from lakehouse_engine.options import (
    LOCK_TIMEOUT_MS,
    STORED_PREFIX,
    ArchiveOptions,
    CleanOptions,
    CompactionOptions,
    WriteOptions,
    check_known,
    layered,
)
from lakehouse_engine.options.arguments import check, checked
from lakehouse_engine.options.services import CLEAN_COMMITS, CLEAN_POLICY, KEEP_MAX_COMMITS, KEEP_MIN_COMMITS
from lakehouse_engine.repair import RepairReport, repair
from lakehouse_engine.services import hbase_index
from lakehouse_engine.services.archive import archive
from lakehouse_engine.services.clean import clean
from lakehouse_engine.services.cluster.request import ClusteringRequest
from lakehouse_engine.services.compact import run, schedule, schedule_and_run
from lakehouse_engine.services.compact.plan import check_has_logs
from lakehouse_engine.services.metadata import automatic, building, indexes
from lakehouse_engine.services.versions import Compacting, bring_to_six, change_version, is_brought_to_six
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import storage_for
from lakehouse_engine.timeline.locks.agreement import agree_on_lock
from lakehouse_engine.timeline.timeline import Timeline
from lakehouse_engine.undo.restore import restore
from lakehouse_engine.undo.rollback import rollback
from lakehouse_engine.undo.savepoint import create_savepoint, delete_savepoint, list_savepoints
from lakehouse_engine.verify import VerifyReport, verify
from lakehouse_engine.view.history import HistoryEntry, history
from lakehouse_engine.view.moment import at_one_moment
from lakehouse_engine.view.table_state import TableState

COMPACTION_OPS = ("schedule", "run", "schedule_and_run")
KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
_MAX_TEXT = 10_000


@checked
class TableServices:
    """One table without Spark: what `HoodieTable` and the command line share.

    `options` are `hoodie.*` keys; they override the table's own properties. `known` is the current table, if the caller has it. Raises
    `TableNotFoundError`, `UnsupportedTableVersionError`, `UnknownOptionError`.
    """

    def __init__(self, storage: Storage, *, options: Mapping[str, Any] | None = None, known: TableState | None = None) -> None:
        self._storage = storage
        self._options = dict(options or {})
        check_known(self._options)
        self._state = TableState.load(storage) if known is None else known

    @property
    def path(self) -> str:
        return self._storage.root

    @property
    def storage(self) -> Storage:
        return self._storage

    @property
    def state(self) -> TableState:
        """The table's current state: timeline, configuration and files. Partitions that no instant touched are not listed again."""
        self._state = self._state.advance()
        return self._state

    @property
    def seen(self) -> TableState:
        """The table as this handle last saw it, without another look."""
        return self._state

    @property
    def config(self) -> TableConfig:
        return self.state.config

    @property
    def timeline(self) -> Timeline:
        return self.state.timeline

    @property
    def services(self) -> TableServices:
        """The same table, for operations besides reading and writing rows."""
        return self

    def history(self, limit: int | None = None, *, archived: bool = False) -> list[HistoryEntry]:
        """Instants of the active timeline, newest first, with what each keeps or holds up; then, if `archived`, the archived ones."""
        return history(self.state, limit, archived=archived)

    def writers(self) -> list[Writer]:
        """Processes at work on the table, including this one, and which one waits for which."""
        return find_writers(self.state)

    # savepoints, restore and rollback

    def savepoint(
        self, instant: str | None = None, *, name: str | None = None, comment: str = "", user: str | None = None, dry_run: bool = False
    ) -> Savepoint:
        """Keep the table as of a completed write (None: the newest), until the savepoint is deleted.

        No clean deletes its files, and the table can be restored to it even after compaction and archiving. Raises `SavepointError`,
        `InstantNotFoundError`, `InstantCleanedError`.
        """
        for what, text in (("name", name), ("comment", comment), ("user", user)):
            _check_text(what, text)
        return create_savepoint(
            self._storage,
            instant=instant,
            name=name,
            comment=comment,
            user=user,
            lock_timeout_ms=self._lock(dry_run=dry_run),
            dry_run=dry_run,
        )

    def savepoints(self) -> list[Savepoint]:
        """Every savepoint, oldest first."""
        return at_one_moment(self.state, list_savepoints)

    def delete_savepoint(self, savepoint: str, *, dry_run: bool = False) -> Savepoint:
        """Delete a savepoint by name or instant ("latest": the newest). Raises `SavepointError` if there is none."""
        return delete_savepoint(self._storage, savepoint, lock_timeout_ms=self._lock(dry_run=dry_run), dry_run=dry_run)

    def restore(
        self,
        savepoint: str | None = None,
        *,
        to: str | None = None,
        cascade: bool = False,
        dry_run: bool = False,
        accept_future: bool = False,
    ) -> RestoreResult:
        """Bring the table back to a savepoint (name, instant or "latest") or to the completed write `to`.

        Later commits are then gone for every reader. Refused if there are later savepoints, unless `cascade` deletes them, or instants that
        a wrong clock put into the future, unless `accept_future` continues from them. Raises `RestoreError` and others with nothing
        changed.
        """
        return restore(
            self._storage,
            savepoint=savepoint,
            to=to,
            cascade=cascade,
            lock_timeout_ms=self._lock(dry_run=dry_run),
            dry_run=dry_run,
            accept_future=accept_future,
        )

    def rollback(self, instant: str | None = None, *, dry_run: bool = False) -> RollbackResult:
        """Take back the newest write (None), or the given instant if it is the newest. Raises `RollbackError` with nothing changed."""
        return rollback(self._storage, instant=instant, lock_timeout_ms=self._lock(dry_run=dry_run), dry_run=dry_run)

    # services

    def verify(self, *, quick: bool = False) -> VerifyReport:
        """Check the table as of now: `ok`, or the findings. Changes nothing; `quick` reads no data file."""
        return verify(TableState.load(self._storage), quick=quick)

    def repair(
        self, *, dry_run: bool = False, accept_future: bool = False, trust_files: bool = False, accept_lost_archive: bool = False
    ) -> RepairReport:
        """Take dead writes back, finish interrupted actions, and mend damaged and lost metadata; a dry run says what would be done.

        For a table that cannot be opened because its properties are damaged, see `lakehouse_engine.repair_table`.

        `accept_future`: let the table go on from its newest instant, which a wrong clock put into the future. `trust_files`: remake the
        damaged record of a completed write from the files that carry its instant, though nothing proves that no other is lost.
        `accept_lost_archive`: let a `write_id` that is not found count as new, though a part of the archive is lost.
        """
        return repair(
            self._storage,
            lock_timeout_ms=self._lock(dry_run=dry_run),
            dry_run=dry_run,
            accept_future=accept_future,
            trust_files=trust_files,
            accept_lost_archive=accept_lost_archive,
        )

    def compact(
        self, op: str = "schedule_and_run", *, instant: str | None = None, dry_run: bool = False, options: Mapping[str, Any] | None = None
    ) -> CompactionResult:
        """Merge logs into base files. `op` is `schedule`, `run` (a scheduled one: `instant`, or the oldest) or `schedule_and_run`.

        Raises `CompactionError` for a copy-on-write table, and `OptionError` for another `op`.
        """
        return self._compact(op, instant, dry_run, options, logs=False)

    def log_compact(
        self, op: str = "schedule_and_run", *, instant: str | None = None, dry_run: bool = False, options: Mapping[str, Any] | None = None
    ) -> CompactionResult:
        """Like `compact`, but merges the log blocks of each slice into one, and leaves its base file."""
        return self._compact(op, instant, dry_run, options, logs=True)

    def cluster(
        self,
        op: str = "schedule_and_run",
        *,
        order_by: Sequence[str] | None = None,
        layout: str | None = None,
        partitions: Sequence[str | Mapping[str, Any]] | None = None,
        instant: str | None = None,
        dry_run: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> ClusteringResult:
        """Rewrite the rows of many files together into files of a good size, sorted by `order_by`.

        `op` as in `compact`. `layout` is `linear`, `z_order` or `hilbert`; `partitions` are paths, or mappings of column to value. These
        and `order_by` override the options `hoodie.clustering.plan.strategy.*` and `hoodie.layout.optimize.strategy`. Leaves files alone
        that are in that order already. Raises `OptionError` for columns without an order, another `op`, and arguments that do not go with
        it; `ClusteringError` for partitions that do not exist.
        """
        asked = ClusteringRequest(op, order_by, layout, partitions, instant)
        given = asked.options(dict(options or {}))
        effective = self._effective_now(given)
        asked.check(self._state)
        timeout = self._lock(given, dry_run=dry_run)
        runner = local_runner(effective) if dry_run or op == "schedule" else self._runner(given)
        return asked.carry_out(self._state, effective, runner, lock_timeout_ms=timeout, dry_run=dry_run)

    def upgrade(
        self, to: int = 9, *, dry_run: bool = False, options: Mapping[str, Any] | None = None
    ) -> VersionChange:
        """Bring the table to a later version, 8 or 9. Compacts logs first; the table's content, now and as of earlier moments, stays the
        same.

        Raises, with nothing changed, `OptionError` for an earlier version, and `VersionChangeError` if something would be lost.
        """
        return self._change_version(to, options, upgrade=True, dry_run=dry_run)

    def downgrade(
        self, to: int = 6, *, dry_run: bool = False, options: Mapping[str, Any] | None = None
    ) -> VersionChange:
        """Bring the table to an earlier version, 8 or 6, as `upgrade` does. Refused for anything that version 6 cannot store."""
        return self._change_version(to, options, upgrade=False, dry_run=dry_run)

    def _change_version(
        self, to: int, options: Mapping[str, Any] | None, *, upgrade: bool, dry_run: bool
    ) -> VersionChange:
        given = dict(options or {})
        effective = self._effective_now(given)
        runner = local_runner(effective) if dry_run else self._runner(given)
        return change_version(
            self._storage,
            to,
            upgrade=upgrade,
            compacting=Compacting(CompactionOptions.read(effective), WriteOptions.read(effective), runner),
            lock_timeout_ms=self._lock(given, dry_run=dry_run),
            dry_run=dry_run,
        )

    def rebuild_metadata(self, partitions: Sequence[str] | None = None) -> MetadataTableChange:
        """Build the metadata table again from the data files: all that it has, at least `files`; or the given partitions (`column_stats`,
        `bloom_filters`, `record_index`, `partition_stats`), and the others stay.

        Raises, with nothing changed, `OptionError` for a partition that the table cannot have, and `CommitConflictError` while an instant
        is pending, a plan included; `RecordKeyError` for a record index if a key is in the table twice.
        """
        timeout = self._lock(dry_run=False)
        done = building.rebuild(self._storage, _names(partitions), lock_timeout_ms=timeout)
        automatic.asked_for(self._storage, partitions or (), lock_timeout_ms=timeout)
        return done

    def drop_metadata(self, partitions: Sequence[str] | None = None) -> MetadataTableChange:
        """Drop the metadata table, or partitions of it. Readers find files by listing then. Raises `OptionError` for a partition that it
        does not have.
        """
        names, timeout = _names(partitions), self._lock(dry_run=False)
        with automatic.dropped_on_request(self._storage, names, lock_timeout_ms=timeout):
            return building.drop(self._storage, names, lock_timeout_ms=timeout)

    def rebuild_hbase_index(self, options: Mapping[str, Any] | None = None) -> HBaseIndexChange:
        """Put an entry for each stored key into the HBase table of the options, which are stored in the table's properties (None: as they
        are), and make that the table's index. Writers wait meanwhile, for a request for each `hoodie.index.hbase.put.batch.size` keys.

        Raises, before anything is put, `OptionError` for other options, `UnsupportedTableError` for a table that cannot have the index, and
        `DuplicateKeyError` for a key that is stored twice; and `ExternalIndexError` if HBase does not answer.
        """
        return hbase_index.rebuild(self._storage, dict(options or {}), lock_timeout_ms=self._lock(dry_run=False))

    def indexes(self) -> list[TableIndex]:
        """Indexes that the metadata table has: name, type, columns and partition."""
        return indexes.indexes(self.state)

    def create_index(
        self,
        name: str,
        *,
        columns: Sequence[str] | None = None,
        type: str | None = None,
        expression: str | None = None,
        options: Mapping[str, str] | None = None,
        op: str = "schedule_and_run",
        if_not_exists: bool = False,
        dry_run: bool = False,
    ) -> IndexChange:
        """Build an index in the metadata table, which is made if there is none, while writers go on. Every later write keeps it up.

        `op`: `schedule` puts the plan on the timeline, `run` carries it out, here or in another process, and `schedule_and_run` does both.
        A run that was cut off is taken up by the next one.

        `type` is `record_index`, `column_stats` (of `columns`; None: Hudi's default), `bloom_filters`, `partition_stats`, of which a table
        has one each, called like its type; `secondary_index` or `expr_index`. Without it the name says the type, else it is
        `expr_index` with an `expression`, and `secondary_index` without.

        An `expr_index` has statistics of a function of Spark's over one column, as has `column_stats` under a name of your own;
        `bloom_filters` under one has Bloom filters of it. `expression` is Hudi's name of the function (`from_unixtime`), `options` are what
        it is given (`{"format": "yyyy-MM-dd"}`).

        Raises, with nothing changed, `OptionError` for a name that is taken or does not fit, and for columns that the index cannot have;
        `UnavailableError` for an expression that is not computed here exactly as by Spark; `CommitConflictError` beside a writer of Hudi,
        if another plan has the index, and if there is no metadata table yet and an instant is pending; `IndexingError` if another program
        runs the build, or took it back; and `RecordKeyError` for a record index if a key is in the table twice.
        """
        timeout = self._lock(dry_run=dry_run)
        done = indexes.create(
            self._storage,
            name,
            columns=_names(columns),
            kind=type,
            expression=expression,
            options=options,
            op=op,
            if_not_exists=if_not_exists,
            dry_run=dry_run,
            lock_timeout_ms=timeout,
        )
        if not dry_run:
            automatic.asked_for(self._storage, done.built, lock_timeout_ms=timeout)
        return done

    def drop_index(self, name: str, *, if_exists: bool = False, dry_run: bool = False) -> IndexChange:
        """Drop an index by its name or its partition. Raises `OptionError` if there is none of this name."""
        timeout = self._lock(dry_run=dry_run)
        planned = indexes.drop(self._storage, name, if_exists=if_exists, dry_run=True, lock_timeout_ms=timeout)
        if dry_run:
            return planned
        with automatic.dropped_on_request(self._storage, planned.dropped, lock_timeout_ms=timeout):
            return indexes.drop(self._storage, name, if_exists=if_exists, lock_timeout_ms=timeout)

    def clean(
        self, *, retain_commits: int | None = None, dry_run: bool = False, options: Mapping[str, Any] | None = None
    ) -> CleanResult:
        """Delete files that no query within the retention reads; `retain_commits` keeps the files of that many commits.

        Raises `OptionError` for `retain_commits` with a policy that ignores it.
        """
        given = dict(options or {})
        policy = CLEAN_POLICY.read(given)
        if retain_commits is not None and policy != KEEP_LATEST_COMMITS:
            message = f"retain_commits goes with {CLEAN_POLICY.key}={KEEP_LATEST_COMMITS}, not {policy}"
            raise OptionError(message, table=self._state.config.name)
        if retain_commits is not None:
            given = layered({CLEAN_POLICY.key: KEEP_LATEST_COMMITS}, given, {CLEAN_COMMITS.key: retain_commits})
        effective = self._effective_now(given)
        return clean(self._storage, CleanOptions.read(effective), lock_timeout_ms=self._lock(given, dry_run=dry_run), dry_run=dry_run)

    def archive(
        self,
        *,
        min_commits: int | None = None,
        max_commits: int | None = None,
        dry_run: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> ArchiveResult:
        """Move unneeded instants to the archived timeline: above `max_commits` commits, all but the newest `min_commits`.

        With `min_commits` alone, that many are left. Raises `OptionError` if fewer would be left than cleaning keeps readable.
        """
        given = dict(options or {})
        if min_commits is not None:
            given |= {KEEP_MIN_COMMITS.key: min_commits, KEEP_MAX_COMMITS.key: min_commits}
        if max_commits is not None:
            given[KEEP_MAX_COMMITS.key] = max_commits
        effective = self._effective_now(given)
        return archive(
            self._storage,
            ArchiveOptions.read(effective),
            lock_timeout_ms=self._lock(given, dry_run=dry_run),
            dry_run=dry_run,
            clean=CleanOptions.read(effective),
            compaction=CompactionOptions.read(effective),
        )

    def _compact(
        self, op: str, instant: str | None, dry_run: bool, options: Mapping[str, Any] | None, *, logs: bool
    ) -> CompactionResult:
        given = dict(options or {})
        effective = self._effective_now(given)
        chosen, write_options = CompactionOptions.read(effective), WriteOptions.read(effective)
        timeout = self._lock(given, dry_run=dry_run)
        if op not in COMPACTION_OPS:
            raise OptionError(f"op={op!r} is not one of {', '.join(COMPACTION_OPS)}", table=self._state.config.name)
        if instant is not None and op != "run":
            raise OptionError(f"op={op!r} takes no instant; op='run' runs the compaction of one", table=self._state.config.name)
        check_has_logs(self._state)  # before the lock, so that it neither waits for a lock holder nor takes dead writes back
        if op == "schedule":
            return schedule(self._storage, chosen, lock_timeout_ms=timeout, dry_run=dry_run, log_compaction=logs)
        runner = local_runner(effective) if dry_run else self._runner(given)
        if op == "run":
            return run(
                self._storage,
                chosen,
                write_options,
                runner,
                instant=instant,
                lock_timeout_ms=timeout,
                dry_run=dry_run,
                log_compaction=logs,
            )
        return schedule_and_run(
            self._storage, chosen, write_options, runner, lock_timeout_ms=timeout, dry_run=dry_run, log_compaction=logs
        )

    def _lock(self, options: Mapping[str, Any] | None = None, *, dry_run: bool) -> int:
        """Time to wait for the table's lock, in milliseconds. Stores lock options in the table, unless `dry_run`."""
        given = options or {}
        timeout = LOCK_TIMEOUT_MS.read(self._effective(given))
        if not dry_run:
            agree_on_lock(self._storage, self._state.config, layered(self._options, given), lock_timeout_ms=timeout)
        return timeout

    def _effective(self, options: Mapping[str, Any]) -> dict[str, Any]:
        check_known(options)
        return layered(self._state.config.prefixed(STORED_PREFIX), self._options, options)

    def _effective_now(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options over those stored in the table now, which another process may have changed."""
        self._state = self._state.advance()
        return self._effective(options)

    def _runner(self, options: Mapping[str, Any]) -> TaskRunner:
        return local_runner(layered(self._options, options))


def repair_table(
    path: str,
    *,
    dry_run: bool = False,
    accept_future: bool = False,
    trust_files: bool = False,
    options: Mapping[str, Any] | None = None,
) -> RepairReport:
    """Like `HoodieTable.repair`, for the table in directory `path`, also if damaged or lost `hoodie.properties` prevent opening it.

    Of `options`, only `hoodie.write.lock.wait_time_ms` has an effect. Raises `TableNotFoundError` and `PropertiesError` if there are
    neither properties nor a copy of them to put back; `LockTimeoutError` naming the process at work on the table.
    """
    given = check("options", "Mapping[str, Any] | None", options) or {}
    check_known(given)
    return repair(
        storage_for(check("path", "str", path)),
        lock_timeout_ms=LOCK_TIMEOUT_MS.read(given),
        dry_run=check("dry_run", "bool", dry_run),
        accept_future=check("accept_future", "bool", accept_future),
        trust_files=check("trust_files", "bool", trust_files),
    )


def upgrade_table(
    path: str, *, to: int = 9, dry_run: bool = False, options: Mapping[str, Any] | None = None
) -> VersionChange:
    """Like `HoodieTable.upgrade`, for the table in directory `path`, also one of versions 2 to 5, or 7, which cannot be opened.

    Such a table first becomes one of version 6 (and `to` may be 6); a dry run says how. Raises `VersionChangeError` and as
    `HoodieTable.upgrade`.
    """
    given = check("options", "Mapping[str, Any] | None", options) or {}
    check_known(given)
    storage, silent = storage_for(check("path", "str", path)), check("dry_run", "bool", dry_run)
    if not is_brought_to_six(storage):
        return TableServices(storage, options=given).upgrade(to, dry_run=silent)
    change = bring_to_six(storage, lock_timeout_ms=LOCK_TIMEOUT_MS.read(given), dry_run=silent)
    if silent or check("to", "int", to) == change.to_version:
        return change
    further = TableServices(storage, options=given).upgrade(to)
    return replace(further, from_version=change.from_version, steps=(*change.steps, *further.steps))


def _names(partitions: Sequence[str] | None) -> list[str] | None:
    return None if partitions is None else list(partitions)


def _check_text(what: str, text: str | None) -> None:
    """Raise `SavepointError` for text that must not go to the timeline and onto terminals."""
    if text is None:
        return
    allowed = "\n\t" if what == "comment" else ""
    wrong = next((one for one in text if not one.isprintable() and one not in allowed), None)
    if wrong is not None or len(text) > _MAX_TEXT:
        reason = f"it holds the character {wrong!r}" if wrong is not None else f"it is longer than {_MAX_TEXT} characters"
        raise SavepointError(f"{text[:40]!r} cannot be the {what} of a savepoint: {reason}")
