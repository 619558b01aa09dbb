"""Checks that `_version_` and the manifest that it names say which files of a history count, and finds what the files themselves say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from lakehouse_engine.errors import FileNameError, FormatError, LakehouseError, MetadataError, StoredFileNotFoundError
from lakehouse_engine.format.v8.history import (
    VERSION_FILE,
    HistoryFile,
    current_manifest,
    manifest_name,
    manifest_number,
    parse_history_file,
    read_history_times,
)
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.order import in_time_order, is_later
from lakehouse_engine.timeline.history import LsmHistory


def head_damage(history: LsmHistory, counted: int) -> tuple[str, str] | None:
    """Name of the damaged file that should say which files count, and what is wrong; None if all is well. `counted` is the number of a
    manifest that once counted, 0 if none is known.
    """
    names = [entry.name for entry in history.listed()]
    try:
        number = current_manifest(_version(history), names) or 0
    except MetadataError as error:
        return VERSION_FILE, error.message
    if number < counted and manifest_name(counted) in names:
        return VERSION_FILE, f"{VERSION_FILE} of the timeline's history says {number}, and manifest {counted} counted already"
    return _manifest_damage(history, number) if number else None


def whole_files(history: LsmHistory) -> tuple[HistoryFile, ...]:
    """Files in the folder that decode, whatever manifests say, without those whose instants are all in files of higher levels."""
    kept, told = list[HistoryFile](), set[Instant]()
    for file in in_time_order(_files(history), lambda one: f"{one.level:03d} {one.name}", newest_first=True):
        instants = _instants(history, file)
        if not told.issuperset(instants):
            kept.append(file)
        told.update(instants)
    return tuple(in_time_order(kept, lambda one: one.name))


def gone_from_earlier(history: LsmHistory) -> tuple[str, ...]:
    """Names of files that older manifests in the folder list (all but the newest), and that are neither there nor merged."""
    names, whole = {entry.name for entry in history.listed()}, whole_files(history)
    numbers = sorted(number for name in names if (number := manifest_number(name)) is not None)
    listed: set[HistoryFile] = set()
    for number in numbers[:-1]:
        with suppress(LakehouseError):  # a damaged manifest tells nothing
            listed.update(history.manifest(number))
    return tuple(sorted(file.name for file in listed if file.name not in names and not any(_is_merged(file, one) for one in whole)))


def _version(history: LsmHistory) -> bytes | None:
    try:
        return history.storage.read(f"{history.path}/{VERSION_FILE}")
    except StoredFileNotFoundError:
        return None


def _manifest_damage(history: LsmHistory, number: int) -> tuple[str, str] | None:
    name = manifest_name(number)
    try:
        listed = history.manifest(number)
    except StoredFileNotFoundError:
        return name, f"{VERSION_FILE} of the timeline's history names {name}, which is gone"
    except FormatError as error:
        return name, error.message
    return (name, f"{name} of the timeline's history does not list the files that are there") if _is_wrong(history, listed) else None


def _is_wrong(history: LsmHistory, listed: Sequence[HistoryFile]) -> bool:
    """True if a manifest has a wrong size for a whole file, or lists a missing file instead of an existing one."""
    sizes, said = {entry.name: entry.size for entry in history.listed()}, {file.name: file.size for file in listed}
    if all(sizes.get(name) == size for name, size in said.items()):
        return False
    whole = whole_files(history)
    is_resized = any(file.name in said and said[file.name] != file.size for file in whole)
    return is_resized or (not said.keys() <= sizes.keys() and not {file.name for file in whole} <= said.keys())


def _files(history: LsmHistory) -> Iterator[HistoryFile]:
    for entry in history.listed():
        with suppress(FileNameError):
            yield parse_history_file(entry.name, entry.size)


def _instants(history: LsmHistory, file: HistoryFile) -> list[Instant]:
    """The instants in a file; empty for a damaged file."""
    try:
        return read_history_times(history.storage.read(f"{history.path}/{file.name}"), file)
    except FormatError:
        return []


def _is_merged(file: HistoryFile, into: HistoryFile) -> bool:
    return into.level > file.level and not is_later(into.first, file.first) and not is_later(file.last, into.last)
