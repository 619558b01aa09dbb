"""The error tree. Catch `LakehouseError` for everything; a class of its own exists where a caller would act differently.

LakehouseError                      one thing to catch; carries context (table, instant, ...) as fields; picklable
  x OptionError (ValueError)        UnknownOptionError, MissingOptionError
  x TableError                      TableNotFoundError, TableExistsError, UnsupportedTableVersionError, UnsupportedTableError
  x FormatError                     bytes that do not parse: FileNameError, PropertiesError, MetadataError, CorruptInstantError,
                                    CorruptLogError, CorruptFileError
  x StorageError                    StoredFileNotFoundError, StoredFileExistsError, UnsafePathError, MissingFileError,
                                    ReadOnlyError
      + UnansweredError             whether a change was made, or will be yet, is not known
      + UnusablePlaceError          no warehouse can be there
  x TimelineError                   IllegalTransitionError, InstantNotFoundError, InstantCleanedError, TimelineRestoredError,
                                    UnsettledInstantError
  x WriteError                      RecordKeyError, DuplicateKeyError, PartitionValueError, ReservedColumnError, ConstraintError
      + SchemaIncompatibleError     UnsupportedTypeError
      + CommitConflictError         nothing was committed; safe to retry
          - ChangedSinceReadError   what the write was computed from has changed: read again first
      + CommitOutcomeUnknownError   may have committed; nothing is cleaned up
      + CommitRuledOutError         the store did not answer; that it is published late is ruled out
      + ProtectedFileError          a savepointed file was about to be deleted
      + UnseenFileError             executors wrote where the driver does not look; nothing was committed
      + LateAttemptError            a task attempt outlived its write, and removed its file
  x LockError                       LockTimeoutError
      + LockLostError               lost while an instant was being published, which was taken from the timeline again
  x SavepointError
  x RollbackError
      + RollbackUnfinishedError     it has begun; the next change of the table, or repair, finishes it
      + RestoreError
          - RestoreUnfinishedError  as above: readers see the restored table already
  x CompactionError
  x UnavailableError                something that Hudi has and this version has not; nothing was looked at
  x UnsupportedSessionError         a Spark session that the engine cannot work with (Spark Connect)
  x SqlError                        UnsupportedSqlError, RelationNotFoundError, UnreadableFilesError
  x TaskError                       a task failed on an executor; names the task
      + ExecutorStorageError        executors do not have the table's directory, or cannot write there; nothing was written
      + ExecutorVersionError        executors have another Python or another engine, or none; nothing was written
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any


class LakehouseError(Exception):
    """Base of every error raised by the engine.

    `message` says what happened, the value, and what to do. `context` holds the nouns (`table=`, `instant=`, `path=`,
    `column=` ...) as strings; they are appended to the text and readable as attributes of `context`.
    """

    def __init__(self, message: str, **context: object) -> None:
        self.message = message
        self.context: dict[str, str] = {key: str(value) for key, value in context.items() if value is not None}
        super().__init__(message)

    def __str__(self) -> str:
        if not self.context:
            return self.message
        return f"{self.message} [{', '.join(f'{key}={value}' for key, value in self.context.items())}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.context)


def _rebuild(cls: type[LakehouseError], message: str, context: dict[str, str]) -> LakehouseError:
    return cls(message, **context)


class OptionError(LakehouseError, ValueError):
    """An option has a value that does not parse or contradicts another one."""


class UnknownOptionError(OptionError):
    """A key that the engine does not know; the message names the nearest known one."""


class MissingOptionError(OptionError):
    """A required option was not given."""


class TableError(LakehouseError):
    """Something about a table as a whole."""


class TableNotFoundError(TableError):
    """No `.hoodie/hoodie.properties` where a table was expected."""


class TableExistsError(TableError):
    """A table is there already."""


class UnsupportedTableVersionError(TableError):
    """The table version or timeline layout is one that the engine cannot read or write."""


class UnsupportedTableError(TableError):
    """The table uses a feature that is refused by name (metadata-only bootstrap, dropped partition columns, ...)."""


class ContradictoryPropertiesError(UnsupportedTableError):
    """Properties of the table contradict each other, or what is stored in it: another program or a hand has changed them."""


class UnavailableError(LakehouseError):
    """Something that Hudi has and this version has not: clustering, table versions 8 and 9, the record-level index, the metadata table."""


class FormatError(LakehouseError):
    """Bytes or names that do not parse."""


class FileNameError(FormatError):
    """A name that is not in the grammar of base files, log files, markers or instants."""


class PropertiesError(FormatError):
    """`hoodie.properties` is missing, torn or fails its checksum."""


class MetadataError(FormatError):
    """Commit metadata, a plan, or another record of the timeline does not parse."""


class CorruptInstantError(MetadataError):
    """A completed instant file is empty or truncated. Never treated as an empty commit."""


class CorruptLogError(FormatError):
    """A log file is damaged where a committed write put rows. Damage that takes nothing committed is passed over."""


class CorruptFileError(FormatError):
    """A base file is not what was written: a checksum of its pages, their headers or its footer fails, or it does not parse."""


class StorageError(LakehouseError):
    """The storage answered with an error."""


class StoredFileNotFoundError(StorageError):
    """A file that was asked for is not there."""


class StoredFileExistsError(StorageError):
    """Create-if-absent found the file."""


class UnansweredError(StorageError):
    """An object store did not answer a change: it is not made, and may be made yet, or again, when nobody waits for it."""


class UnusablePlaceError(StorageError):
    """A warehouse's place cannot be made, or nothing can be written there."""


