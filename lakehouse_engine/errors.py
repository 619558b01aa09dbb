"""The error tree. Catch `LakehouseError` for everything; a class of its own exists where a caller would act differently.

LakehouseError                      one thing to catch; carries context (table, instant, ...) as fields; picklable
  x OptionError (ValueError)        UnknownOptionError, MissingOptionError
  x TableError                      TableNotFoundError, TableExistsError, UnsupportedTableVersionError, UnsupportedTableError
      + VersionChangeError          the table cannot be brought to another version; nothing was changed
  x FormatError                     bytes that do not parse: FileNameError, PropertiesError, MetadataError, CorruptInstantError,
                                    CorruptLogError, CorruptFileError
  x StorageError                    StoredFileNotFoundError, StoredFileExistsError, UnsafePathError, MissingFileError,
                                    ReadOnlyError
      + UnansweredError             whether a change was made, or will be yet, is not known
      + UnusablePlaceError          no warehouse can be there
  x TimelineError                   IllegalTransitionError, InstantNotFoundError, InstantCleanedError, TimelineRestoredError,
                                    UnsettledInstantError
  x WriteError                      RecordKeyError, DuplicateKeyError, RecordIndexError, ExternalIndexError, PartitionValueError,
                                    ReservedColumnError, ConstraintError
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
  x IndexingError
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
    """An option's value does not parse, or contradicts another option."""


class UnknownOptionError(OptionError):
    """A key that the engine does not know; the message names the nearest known one."""


class MissingOptionError(OptionError):
    """A required option was not given."""


class TableError(LakehouseError):
    """Something about a table as a whole."""


class TableNotFoundError(TableError):
    """No `.hoodie/hoodie.properties` where a table was expected."""


class TableExistsError(TableError):
    """The table already exists."""


class UnsupportedTableVersionError(TableError):
    """The engine cannot read or write the table's version or timeline layout."""


class UnsupportedTableError(TableError):
    """The table uses a feature that is refused by name (metadata-only bootstrap, dropped partition columns, ...)."""


class ContradictoryPropertiesError(UnsupportedTableError):
    """The table's properties contradict each other, or the stored data: another program or a person has changed them."""


class VersionChangeError(TableError):
    """A table cannot be brought to another version: something would be lost, or has to be finished before. Nothing was changed."""


class UnavailableError(LakehouseError):
    """Something that Hudi has and this version has not: clustering, table versions 8 and 9, the record-level index, the metadata table."""


class FormatError(LakehouseError):
    """Bytes or names that do not parse."""


class FileNameError(FormatError):
    """A name outside the grammar of base files, log files, markers or instants."""


class PropertiesError(FormatError):
    """`hoodie.properties` is missing, torn or fails its checksum."""


class MetadataError(FormatError):
    """Commit metadata, a plan, or another record of the timeline does not parse."""


class CorruptInstantError(MetadataError):
    """A completed instant file is empty or truncated. Never treated as an empty commit."""


class CorruptLogError(FormatError):
    """A log file is damaged where a committed write put rows. Other damage is skipped."""


class CorruptFileError(FormatError):
    """A base file differs from what was written: a checksum of its pages, headers or footer fails, or it does not parse."""


class StorageError(LakehouseError):
    """The storage answered with an error."""


class StoredFileNotFoundError(StorageError):
    """A requested file does not exist."""


class StoredFileExistsError(StorageError):
    """Create-if-absent found the file."""


class UnansweredError(StorageError):
    """An object store did not answer a change: it is not made yet, and may still be, even after later requests."""


class UnusablePlaceError(StorageError):
    """A warehouse cannot be made at its place, or nothing can be written there."""


class UnsafePathError(StorageError):
    """A path that would leave the table's directory."""


class ReadOnlyError(StorageError):
    """A change to an attached, and so read-only, warehouse."""


class MissingFileError(StorageError):
    """A data file of a live file slice is missing; never answered with partial rows."""


class TimelineError(LakehouseError):
    """Something about instants."""


class IllegalTransitionError(TimelineError):
    """An instant would not move requested -> inflight -> completed."""


class InstantNotFoundError(TimelineError):
    """No such instant on the timeline."""


class InstantCleanedError(TimelineError):
    """The instant's files were cleaned or its metadata archived; names the earliest readable one."""


