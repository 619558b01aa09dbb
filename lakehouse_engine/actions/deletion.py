"""The single door through which data files are deleted."""

from __future__ import annotations

from collections.abc import Iterable

from lakehouse_engine.errors import FileNameError, ProtectedFileError
from lakehouse_engine.format.file_names import is_base_file_name, parse_base_file, parse_log_file
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.paths import parent_of


def delete_files_of(storage: Storage, instant_time: str, paths: Iterable[str]) -> list[str]:
    """Delete data files that an instant wrote, durably; the paths (relative to the table) that were there.

    A path that is no data file, or belongs to another instant, is refused with `ProtectedFileError` before anything is deleted:
    the list may come from a file on disk, and must not be able to name anything else.
    """
    wanted = sorted(set(paths))
    for path in wanted:
        _check_written_by(path, instant_time)
    deleted = [path for path in wanted if storage.delete(path)]
    # Or a power cut could bring them back after the instant that would tell on them is gone.
    for folder in sorted({parent_of(path) for path in deleted}):
        storage.sync(folder)
    return deleted


def _check_written_by(path: str, instant_time: str) -> None:
    folder, _, name = path.rpartition("/")
    try:
        owner = parse_base_file(folder, name).instant_time if is_base_file_name(name) else parse_log_file(folder, name).base_instant
    except FileNameError as error:
        raise ProtectedFileError(f"{path!r} is no data file and is not deleted", path=path) from error
    if owner != instant_time:
        raise ProtectedFileError(f"{path!r} was not written by instant {instant_time} and is not deleted", path=path, instant=instant_time)
