"""Data files that an instant began to write, by its markers (hudi-format 11)."""

from __future__ import annotations

from lakehouse_engine.errors import FileNameError
from lakehouse_engine.format.file_names import MarkerType, marker_folder, parse_marker_path
from lakehouse_engine.storage.base import Storage

_LISTS = "MARKERS"
"""`MARKERS0` .. `MARKERSn` from Hudi's timeline server hold one marker per line."""

Marker = tuple[str, MarkerType]
"""Path of a data file relative to the table, and the kind of write."""


def marked_files(storage: Storage, instant_time: str) -> list[str]:
    """Paths (relative to the table) of data files with a marker; empty without markers or folder."""
    return sorted({path for path, _ in markers_of(storage, instant_time)})


def markers_of(storage: Storage, instant_time: str) -> list[Marker]:
    """The markers of an instant, sorted by path, each once."""
    folder = marker_folder(instant_time)
    found: set[Marker] = set()
    for entry in storage.walk(folder):
        relative = entry.path[len(folder) + 1 :]
        if entry.name.startswith(_LISTS) and "/" not in relative:
            if entry.name != "MARKERS.type":
                found.update(_listed(storage.read(entry.path).decode("utf-8", "replace"), folder, instant_time))
        else:
            found.update(_marked(entry.path, instant_time))
    return sorted(found)


def has_markers(storage: Storage, instant_time: str) -> bool:
    """True if the instant's marker folder exists."""
    return bool(storage.walk(marker_folder(instant_time)))


def _listed(text: str, folder: str, instant_time: str) -> list[Marker]:
    return [marker for line in text.splitlines() if line.strip() for marker in _marked(f"{folder}/{line.strip()}", instant_time)]


def _marked(path: str, instant_time: str) -> list[Marker]:
    try:
        return [parse_marker_path(instant_time, path)]
    except FileNameError:
        return []  # staged rows of a batch are beside the markers and name no data file
