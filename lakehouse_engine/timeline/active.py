"""The active timeline: the only writer of instant files.

An instant moves requested -> inflight -> completed. Each step creates one file that must not exist yet, and removes none; the completed
file is the commit. If creation fails, the file is read back before anything is concluded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from lakehouse_engine.errors import (
    CommitOutcomeUnknownError,
    FormatError,
    IllegalTransitionError,
    InstantNotFoundError,
    LockError,
    LockLostError,
    StorageError,
    StoredFileExistsError,
    StoredFileNotFoundError,
    UnansweredError,
)
from lakehouse_engine.format.table_format import TableFormat
from lakehouse_engine.format.v6.metadata_avro import decode_note
from lakehouse_engine.format.v6.plans_codec import decode_plan
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.order import in_time_order
from lakehouse_engine.storage.base import Storage, StoredFile
from lakehouse_engine.storage.locations import has_file
from lakehouse_engine.timeline.lock import confirm_lock
from lakehouse_engine.timeline.timeline import Timeline

_Plan = TypeVar("_Plan")


@dataclass(frozen=True, slots=True)
class ActiveTimeline:
    """Reads and writes the state files of a table's instants. Changes are made under the table's lock."""

    storage: Storage
    format: TableFormat

    def load(self) -> Timeline:
        """Every instant at its highest state, from one listing; opens no file and ignores unknown ones."""
        return Timeline.of_states(self.files(), by_completion=self.format.orders_by_completion)

    def files(self) -> dict[Instant, StoredFile]:
        """File of each state of each instant, from one listing."""
        return self.files_of(self.listed())

    def listed(self) -> list[StoredFile]:
        """Everything in the timeline's folder, from one listing."""
        return self.storage.list(self.format.timeline_folder)

    def files_of(self, listing: Iterable[StoredFile]) -> dict[Instant, StoredFile]:
        """The file of each state of each instant; of one that was completed twice that of the first completion (`completed_again`)."""
        found = self._parsed(listing)
        files = dict(found)
        if len(files) == len(found):
            return files
        first: dict[Instant, tuple[Instant, StoredFile]] = {}
        for instant, entry in in_time_order(found, lambda one: one[0].completed_at or ""):
            first.setdefault(instant, (instant, entry))
        return dict(first.values())

    def completed_again(self, listing: Iterable[StoredFile], files: Mapping[Instant, StoredFile]) -> tuple[StoredFile, ...]:
        """Completed files of instants that another file of `files` completed before: two processes wrote them, without a lock."""
        known = {entry.path for entry in files.values()}
        return tuple(entry for _, entry in self._parsed(entry for entry in listing if entry.path not in known))

    def _parsed(self, listing: Iterable[StoredFile]) -> list[tuple[Instant, StoredFile]]:
        found = ((self.format.parse_file_name(entry.name), entry) for entry in listing if not entry.is_directory)
        return [(instant, entry) for instant, entry in found if instant is not None]

    def create_requested(self, instant: Instant, content: bytes = b"") -> Instant:
        """Claim an instant time. Raises `StoredFileExistsError` if another writer has it: try again with a new time.

        Another writer's request at the same moment has the same content, so content proves nothing here.
        """
        _expect(instant, State.REQUESTED, "requested")
        self.storage.create(self.path(instant), content)
        return instant

    def replace_plan(self, instant: Instant, content: bytes, *, running: bool = False) -> None:
        """Replace the plan of a requested instant that is not being run. Raises `IllegalTransitionError` otherwise.

        `running`: also while an executor runs it, which checks the plan again before it completes the instant.
        """
        _expect(instant, State.REQUESTED, "planned anew")
        self._expect_file(instant)
        if not running and self.storage.head(self.path(instant.at(State.INFLIGHT))) is not None:
            raise IllegalTransitionError(f"{instant} is being carried out, and keeps its plan", instant=instant, table=self.storage.root)
        self._expect_no_completed(instant)
        self.storage.overwrite(self.path(instant), content)

    def to_inflight(self, instant: Instant, content: bytes = b"") -> Instant:
        """Move a requested instant to inflight; a savepoint, which has no requested file, starts here.

        Repeating it with the same content is allowed, for resumed plans. Raises `IllegalTransitionError` if the instant is not requested
        (any more), is completed, or is inflight with other content.
        """
        _expect(instant, State.REQUESTED, "moved to inflight")
        if instant.action is not Action.SAVEPOINT:
            self._expect_file(instant)
        self._expect_no_completed(instant)
        inflight = instant.at(State.INFLIGHT)
        self._create_proven(inflight, content)
        return inflight

    def complete(self, instant: Instant, content: bytes, completed_at: str | None = None) -> Instant:
        """Publish: on return the instant is completed and durable. `completed_at` is its completion time, None if the table's version
        records none (`commit.table_clock.completion_time`).

        Raises `IllegalTransitionError` if the instant is not inflight (another writer rolled it back), or was completed with other content;
        `LockError` if the table lock was lost before; `StorageError` if the completed file is known to be absent; `LockLostError` if the
        lock was lost during the creation, and the file was removed again; `CommitOutcomeUnknownError` if none of these can be proven. After
        the last two nothing may be cleaned up.
        """
        _expect(instant, State.INFLIGHT, "completed")
        if not content:
            raise IllegalTransitionError("a completed instant is never empty: readers take that for a torn file", instant=instant)
        self._expect_file(instant)
        self._expect_lock(instant)
        completed = replace(instant.at(State.COMPLETED), completed_at=completed_at)
        if self.format.completes_with_time:
            self._expect_no_other_completion(completed)
        self._create_proven(completed, content)
        self._prove_lock(completed)
        return completed

    def copy_to_inflight(self, inflight: Instant, content: bytes) -> None:
        """Copy the completed content of a savepoint to its inflight file, which no reader reads."""
        self.storage.overwrite(self.path(inflight), content)

    def read(self, instant: Instant) -> bytes:
        """Content of the file of that state. Raises `InstantNotFoundError`."""
        try:
            return self.storage.read(self.path(instant))
        except StoredFileNotFoundError as error:
            raise InstantNotFoundError(f"the timeline has no {instant}", instant=instant, table=self.storage.root) from error

    def plan(self, kind: type[_Plan], instant: Instant) -> _Plan:
        """Plan or outcome in the file of that state; `kind` is one of `model.plans`, or a savepoint's.

        Raises `InstantNotFoundError`, and `CorruptInstantError` or `MetadataError` with the file if it does not decode.
        """
        data = self.read(instant)
        try:
            return decode_plan(kind, data)
        except FormatError as error:
            raise self._in_file(instant, data, error) from error

    def note(self, kind: type[object], instant: Instant) -> str | None:
        """Note with the plan or outcome in the file of that state; None without one. Raises as `plan`."""
        data = self.read(instant)
        try:
            return decode_note(kind.__name__, data)
        except FormatError as error:
            raise self._in_file(instant, data, error) from error

    def commit(self, instant: Instant) -> HoodieCommitMetadata:
        """Metadata in the file of a commit; raises as `plan`."""
        data = self.read(instant)
        try:
            return self.format.decode_commit(data)
        except FormatError as error:
            raise self._in_file(instant, data, error) from error

    def _in_file(self, instant: Instant, data: bytes, error: FormatError) -> FormatError:
        """Error about a state file's content, with its place."""
        found = {"instant": str(instant), "path": self.path(instant), "bytes": str(len(data)), "table": self.storage.root}
        done = instant.action.is_write and instant.is_completed
        hint = "; `repair` says what leads out" if done else "; `repair` says what becomes of it, and sees to it"
        return type(error)(error.message + hint, **{**error.context, **found})

    def delete(self, instant: Instant) -> bool:
        """Remove the file of that state, durably; False when it was not there. Of a completed instant: it is not published any more, also
        where it was completed twice.
        """
        return self._remove(self._every_named([instant]))

    def delete_all(self, instants: Iterable[Instant]) -> None:
        """As `delete`, for the files of many instants in the given order; durable when all are done."""
        self._remove(self._every_named(list(instants)))

    def _remove(self, named: Sequence[Instant]) -> bool:
        removed = [self.storage.delete(self.path(instant)) for instant in named]
        if any(removed):
            self.storage.sync(self.format.timeline_folder)
        return any(removed)

    def delete_savepoint(self, instant_time: str) -> None:
        """Remove the savepoint of that instant. The completed file goes last: until then it is a savepoint, after that there is none."""
        self.delete(Instant(instant_time, Action.SAVEPOINT, State.INFLIGHT))
        self.delete(Instant(instant_time, Action.SAVEPOINT, State.COMPLETED))

    def delete_pending(self, instant: Instant) -> None:
        """Remove the inflight and then the requested file of an instant that is not (or no longer) completed.

        Raises `IllegalTransitionError` if it was completed meanwhile.
        """
        self._expect_no_completed(instant)
        family = instant.action.completes_as
        actions = [action for action in Action if action.completes_as is family]
        for action in actions:
            self.delete(Instant(instant.requested_time, action, State.INFLIGHT))
        for action in actions:
            if action is not Action.SAVEPOINT:
                self.delete(Instant(instant.requested_time, action, State.REQUESTED))

    def path(self, instant: Instant) -> str:
        """The file that puts an instant into its state, relative to the table. If its name contains an unknown completion time, the
        timeline is listed. Raises `InstantNotFoundError` if there is no such file.
        """
        known = self._named(instant)
        if known is None:
            raise InstantNotFoundError(f"the timeline has no {instant}", instant=instant, table=self.storage.root)
        return f"{self.format.timeline_folder}/{self.format.file_name(known)}"

    def _named(self, instant: Instant) -> Instant | None:
        """The instant with everything that its file's name says; None if it does not exist."""
        if not (self.format.completes_with_time and instant.is_completed and instant.completed_at is None):
            return instant
        return next((one for one in self.files() if one == instant), None)

    def _every_named(self, instants: Sequence[Instant]) -> list[Instant]:
        """The instants in their order, each completed one with every completion time that a file's name has; from one listing."""
        if not (self.format.completes_with_time and any(instant.is_completed for instant in instants)):
            return list(instants)
        there: dict[Instant, list[Instant]] = {}
        for one, _ in self._parsed(self.listed()):
            there.setdefault(one, []).append(one)
        return [one for instant in instants for one in (there.get(instant, ()) if instant.is_completed else (instant,))]

    def _expect_file(self, instant: Instant) -> None:
        if not has_file(self.storage, self.path(instant)):
            raise IllegalTransitionError(
                f"{instant} is not on the timeline: it was never {instant.state}, or another writer rolled it back; start the write again",
                instant=instant,
                table=self.storage.root,
            )

    def _expect_lock(self, instant: Instant) -> None:
        if not confirm_lock(self.storage):
            raise LockError(
                f"{instant} was not published: another program deleted the table's lock file while it was held, and may have changed the"
                " table; try again",
                instant=instant,
                table=self.storage.root,
            )

    def _prove_lock(self, completed: Instant) -> None:
        """Check the lock after the creation. A process may pause between checking its lock and creating the file for longer than a lock
        file lives, and another writer may have taken the instant back or committed meanwhile. Then the instant is removed again before
        anything reports it.
        """
        try:
            if confirm_lock(self.storage):
                return
            cause = None
        except LockError as error:
            cause = error
        try:
            if completed.action.is_write and self._is_built_upon(completed.requested_time):
                raise self.unknown(completed) from cause
            self._remove([completed])
        except (StorageError, FormatError, InstantNotFoundError) as error:
            raise self.unknown(completed) from error
        raise LockLostError(
            f"{completed} was taken from the timeline again: the table's lock was lost while it was being published. What was written is"
            " removed by the next change of the table; try again",
            instant=completed,
            table=self.storage.root,
        ) from cause

    def _is_built_upon(self, instant_time: str) -> bool:
        """True if a write continued from its files: it has those rows too, and repeating this write would store them twice."""
        later = self.load().completed().writes().newer_than(instant_time)
        return any(stat.prev_commit == instant_time for write in later for stat in self.commit(write).write_stats())

    def find_completed(self, instant: Instant) -> Instant | None:
        """Completed state of an instant on the current timeline; None if it is not completed."""
        completed = instant.at(State.COMPLETED)
        if self.format.completes_with_time:
            return self._named(replace(completed, completed_at=None))
        return completed if has_file(self.storage, self.path(completed)) else None

    def _expect_no_completed(self, instant: Instant) -> None:
        completed = self.find_completed(instant)
        if completed is not None:
            raise IllegalTransitionError(f"{completed} is on the timeline already", instant=instant, table=self.storage.root)

    def _expect_no_other_completion(self, completed: Instant) -> None:
        """Two completions have two names, so creating one file proves nothing about another."""
        other = self.find_completed(completed)
        if other is not None and other.completed_at != completed.completed_at:
            raise IllegalTransitionError(f"{other} is on the timeline already", instant=completed, table=self.storage.root)

    def _create_proven(self, instant: Instant, content: bytes) -> None:
        """Create the file of a state. After an error, read it back: our own content means success."""
        path = self.path(instant)
        try:
            self.storage.create(path, content)
        except StorageError as error:
            if self._read_back(instant, path, error) != content:
                raise IllegalTransitionError(
                    f"{instant} is there already with other content: another writer uses the same instant",
                    instant=instant,
                    table=self.storage.root,
                ) from error
            self._make_durable(instant, path)

    def _read_back(self, instant: Instant, path: str, error: StorageError) -> bytes:
        """What exists at `path` after a failed creation; raises `error` if provably nothing does, now and later."""
        try:
            return self.storage.read(path)
        except StoredFileNotFoundError:
            if isinstance(error, (StoredFileExistsError, UnansweredError)):
                raise self.unknown(instant) from error
            raise error from error.__cause__
        except StorageError:
            raise self.unknown(instant) from error

    def _make_durable(self, instant: Instant, path: str) -> None:
        try:
            self.storage.sync(path)
        except StorageError as error:
            raise self.unknown(instant) from error

    def unknown(self, instant: Instant) -> CommitOutcomeUnknownError:
        """Message for a state whose file may exist, or may still arrive."""
        return CommitOutcomeUnknownError(
            f"whether {instant} was written cannot be proven; nothing is cleaned up. Look at the timeline before writing again; a"
            " write with a write_id can be made again with the same",
            instant=instant,
            table=self.storage.root,
        )


def _expect(instant: Instant, state: State, verb: str) -> None:
    if instant.state is not state:
        raise IllegalTransitionError(f"{instant} cannot be {verb}: its state would have to be {state}", instant=instant)
