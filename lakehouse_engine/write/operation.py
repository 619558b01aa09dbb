"""One write, from a batch to a commit.

 1. read the rows, by the table as it is: canonical types, record keys, partition paths; no lock   (`stage`, `input`)
 2. lock the table, roll back what dead writers left, drop a metadata table that would go stale   (`transaction`)
 3. fix the schema: the batch's against the table's                                               (`context`)
 4. request the instant; reduce the batch to one row a key                                        (`batches`)
 5. tag: where are those keys stored?  assign: new keys to small files and new groups             (`routes`, `plan`)
 6. make the instant inflight with the plan; run its tasks, one or more a file group              (`plan`, `tasks`, `append`)
 7. complete the instant: the commit                                                              (`transaction`)

A failure before step 7 takes the table back to where it was. In table versions 8 and 9 most writes release the lock after they request
their instant and take it again for step 7 (`beside`). A write that is overtaken meanwhile repeats steps 2 to 7 and keeps the lock.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakehouse_engine.commit.concurrency.clusterings import file_groups, planned_among, take_over
from lakehouse_engine.commit.expected import Expectation, check_expected, touched_by
from lakehouse_engine.commit.metadata_table import drop_chosen_index
from lakehouse_engine.commit.outcome import write_of
from lakehouse_engine.commit.overtaken import FINAL, OvertakenError, Reach, check_undisturbed
from lakehouse_engine.commit.transaction import Transaction, begin
from lakehouse_engine.compat import cached_property
from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.errors import DuplicateKeyError, LakehouseError
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.index.choice import IndexChoice, advise, choose_index, is_own_choice
from lakehouse_engine.manifest.missing import lost_files
from lakehouse_engine.model.commit_metadata import INDEX_KEY, ROUTE_KEY, SCHEMA_KEY, WRITE_ID_KEY, HoodieCommitMetadata, checksum_metadata
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.table_config import ROWS_KEEP_PARTITIONS_KEY
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType, WriteResult
from lakehouse_engine.read.moments import moment_of
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.timeline.presence import told_if_gone
from lakehouse_engine.view.moment import at_one_moment
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.batch.stage import Stage
from lakehouse_engine.write.batches import Batches
from lakehouse_engine.write.concurrency import ADDING, may_let_go, reach_of
from lakehouse_engine.write.context import prepare
from lakehouse_engine.write.request import WriteRequest
from lakehouse_engine.write.result import no_change, result_of
from lakehouse_engine.write.routes import PlannedWrite, Route, plan_write
from lakehouse_engine.write.tasks.base_files import WriteStatus

logger = logging.getLogger(__name__)

_UNDOING = frozenset({Action.RESTORE, Action.ROLLBACK})
"""While one is pending, the files that it takes back may be gone already."""


def execute_write(storage: Storage, request: WriteRequest, runner: TaskRunner, known: TableState | None = None) -> WriteResult:
    """Run one write to its commit. `known` is a recent state of the table: what has not changed since is not read again, except for
    partitions that rows go to.

    Raises `WriteError`s, with the table as it was, except for `CommitOutcomeUnknownError`.
    """
    with told_if_gone(storage):
        return _execute(storage, request, runner, known)


def _execute(storage: Storage, request: WriteRequest, runner: TaskRunner, known: TableState | None) -> WriteResult:
    with Stage(storage) as stage:
        seen = _read_ahead(storage, request, stage, known)
        try:
            return _written(storage, request, runner, stage, seen, keeps_lock=False)
        except OvertakenError as error:
            logger.info("the files of a write of %s are made again, under its lock: %s", storage.root, error)
        return _written(storage, request, runner, stage, seen, keeps_lock=True)


def _written(
    storage: Storage, request: WriteRequest, runner: TaskRunner, stage: Stage, seen: _Seen | None, *, keeps_lock: bool
) -> WriteResult:
    """Write under the lock. Raises `OvertakenError` if the lock was released and other writers changed what the write rests on."""
    ahead = None if seen is None else seen.state
    with begin(storage, lock_timeout_ms=request.options.lock_timeout_ms, known=ahead) as transaction:
        state = transaction.state
        stage.check_there(state.config.name)
        if (done := _written_in(state, request)) is not None:
            return done
        since = _check_expected(state, request)
        if seen is None or seen.state is not state:
            seen = _Seen.of(state, request, stage)
        steps = _Steps(transaction, seen.batches, runner, since, keeps_lock)
        try:
            return steps.run()
        except OvertakenError:
            raise
        except LakehouseError as error:
            if transaction.is_let_go and not isinstance(error, FINAL):
                check_undisturbed(state, transaction.instant_time, error)
            raise


def written_before(storage: Storage, request: WriteRequest) -> WriteResult | None:
    """Result of an earlier call with the same `write_id`, or None."""
    with told_if_gone(storage):
        # Commits may be archived while they are read; nothing archives under the lock.
        return at_one_moment(TableState.load(storage), lambda now: _written_in(now, request))


def _written_in(state: TableState, request: WriteRequest) -> WriteResult | None:
    found = None if request.write_id is None else write_of(state, request.write_id, request.operation)
    return None if found is None else result_of(state, found[0].requested_time, found[1], was_written=True)


@dataclass(frozen=True, slots=True)
class _Seen:
    """The table when the rows were read, and the rows."""

    state: TableState
    batches: Batches

    @classmethod
    def of(cls, state: TableState, request: WriteRequest, stage: Stage) -> _Seen:
        """Raises as `prepare`."""
        return cls(state, Batches.of(request, prepare(state, request), stage))


def _read_ahead(storage: Storage, request: WriteRequest, stage: Stage, known: TableState | None) -> _Seen | None:
    """Read the rows by the table's current state. None if that fails or recovery is needed first: the read under the lock then tells."""
    if request.data is None:
        return None
    state = TableState.load(storage) if known is None else known
    if any(instant.action in _UNDOING for instant in state.timeline.pending()):
        return None
    try:
        seen = _Seen.of(state, request, stage)
    except LakehouseError as error:
        logger.info("the rows for %s are read under its lock: %s", state.config.name, error)
        return None
    try:
        # The first rows of a table go straight into its files: no other writer waits for them.
        seen.batches.read(streams=len(state.timeline.completed().writes()) > 0)
    except Exception:
        if request.expected is not None:
            check_expected(state.refresh(), request.expected)  # files being read may be cleaned when others commit meanwhile
        raise
    return seen