class UnsafePathError(StorageError):
    """A path that would leave the table's directory."""


class ReadOnlyError(StorageError):
    """A warehouse that is attached to another one, and so read only, was about to be changed."""


class MissingFileError(StorageError):
    """A data file of a live file slice is not there; never answered with partial rows."""


class TimelineError(LakehouseError):
    """Something about instants."""


class IllegalTransitionError(TimelineError):
    """An instant would move otherwise than requested -> inflight -> completed."""


class InstantNotFoundError(TimelineError):
    """No such instant on the timeline."""


class InstantCleanedError(TimelineError):
    """The instant's files were cleaned or its metadata archived; names the earliest that can still be read."""


class TimelineRestoredError(TimelineError):
    """An incremental reader's checkpoint lies in time that a restore took back; it has to read anew, or go back to the restored instant."""


class UnsettledInstantError(TimelineError):
    """A write of Hudi is under way that began before the moment asked for: what the table was then may change yet."""


class WriteError(LakehouseError):
    """A write was refused or failed; unless a subclass says otherwise the table is unchanged."""


class RecordKeyError(WriteError):
    """A record key is null, empty or ambiguous."""


class DuplicateKeyError(WriteError):
    """A batch has one key twice and the caller asked for that to be an error."""


class RepeatedKeyError(DuplicateKeyError):
    """A key is stored more than once, and the write, which goes by keys, means single rows of it. Nothing was written."""


class ConstraintError(WriteError):
    """A row breaks NOT NULL, VARCHAR(n) or GENERATED ALWAYS AS of a column, or cannot be shown to keep it."""


class PartitionValueError(WriteError):
    """A partition value cannot be a directory name, or would leave the table."""


class ReservedColumnError(WriteError):
    """A user column has the name of a meta column."""


class SchemaIncompatibleError(WriteError):
    """The batch does not fit the table's schema."""


class UnsupportedTypeError(SchemaIncompatibleError):
    """A column type that Hudi cannot hold."""


class CommitConflictError(WriteError):
    """Another writer changed the same file groups. Nothing was committed; the write can be tried again."""


class ChangedSinceReadError(CommitConflictError):
    """What a write was computed from has changed since; nothing was written. Read it again, and repeat the write.

    `table_lock` makes the lock of the table, so that nobody comes in between once more.
    """

    table_lock: Callable[[], AbstractContextManager[object]] | None = None


class CommitOutcomeUnknownError(WriteError):
    """The commit may or may not have been published. Nothing is cleaned up; look at the timeline before retrying."""


class CommitRuledOutError(WriteError):
    """The store did not answer the commit. An empty one is in its place, so that it cannot come late; safe to retry."""


class ProtectedFileError(WriteError):
    """A file that a savepoint pins was about to be deleted."""


class UnseenFileError(WriteError):
    """A file that a task says it wrote is not there for the process that commits, or has another size. Nothing was committed."""


class LateAttemptError(WriteError):
    """A task attempt found its write completed or taken back, or runs where the driver's table is not. It leaves no file."""


class LockError(LakehouseError):
    """The table lock."""


class LockTimeoutError(LockError):
    """The lock was not free in time; names its holder."""


class LockLostError(LockError):
    """The lock was lost while an instant was being published: it was taken from the timeline again, and nobody was told of it."""


class SavepointError(LakehouseError):
    """A savepoint cannot be made, or is not there."""


class RollbackError(LakehouseError):
    """A rollback was refused or failed."""


class RollbackUnfinishedError(RollbackError):
    """A rollback has begun and could not go on. Whoever changes the table next finishes it, and so does `repair`."""


class RestoreError(RollbackError):
    """A restore was refused, and nothing has changed."""


class RestoreUnfinishedError(RestoreError):
    """A restore has begun and could not go on: the table shows as of `target` already; whoever changes it next finishes the restore."""


class CompactionError(LakehouseError):
    """A compaction cannot be scheduled or run."""


class ClusteringError(LakehouseError):
    """A clustering cannot be scheduled or run."""


class UnsupportedSessionError(LakehouseError):
    """A Spark session that the engine cannot work with; names what is missing."""


class SqlError(LakehouseError):
    """A SQL statement could not be routed."""


class UnsupportedSqlError(SqlError):
    """A construct that is refused by name."""


class RelationNotFoundError(SqlError):
    """A relation that is neither an engine table, nor a stored view."""


class UnreadableFilesError(SqlError):
    """Files that a statement reads are not there, or Spark cannot read them."""


class TaskError(LakehouseError):
    """A task failed on an executor."""


class ExecutorStorageError(TaskError):
    """Executors look at another directory than the driver, or cannot create files there. Nothing was written."""


class ExecutorVersionError(TaskError):
    """Executors cannot run the engine's tasks: another Python, another version of the engine, or none. Nothing was written."""
