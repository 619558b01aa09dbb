"""Data files: all that must exist do, with their size, and every live or retained one is readable from start to end."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from lakehouse_engine.errors import (
    CorruptLogError,
    FormatError,
    LakehouseError,
    MissingFileError,
    UnsupportedTableError,
    UnsupportedTypeError,
)
from lakehouse_engine.files.base_file import check_base_file
from lakehouse_engine.files.log_scanner import LogScope, ScannedBlock, scan_logs
from lakehouse_engine.files.mapped import mapped
from lakehouse_engine.format.log.blocks import BlockType
from lakehouse_engine.format.log.data_block import decode_data_block
from lakehouse_engine.format.log.delete_block import decode_delete_block
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.manifest.missing import lost_files
from lakehouse_engine.model.files import BaseFile, FileSlice, LogFile
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.read.complete_slices import METADATA_BOOTSTRAP_INSTANT
from lakehouse_engine.read.scan import plan_snapshot
from lakehouse_engine.storage.locations import has_file
from lakehouse_engine.verify.cleaned import Cleaned
from lakehouse_engine.verify.report import Finding, FindingKind, Progress
from lakehouse_engine.verify.retained import retained_files, stored_files
from lakehouse_engine.view.table_state import TableState


def without(state: TableState, damaged: Collection[Instant]) -> TableState:
    """The state as far as it can be read, for checks that need every instant's metadata."""
    return state.without(damaged) if damaged else state


def check_sizes(state: TableState, damaged: Collection[Instant]) -> tuple[int, list[Finding]]:
    """Number of files that must exist, and findings for missing or changed ones.

    If a clean is among the `damaged` instants, absent files may have been cleaned: only pinned files then count as missing.
    """
    whole = without(state, damaged)
    retained, cleans = retained_files(whole), Cleaned(whole)
    stored = stored_files(state, set(retained))
    cleaned = any(instant.action is Action.CLEAN for instant in damaged)
    findings = []
    for path, file in retained.items():
        entry = stored.get(path)
        if entry is None:
            if not (file.until_cleaned and cleans.took_path(path)) and (not cleaned or "savepoint" in file.needed_by):
                findings.append(Finding(FindingKind.MISSING_FILE, path, f"{file.needed_by} and not there"))
        # Hudi may leave the blocks of failed writes at the end of a log file.
        elif file.size > 0 and (entry.size < file.size if file.is_log else entry.size != file.size):
            findings.append(Finding(FindingKind.WRONG_SIZE, path, f"has {entry.size} bytes; its commit recorded {file.size}"))
    return len(retained), findings


def check_missing(state: TableState, slices: Sequence[FileSlice]) -> Iterator[Finding]:
    """Files of the table as it is that follow from what commits say, also from commits before the active timeline."""
    for file in lost_files(state.manifest, None, slices, logs=True):
        yield Finding(FindingKind.MISSING_FILE, file.path, f"written by {file.instant_time or 'an earlier commit'} and not there")


def check_contents(
    state: TableState, damaged: Collection[Instant], progress: Progress, only: Collection[str] | None = None
) -> Iterator[Finding | str]:
    """Read every visible base file and log completely, partition by partition; one row group, or one slice's logs, is in memory.

    `only`: slices with a file of these paths. Also yields texts about data that could not be checked although nothing is wrong with it.
    """
    whole = without(state, damaged)
    scope = LogScope.of(state.timeline)
    promises, told = whole.manifest.promises(None), whole.manifest.told(None)
    live = {log.path for piece in whole.view.latest_slices() for log in piece.log_files}
    slices = [piece for path in state.view.partitions() for group in state.view.file_groups(path) for piece in group.slices]
    slices = [piece for piece in slices if is_asked(piece, only)]
    for done, piece in enumerate(slices):
        progress("file slices", done, len(slices))
        if piece.base_file is not None:
            yield from _check_base(state, piece.base_file)
        if piece.log_files:
            # For archived writes only their live logs are known.
            known = told if all(log.path in live for log in piece.log_files) else replace(told, until="", whole=False)
            yield from _check_logs(state, LoggedSlice(piece, tuple(promises.get(piece.group, ())), known), scope)
    progress("file slices", len(slices), len(slices))


def check_moment(
    state: TableState, moment: str | None, *, quick: bool, only: Collection[str] | None = None
) -> Iterator[Finding | str]:
    """True if the table can be read now (None), or as of a savepoint, with logs as a read takes them, which may know checksums of archived
    commits. `only` as in `check_contents`. Raises as `plan_snapshot`.
    """
    plan = plan_snapshot(state, moment)
    if plan.reader is not None and not quick:
        for piece in plan.logged:
            if is_asked(piece.slice, only):
                yield from _check_logs(state, piece, plan.reader.scope)


def is_asked(piece: FileSlice, only: Collection[str] | None) -> bool:
    """True if a file of a slice, or its partition, is among these paths (None: all are)."""
    if only is None or piece.partition_path in only or (piece.base_file is not None and piece.base_file.path in only):
        return True
    return any(log.path in only for log in piece.log_files)


def _check_base(state: TableState, file: BaseFile) -> Iterator[Finding | str]:
    if file.instant_time == METADATA_BOOTSTRAP_INSTANT:
        yield "bootstrapped files, whose rows are outside of the table"
        return
    try:
        check_base_file(state.storage, file.path)
    except (UnsupportedTableError, UnsupportedTypeError) as error:
        yield f"{file.path}: {error.message}"
    except LakehouseError as error:
        yield _unreadable(file.path, error)


def _check_logs(state: TableState, piece: LoggedSlice, scope: LogScope) -> Iterator[Finding | str]:
    first = piece.slice.log_files[0].path
    try:
        for scanned in scan_logs(state.storage, piece, scope).blocks:
            _decode_block(scanned)
        for log in piece.slice.log_files:
            yield from _newer_rows(state, log, scope)
    except (UnsupportedTableError, UnsupportedTypeError) as error:
        yield f"{first}: {error.message}"
    except LakehouseError as error:
        yield _unreadable(first, error)


def _newer_rows(state: TableState, log: LogFile, scope: LogScope) -> Iterator[Finding]:
    """Log compactions that were planned before a write, ran after it, and took its rows, before such plans were renewed.

    Reads as of moments in between show these rows early, and restoring to such a moment keeps them.
    """
    if not has_file(state.storage, log.path):
        return
    merged = ((block.instant_time, block.compacted_times) for block in read_blocks(mapped(state.storage, log.path)))
    order = state.order
    seen = [(time, times) for time, times in merged if time is not None and scope.sees(time)]
    found = {(time, newer) for time, times in seen for newer in times if order.is_after(newer, time)}
    for time in order.sorted({time for time, _ in found}):
        named = ", ".join(order.sorted(newer for other, newer in found if other == time))
        what = f"the block of the log compaction {time} has rows of {named}, which came after it: earlier moments show them, and going back"
        yield Finding(FindingKind.NEWER_ROWS, log.path, f"{what} does not take them away; a compaction, then a clean, leaves it behind")


def _decode_block(scanned: ScannedBlock) -> None:
    block = scanned.block
    try:
        if block.type is BlockType.DELETE:
            decode_delete_block(block)
        else:
            decode_data_block(block, partial=True)
    except (FormatError, pa.ArrowException) as error:
        raise CorruptLogError(f"the block at byte {block.offset} does not decode: {error}", path=scanned.path) from error


def _unreadable(path: str, error: LakehouseError) -> Finding:
    kind = FindingKind.MISSING_FILE if isinstance(error, MissingFileError) else FindingKind.UNREADABLE_FILE
    return Finding.of(kind, path, error)
