"""Selects the blocks of a slice's log files that count, and checks that none is lost (hudi-format 5.4).

A log file has no checksums. What it must hold follows from the commits: each names the log files that it wrote and their sizes, and commits
of this engine their checksums. Within the range that a completed commit wrote, anything other than its blocks is an error, and so is every
changed byte. Elsewhere damage is skipped, unless an archived commit, whose metadata is not read, may have written it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lakehouse_engine.errors import CorruptLogError, StoredFileNotFoundError
from lakehouse_engine.files.base_file import missing_file
from lakehouse_engine.files.mapped import mapped
from lakehouse_engine.format.log.blocks import DATA_BLOCKS, BlockType, LogBlock
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.model.files import LogFile
from lakehouse_engine.model.instant import InstantRange
from lakehouse_engine.model.logged import LoggedSlice, LogPromise
from lakehouse_engine.model.order import is_between, is_later
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.timeline import Timeline

logger = logging.getLogger(__name__)

_EVERYTHING = InstantRange()


@dataclass(frozen=True, slots=True)
class LogScope:
    """Commits whose blocks a read sees: those in `window` that are `completed` or older than `start`.

    `window` is as `Timeline.within` makes it; `until` is the same window without its begin.
    """

    completed: frozenset[str]
    start: str | None
    window: InstantRange = _EVERYTHING
    until: InstantRange = _EVERYTHING

    @classmethod
    def of(cls, timeline: Timeline, window: InstantRange | None = None) -> LogScope:
        """`timeline` is the whole active timeline, as loaded."""
        writes = timeline.completed().writes()
        start = timeline.start
        completed = frozenset(write.requested_time for write in writes)
        first = None if start is None else start.requested_time
        if window is None:
            return cls(completed, first)
        return cls(completed, first, timeline.within(window), timeline.within(InstantRange(None, window.end)))

    def of_slice(self, piece: LoggedSlice) -> LogScope:
        """Scope for one slice."""
        return replace(self, window=self.until) if piece.whole else self

    def sees(self, instant_time: str | None) -> bool:
        """True if blocks of that instant count."""
        if instant_time is None:
            return False
        window = self.window
        if instant_time in self.completed and window.times is not None:
            return instant_time in window.times
        return is_between(instant_time, window.begin, window.end) and (instant_time in self.completed or self.archived(instant_time))

    def archived(self, instant_time: str) -> bool:
        """True if the instant is older than the active timeline, where every write counts as completed."""
        return self.start is not None and is_later(self.start, instant_time) and instant_time not in self.completed


@dataclass(frozen=True, slots=True)
class ScannedBlock:
    """A block that counts, and its log file."""

    block: LogBlock
    path: str


@dataclass(frozen=True, slots=True)
class ScannedLogs:
    """Blocks of a slice that count, in order, and numbers of blocks in its log files (`total` counts all but damaged ones)."""

    blocks: tuple[ScannedBlock, ...]
    files: int
    total: int
    rollbacks: int
    corrupt: int

    def with_rows(self) -> list[ScannedBlock]:
        """Blocks that count and hold rows, not deletions."""
        return [one for one in self.blocks if one.block.type in DATA_BLOCKS]


def scan_logs(storage: Storage, piece: LoggedSlice, scope: LogScope, *, verify: bool = True) -> ScannedLogs:
    """Data and delete blocks of a slice to apply, in order.

    Leaves out blocks of instants that `scope` does not see, blocks in files that their commits do not name, blocks that a rollback block
    takes back, and blocks that a log compaction merged into a later one. Without `verify`, no checksum is checked.

    Raises `MissingFileError` for a missing log file, unless only incomplete writes can have written to it (their rollback deletes it), and
    `CorruptLogError` if a log file lacks what a completed commit wrote.
    """
    scope = scope.of_slice(piece)
    found = ((log, _content(storage, log, piece, scope)) for log in piece.slice.log_files)
    stored = [(log, content) for log, content in found if content is not None]
    files = [(log, list(read_blocks(content))) for log, content in stored]
    taken_back = {block.target_instant_time for _, blocks in files for block in blocks if _takes_effect(block, scope)}
    told = piece.promises_by_path()
    for (log, blocks), (_, content) in zip(files, stored, strict=True):
        promises = told.get(log.path, [])
        for promise in promises:
            _check_promise(log, blocks, promise)
            if verify and not promise.kept(content):
                raise _corrupt(log, promise.instant_time, f"the bytes up to {promise.end} fail its checksum", promise.start or 0)
        if promises or not piece.told.whole:
            _check_rest(log, blocks, promises, scope, taken_back)
    kinds = [block.type for _, blocks in files for block in blocks]
    corrupt = kinds.count(BlockType.CORRUPT)
    applied = tuple(_applied(files, scope, piece))
    return ScannedLogs(applied, len(files), len(kinds) - corrupt, kinds.count(BlockType.COMMAND), corrupt)


def has_partial_rows(storage: Storage, log: LogFile) -> bool:
    """True if some rows of a log file have only some of the columns. False for a missing file: reading it raises the error."""
    try:
        return any(block.is_partial for block in read_blocks(mapped(storage, log.path)))
    except StoredFileNotFoundError:
        return False


def _content(storage: Storage, log: LogFile, piece: LoggedSlice, scope: LogScope) -> bytes | memoryview | None:
    """Content of the log file; mapped if the storage can, so that decoded parts need not stay in memory. None if the file is not needed."""
    try:
        return mapped(storage, log.path)
    except StoredFileNotFoundError as error:
        writers = [promise.instant_time for promise in piece.promises if promise.path == log.path]
        if not writers and scope.start is not None and not is_later(scope.start, log.instant_time):
            logger.info("%s is gone; no completed commit wrote to it", log.path)
            return None
        raise missing_file(log.path, instant=writers[0] if writers else None) from error


def _applied(files: Iterable[tuple[LogFile, list[LogBlock]]], scope: LogScope, piece: LoggedSlice) -> list[ScannedBlock]:
    queue: list[ScannedBlock] = []
    named = {(promise.path, promise.instant_time) for promise in piece.promises}
    for log, blocks in files:
        for block in blocks:
            if block.is_rollback:
                target = block.target_instant_time
                if _takes_effect(block, scope):
                    queue = [queued for queued in queue if queued.block.instant_time != target]
                else:
                    logger.warning("a rollback block in %s is ignored: its target %s is completed, or newer than it", log.path, target)
            elif (block.type in DATA_BLOCKS or block.type is BlockType.DELETE) and scope.sees(block.instant_time):
                time = block.instant_time
                if time is not None and piece.told.tells(time) and (log.path, time) not in named:
                    logger.warning("a block in %s is passed over: the commit %s does not name the file", log.path, time)
                    continue
                _enqueue(queue, ScannedBlock(block, log.path))
    return queue


def _enqueue(queue: list[ScannedBlock], found: ScannedBlock) -> None:
    """Append the block, or put it where the blocks were that it merges."""
    merged = set(found.block.compacted_times)
    if not merged:
        queue.append(found)
        return
    replaced = [place for place, queued in enumerate(queue) if queued.block.instant_time in merged]
    if not replaced:
        # A further block of the same log compaction goes behind its first.
        same = [place for place, queued in enumerate(queue) if queued.block.instant_time == found.block.instant_time]
        queue.insert(same[-1] + 1 if same else len(queue), found)
        return
    queue[replaced[-1] : replaced[-1] + 1] = [found]
    for place in reversed(replaced[:-1]):
        del queue[place]


def _takes_effect(block: LogBlock, scope: LogScope) -> bool:
    """True if a rollback block has a valid target: an earlier write that did not complete."""
    target, instant = block.target_instant_time, block.instant_time
    return block.is_rollback and target is not None and target not in scope.completed and (instant is None or is_later(instant, target))


def _check_promise(log: LogFile, blocks: Sequence[LogBlock], promise: LogPromise) -> None:
    size = blocks[-1].end if blocks else 0
    if size < promise.end:
        raise _corrupt(log, promise.instant_time, f"it has {size} bytes, and the commit wrote {promise.end}", size)
    start = promise.start or 0
    mine = [block for block in blocks if block.end > start and (not promise.end or block.offset < promise.end)]
    for block in mine if promise.start is not None else ():
        if block.type is BlockType.CORRUPT:
            raise _corrupt(log, promise.instant_time, block.damage, block.offset)
        if promise.end and block.instant_time != promise.instant_time:
            raise _corrupt(log, promise.instant_time, f"the block says that {block.instant_time} wrote it", block.offset)
    if not any(block.instant_time == promise.instant_time for block in mine):
        raise _corrupt(log, promise.instant_time, "it has no block of that commit", start)


def _check_rest(
    log: LogFile, blocks: Sequence[LogBlock], promises: Sequence[LogPromise], scope: LogScope, taken_back: set[str | None]
) -> None:
    """Handle damage outside of what active commits wrote: from failed writes, repeated attempts of a task, or archived commits."""
    for block in blocks:
        if block.type is not BlockType.CORRUPT or any(promise.start is not None and promise.end > block.offset for promise in promises):
            continue
        instant = block.instant_time
        writer = log.instant_time if instant is None else instant
        if scope.archived(writer) and scope.sees(writer) and instant not in taken_back:
            raise _corrupt(log, instant, block.damage, block.offset)
        logger.warning("%s is damaged at byte %d (%s), where no completed commit wrote", log.path, block.offset, block.damage)


def _corrupt(log: LogFile, instant: str | None, damage: str, offset: int) -> CorruptLogError:
    who = f"by the commit {instant}" if instant else "by a commit that is archived"
    return CorruptLogError(
        f"the log file {log.path!r} has lost rows written {who}: at byte {offset}, {damage}; restore the file from a backup,"
        " or restore the table to a savepoint",
        path=log.path,
        instant=instant,
        offset=offset,
    )