def _check_expected(state: TableState, request: WriteRequest) -> Expectation | None:
    """Raise `ChangedSinceReadError` if what was read has changed. The returned expectation is checked once the write's changes are known.
    """
    if request.expected is not None:
        check_expected(state, request.expected)
    if request.expected_instant is None:
        return None
    moment = moment_of(state, request.expected_instant)
    return Expectation.since(state, moment, exact=request.expected_instant.strip() == moment)


class _Steps:
    """Steps of one write under the lock."""

    def __init__(
        self, transaction: Transaction, batches: Batches, runner: TaskRunner, since: Expectation | None, keeps_lock: bool
    ) -> None:
        self.transaction, self.batches, self.runner, self.since = transaction, batches, runner, since
        self.keeps_lock = keeps_lock
        self.request, self.context, self.effect = batches.request, batches.context, batches.effect
        self._route: Route | None = None
        self._choice: IndexChoice | None = None

    def run(self) -> WriteResult:
        if self.request.operation is WriteOperationType.DELETE_PARTITION:
            return self.delete_partitions()
        if not self.effect.makes_new_groups and self.batches.are_empty and not self._changes_columns:
            return self._unchanged(None if self.context.is_global else frozenset())  # no instant is needed
        self.transaction.start(self.effect.action)
        if not self.keeps_lock and may_let_go(self.transaction.state, self.batches):
            self.context.index.fix()
            self.transaction.let_go()
        return self.new_groups() if self.effect.makes_new_groups else self.changes()

    def delete_partitions(self) -> WriteResult:
        replaced = {path: ids for path in self.request.partitions if (ids := self._live_file_ids(path))}
        if not replaced:
            return self._unchanged(frozenset(self.request.partitions))
        self._take_over(file_groups(replaced.items()))
        self.transaction.start(self.effect.action)
        self.transaction.inflight(self._noted(partition_to_replace_file_ids=replaced))
        return self._commit([], replaced=replaced)

    def new_groups(self) -> WriteResult:
        """Write every row to a new file group: operations that look nothing up."""
        self.transaction.inflight(self._noted())
        dropped, emptied = 0, frozenset[str]()
        if self.effect.is_streamed:
            statuses = self.batches.stream(self.context.files(self.transaction.instant_time), self.runner)
        else:
            plan = self._planned()
            self._route, dropped, statuses = plan.route, plan.dropped, plan.run(self.runner)
            emptied = plan.partitions if self.effect.drops_deletions else emptied
        replaced = self._replaced_by(statuses, emptied)
        self._take_over(file_groups((replaced or {}).items()))
        if not statuses and not replaced and not self._changes_columns:
            return self._unchanged(frozenset(self.request.partitions), dropped)
        return self._commit(statuses, replaced=replaced, dropped=dropped)

    @property
    def _changes_columns(self) -> bool:
        """True if the commit changes columns, even without rows: the batch brings new ones, as allowed, or the table has none yet. The
        caller reads those columns next, with or without rows.
        """
        if not (self.request.replace_schema or self.context.options.schema_evolution):
            return False
        return list(self.context.schema) != [field.with_nullable(True) for field in table_schema(self.transaction.state)]

    def changes(self) -> WriteResult:
        """Insert, upsert and delete: rows find their file groups."""
        plan = self._planned()
        # With a global index a key may be stored in a partition that the batch does not name.
        places = None if self.context.is_global else plan.partitions
        if plan.is_empty and not self._changes_columns:
            return self._unchanged(places, plan.dropped)
        self._tell_readers()
        self._route = plan.route
        if self.effect.looks_up:
            self._choice = choose_index(self.transaction.state, self.request.options)
            advise(self.transaction.state, self._choice)
        profile = plan.profile()
        self._take_over(file_groups((path, [stat.file_id for stat in stats]) for path, stats in profile.items()))
        self.transaction.inflight(self._noted(partition_to_write_stats=profile))
        statuses = plan.run(self.runner)
        if not statuses and not self._changes_columns:
            return self._unchanged(places, plan.dropped)
        return self._commit(statuses, reach=reach_of(self.batches, plan.partitions), dropped=plan.dropped, moves=plan.moves)

    def _take_over(self, changed: set[FileGroupId]) -> None:
        """Take the changed file groups out of pending clustering plans, or refuse the write.

        Raises `OvertakenError` without the lock: a run that is alive may be publishing what this write would rule out.
        """
        options, state = self.request.options, self.transaction.state
        if self.transaction.is_let_go:
            if planned_among(state, changed):
                raise OvertakenError("a clustering has plans for what this write changes", table=state.config.name)
            return
        take_over(state, changed, options.clustering_updates, whole=options.clustering_rollback)

    def _noted(self, **what: Any) -> HoodieCommitMetadata:
        """Metadata for the inflight instant: the plan, and what of the request no data file records, in case the commit is damaged later.
        """
        return HoodieCommitMetadata(operation_type=self.request.operation, extra_metadata=self._name(), **what)

    def _name(self) -> dict[str, str | None]:
        return {} if self.request.write_id is None else {WRITE_ID_KEY: self.request.write_id}

    def _tell_readers(self) -> None:
        """Record that rows may stay in a partition other than their columns say, before any do: paths then tell nothing of rows
        (`read.pruning`).
        """
        context, config = self.context, self.context.config
        stays = context.is_global and not context.options.update_partition_path and bool(config.partition_fields)
        if stays and not config.rows_keep_partitions:
            ConfigStore(context.storage).update({ROWS_KEEP_PARTITIONS_KEY: "true"})

    def _unchanged(self, places: frozenset[str] | None, dropped: int = 0) -> WriteResult:
        """Result of a write that changes nothing. Raises `ChangedSinceReadError` if `places` changed since the expected instant."""
        self.transaction.abandon()
        if self.since is not None:
            self.since.check_untouched(places)
        return no_change(self.transaction.state, self.request.operation, dropped)

    def _planned(self) -> PlannedWrite:
        return plan_write(self.transaction.state, self.batches, self.context.files(self.transaction.instant_time), self.runner)

    def _live_file_ids(self, partition: str) -> tuple[str, ...]:
        """File groups of a partition to replace, including those with a lost base file: replacing them repairs the table."""
        listed = {piece.file_id for piece in self.transaction.state.view.latest_slices(partition)}
        return tuple(sorted(listed | {group.file_id for group in self._lost if group.partition_path == partition}))

    @cached_property
    def _lost(self) -> list[FileGroupId]:
        state = self.transaction.state
        return [file.group for file in lost_files(state.manifest, None, state.view.latest_slices())]

    def _replaced_by(self, statuses: Sequence[WriteStatus], emptied: frozenset[str]) -> dict[str, tuple[str, ...]] | None:
        """File groups that the new ones replace: those of the partitions written to (or `emptied`), or of the whole table."""
        operation = self.request.operation
        if operation is WriteOperationType.INSERT_OVERWRITE_TABLE:
            partitions = set(self.transaction.state.view.partitions()) | {group.partition_path for group in self._lost}
        elif operation is WriteOperationType.INSERT_OVERWRITE:
            partitions = {status.stat.partition_path or "" for status in statuses if status.stat} | emptied | set(self.request.partitions)
        else:
            return None
        return {path: ids for path in sorted(partitions) if (ids := self._live_file_ids(path))}

    def _commit(
        self,
        statuses: Sequence[WriteStatus],
        *,
        replaced: Mapping[str, tuple[str, ...]] | None = None,
        reach: Reach = ADDING,
        dropped: int = 0,
        moves: int = 0,
    ) -> WriteResult:
        stats: dict[str, list[HoodieWriteStat]] = {}
        for status in statuses:
            if status.stat is not None:
                stats.setdefault(status.stat.partition_path or "", []).append(status.stat)
        written = [stat for group in stats.values() for stat in group]
        metadata = HoodieCommitMetadata(
            partition_to_write_stats={path: tuple(group) for path, group in stats.items()},
            operation_type=self.request.operation,
            extra_metadata={
                **self.request.extra_metadata,
                **self._name(),
                **({} if self._route is None else {ROUTE_KEY: str(self._route)}),
                **({} if self._choice is None else {INDEX_KEY: str(self._choice)}),
                SCHEMA_KEY: self.context.table_avro_schema,
                **checksum_metadata(written),
            },
            partition_to_replace_file_ids=None if replaced is None else dict(replaced),
        )
        if self.since is not None:
            self.since.check(touched_by(metadata))
        try:
            self._complete(metadata, reach)
        except DuplicateKeyError as error:
            self._complete_without_index(metadata, reach, error)
        builds = self._choice is not None and self._choice.is_due
        state, instant = self.transaction.state, self.transaction.instant_time
        return result_of(state, instant, metadata, dropped=dropped, moves=moves, builds_index=builds)

    def _complete(self, metadata: HoodieCommitMetadata, reach: Reach) -> None:
        if self.transaction.is_let_go:
            self.transaction.complete_beside(metadata, reach, lambda now: self._check_again(now, metadata))
        else:
            self.transaction.complete(metadata)

    def _complete_without_index(self, metadata: HoodieCommitMetadata, reach: Reach, refused: DuplicateKeyError) -> None:
        """Complete a write that stores a key twice, without the record index that refused it, if this engine chose that by itself. Raises
        `refused` if not.
        """
        with TableLock(self.transaction.state.storage, self.request.options.lock_timeout_ms):
            now = self.transaction.state.advance()
            if not is_own_choice(now.config, self.request.options):
                raise refused
            drop_chosen_index(now, refused.context["key"])
            self._complete(metadata, reach)

    def _check_again(self, now: TableState, metadata: HoodieCommitMetadata) -> None:
        """Check that what was read for the write is unchanged when it is committed.

        Raises as `_check_expected` and `Expectation.check`, and `OvertakenError` where a commit has its id.
        """
        if _written_in(now, self.request) is not None:
            raise OvertakenError("the write of this id was committed by another call", table=now.config.name)
        since = _check_expected(now, self.request)
        if since is not None:
            since.check(touched_by(metadata))
