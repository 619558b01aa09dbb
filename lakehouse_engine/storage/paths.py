"""Paths that a storage accepts, and names that it never lists."""

from __future__ import annotations

from lakehouse_engine.errors import UnsafePathError

_TEMPORARY_PREFIX = ".~lakehouse-"
_TEMPORARY_SUFFIX = ".tmp"


def check_relative(path: str) -> str:
    """`path` without a trailing slash; "" is the root itself.

    Raises `UnsafePathError` for an absolute path, for segments that are empty, `.` or `..`, and for NUL: names also come from timeline
    files and data, and must not leave the table.
    """
    if path in ("", "/"):
        if path:
            raise UnsafePathError("a path is relative to the root of its storage, not '/'")
        return ""
    trimmed = path.removesuffix("/")
    if any(segment in ("", ".", "..") for segment in trimmed.split("/")) or "\0" in trimmed:
        raise UnsafePathError(
            f"the path {path!r} would leave the root of its storage: give one relative to it, without empty, '.' or '..' segments"
        )
    return trimmed


def parent_of(path: str) -> str:
    """Directory of `path`; "" for a direct child of the root."""
    return path.rpartition("/")[0]


def temporary_name(token: str) -> str:
    """Hidden name for an unpublished file; neither an instant, a data file nor a log file in Hudi's grammar."""
    return f"{_TEMPORARY_PREFIX}{token}{_TEMPORARY_SUFFIX}"


def is_temporary_name(name: str) -> bool:
    """True if `temporary_name` made it."""
    return name.startswith(_TEMPORARY_PREFIX) and name.endswith(_TEMPORARY_SUFFIX)


def checksum_name(name: str) -> str:
    """Checksum file that Hadoop's local file system keeps beside `name`."""
    return f".{name}.crc"


def is_hidden_name(name: str) -> bool:
    """True if listings leave `name` out: temporary files and Hadoop's checksum files."""
    if not name.startswith("."):
        return False
    return name.endswith(".crc") or is_temporary_name(name)
