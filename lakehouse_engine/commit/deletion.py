"""The only place where data files are deleted.

Every call reads again what savepoints pin, so no plan can be older than a savepoint. Callers hold the table lock, so none is made
meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from lakehouse_engine.commit.leftovers.log_owners import find_log_owners
from lakehouse_engine.commit.leftovers.strays import stray_files
from lakehouse_engine.commit.versions import needed_files
from lakehouse_engine.engine import LocalRunner, looking_runner
from lakehouse_engine.errors import FileNameError, LakehouseError, ProtectedFileError
from lakehouse_engine.format.file_names import is_base_file_name, parse_base_file, parse_log_file
from lakehouse_engine.model.files import BaseFile, LogFile
from lakehouse_engine.model.order import Order
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.paths import parent_of
from lakehouse_engine.view.protected import protected_files
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

_THREADS = 8
_WORTH_THREADS = 64
"""Number of files from which deletions run in parallel; fewer are quicker one by one."""


def delete_files_of(storage: Storage, instant_time: str, paths: Iterable[str]) -> list[str]:
    """Delete data files of an instant, durably; returns the paths (relative to the table) that existed.

    Raises `ProtectedFileError` before anything is deleted for a path that is not a data file, holds anything of another instant, or is
    pinned: the list may come from a file on disk.
    """

    def check(file: BaseFile | LogFile) -> None:
        if not _written_by(storage, file, instant_time):
            raise ProtectedFileError(
                f"{file.path!r} was not written by instant {instant_time} and is not deleted", path=file.path, instant=instant_time
            )

    return _delete(storage, paths, check)


def delete_files_after(storage: Storage, order: Order, instant_time: str, paths: Iterable[str]) -> list[str]:
    """`delete_files_of` for files of instants after `instant_time`."""

    def check(file: BaseFile | LogFile) -> None:
        if not _written_after(storage, order, file, instant_time):
            raise ProtectedFileError(
                f"{file.path!r} has rows of {instant_time} or before and is not deleted", path=file.path, instant=instant_time
            )

    return _delete(storage, paths, check)


def delete_unpinned(storage: Storage, paths: Iterable[str]) -> list[str]:
    """Delete data files of any instant, for a clean; refuses pinned files and other paths like `delete_files_of`."""
    return _delete(storage, paths, lambda file: None)


def delete_cleaned(state: TableState, paths: Iterable[str]) -> list[str]:
    """Like `delete_unpinned`, and refuses what no clean may delete: the newest slice of a group, groups that a pending service will read,
    and files of uncommitted instants. Lists the partitions again.
    """
    wanted = sorted(set(paths))
    needed = needed_files(state, wanted)

    def check(file: BaseFile | LogFile) -> None:
        if file.path in needed:
            raise ProtectedFileError(f"{file.path!r} is not deleted: {needed[file.path]}", path=file.path, table=state.config.name)

    return _delete(state.storage, wanted, check)


def delete_strays(state: TableState, partitions: Iterable[str], *, most_logs: int | None = None) -> list[str]:
    """Delete files that late task attempts left in these partitions (`strays`); returns the paths that existed."""
    return _delete(state.storage, stray_files(state, partitions, most_logs=most_logs), lambda file: None)


def clear_strays(state: TableState, partitions: Iterable[str], *, most_logs: int | None = None, anew: bool = False) -> None:
    """Like `delete_strays`, beside an independent action: failures are logged, and left to the next write there. The flag reloads the table
    first.
    """
    try:
        removed = delete_strays(state.refresh() if anew else state, partitions, most_logs=most_logs)
    except LakehouseError as error:
        logger.warning("files that no commit of %s names could not be removed (%s); the next write does", state.config.name, error)
        return
    for path in removed:
        logger.info("removed %s of %s: it is of a completed write, which does not name it", path, state.config.name)


def _delete(storage: Storage, paths: Iterable[str], check: Callable[[BaseFile | LogFile], None]) -> list[str]:
    wanted = sorted(set(paths))
    if not wanted:
        return []
    pinned = protected_files(TableState.load(storage))
    for path in wanted:
        check(parse_data_file(path))
        if path in pinned:
            raise ProtectedFileError(
                f"{path!r} is pinned by the savepoint of {pinned[path]} and is not deleted; delete the savepoint first",
                path=path,
                instant=pinned[path],
            )
    runner = LocalRunner(_THREADS if len(wanted) >= _WORTH_THREADS else 1, waiting=_THREADS)
    there = looking_runner(runner, storage).run(storage.delete, wanted, name="delete files")
    deleted = [path for path, was_there in zip(wanted, there, strict=True) if was_there]
    _make_durable(storage, deleted)
    return deleted


def _make_durable(storage: Storage, deleted: Sequence[str]) -> None:
    # Otherwise a power cut could bring them back after the instant that reveals them is gone.
    for folder in sorted({parent_of(path) for path in deleted}):
        storage.sync(folder)


def parse_data_file(path: str) -> BaseFile | LogFile:
    """Base or log file of that path. Raises `ProtectedFileError` for a path that is not a data file."""
    folder, _, name = path.rpartition("/")
    try:
        return parse_base_file(folder, name) if is_base_file_name(name) else parse_log_file(folder, name)
    except FileNameError as error:
        raise ProtectedFileError(f"{path!r} is no data file and is not deleted", path=path) from error


def _written_by(storage: Storage, file: BaseFile | LogFile, instant_time: str) -> bool:
    if isinstance(file, BaseFile):
        return file.instant_time == instant_time
    owners = find_log_owners(storage, file)
    return owners is None or owners.only(instant_time)


def _written_after(storage: Storage, order: Order, file: BaseFile | LogFile, instant_time: str) -> bool:
    if isinstance(file, BaseFile):
        return order.is_after(file.instant_time, instant_time)
    if order.is_after(file.instant_time, instant_time):
        return True  # no block of a slice is older than the slice
    owners = find_log_owners(storage, file)
    return owners is None or owners.only_after(order, instant_time)