class TimelineRestoredError(TimelineError):
    """An incremental reader's checkpoint is in time that a restore took back; read everything again, or go back to the restored instant."""


class UnsettledInstantError(TimelineError):
    """A write of Hudi's that began before the requested moment is still running: the state at that moment may change yet."""


class WriteError(LakehouseError):
    """A write was refused or failed; unless a subclass says otherwise the table is unchanged."""


class RecordKeyError(WriteError):
    """A record key is null, empty or ambiguous."""


class DuplicateKeyError(WriteError):
    """A batch has one key twice, and the caller asked for that to be an error."""


class RepeatedKeyError(DuplicateKeyError):
    """A key is stored more than once, and a write by key is meant for single rows of it. Nothing was written."""


class RecordIndexError(WriteError):
    """The record index of the metadata table places a key where it is not. Nothing was written."""


class ExternalIndexError(WriteError):
    """The external index, a table of HBase, does not answer, or is not kept up for this table. Nothing was written."""


class ConstraintError(WriteError):
    """A row violates NOT NULL, VARCHAR(n) or GENERATED ALWAYS AS of a column, or cannot be checked."""


class PartitionValueError(WriteError):
    """A partition value cannot be a directory name, or would leave the table."""


class ReservedColumnError(WriteError):
    """A user column has the name of a meta column."""


class SchemaIncompatibleError(WriteError):
    """The batch does not fit the table's schema."""


class UnsupportedTypeError(SchemaIncompatibleError):
    """A column type that Hudi cannot hold."""


class CommitConflictError(WriteError):
    """Another writer changed the same file groups. Nothing was committed; retry the write."""


class ChangedSinceReadError(CommitConflictError):
    """What a write was computed from has changed; nothing was written. Read again and repeat the write.

    `table_lock` makes the table's lock, so that the repetition is not interrupted again.
    """

    table_lock: Callable[[], AbstractContextManager[object]] | None = None


class CommitOutcomeUnknownError(WriteError):
    """The commit may or may not have been published. Nothing is cleaned up; look at the timeline before retrying."""


class CommitRuledOutError(WriteError):
    """The store did not answer the commit. An empty one took its name, so that it cannot come late; safe to retry."""


class ProtectedFileError(WriteError):
    """A file that a savepoint pins was about to be deleted."""


class UnseenFileError(WriteError):
    """A file that a task reports is missing for the committing process, or has another size. Nothing was committed."""


class LateAttemptError(WriteError):
    """A task attempt found its write completed or taken back, or runs where the driver's table is not. It leaves no file."""


class LockError(LakehouseError):
    """The table lock."""


class LockTimeoutError(LockError):
    """The lock was not free in time; names its holder."""


class LockLostError(LockError):
    """The lock was lost while an instant was being published. The instant was removed from the timeline again."""


class SavepointError(LakehouseError):
    """A savepoint cannot be made, or is not there."""


class RollbackError(LakehouseError):
    """A rollback was refused or failed."""


class RollbackUnfinishedError(RollbackError):
    """A rollback has begun and could not continue. The next change of the table finishes it, and so does `repair`."""


class RestoreError(RollbackError):
    """A restore was refused; nothing has changed."""


class RestoreUnfinishedError(RestoreError):
    """A restore has begun and could not continue: the table already reads as of `target`; the next change of the table finishes the
    restore.
    """


class CompactionError(LakehouseError):
    """A compaction cannot be scheduled or run."""


class IndexingError(LakehouseError):
    """The build of an index cannot be scheduled, run or completed."""


class ClusteringError(LakehouseError):
    """A clustering cannot be scheduled or run."""


class UnsupportedSessionError(LakehouseError):
    """A Spark session that the engine cannot work with; names what is missing."""


class SqlError(LakehouseError):
    """A SQL statement could not be routed."""


class UnsupportedSqlError(SqlError):
    """A construct that is refused by name."""


class RelationNotFoundError(SqlError):
    """A relation that is neither an engine table nor a stored view."""


class UnreadableFilesError(SqlError):
    """Files that a statement reads do not exist, or Spark cannot read them."""


class TaskError(LakehouseError):
    """A task failed on an executor."""


class ExecutorStorageError(TaskError):
    """Executors see another directory than the driver, or cannot create files there. Nothing was written."""


class ExecutorVersionError(TaskError):
    """Executors cannot run the engine's tasks: another Python, another version of the engine, or none. Nothing was written."""
