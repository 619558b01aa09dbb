"""Record of a savepoint: the files that it pins, and its name."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lakehouse_engine.errors import OptionError, SavepointError
from lakehouse_engine.model.instant import as_of_instant_time

LATEST = "latest"
"""Name that means the newest savepoint."""
EARLIEST = "earliest"
"""Where an incremental read of all commits begins."""

_BACK = re.compile(r"-[0-9]+")
_NAMED = re.compile(r"\[([^\[\]\n]+)\](?: (.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieSavepointPartitionMetadata:
    """`savepoint_data_file`: bare names of the base and log files of the latest slices of one partition."""

    partition_path: str
    savepoint_data_file: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieSavepointMetadata:
    """Record of a savepoint, stored under the instant time of the commit that it keeps. `savepointed_at` in epoch milliseconds."""

    savepointed_by: str
    savepointed_at: int
    comments: str
    partition_metadata: dict[str, HoodieSavepointPartitionMetadata] = field(default_factory=dict)
    version: int | None = 1

    def pinned_files(self) -> dict[str, frozenset[str]]:
        """File names that must stay, by partition path."""
        return {partition: frozenset(entry.savepoint_data_file) for partition, entry in self.partition_metadata.items()}

    @property
    def name(self) -> str | None:
        return split_comments(self.comments)[0]

    @property
    def comment(self) -> str:
        """The comment without the name."""
        return split_comments(self.comments)[1]


class DamagedSavepoint(HoodieSavepointMetadata):
    """Stands for a savepoint whose file does not decode: what it keeps is unknown, so it may keep anything up to its instant.

    `comments` name the file and what is wrong with it.
    """


def check_name(name: str) -> None:
    """Raise `SavepointError` for a name that could mean an instant, "latest" or "earliest", or that would break the comment's format."""
    if not name.strip() or name != name.strip() or any(character in name for character in "[]\n"):
        raise SavepointError(f"{name!r} is no name for a savepoint: give one line without brackets or spaces around it")
    if name.isdigit() or name.lower() in (LATEST, EARLIEST) or _is_moment(name):
        raise SavepointError(f"{name!r} is no name for a savepoint: it means an instant, a date, -N, the newest or first one; add a letter")


def _is_moment(text: str) -> bool:
    """True if a time-travel query would take `text` for something other than a name."""
    if _BACK.fullmatch(text):
        return True
    try:
        as_of_instant_time(text)
    except OptionError:
        return False
    return True


def join_comments(name: str | None, comment: str) -> str:
    """Comments that Hudi keeps and shows: `[name] comment`, because Hudi has no names for savepoints."""
    return comment if name is None else f"[{name}] {comment}".rstrip(" ")


def split_comments(comments: str) -> tuple[str | None, str]:
    """Name and comment; the name is None in savepoints of other writers."""
    match = _NAMED.fullmatch(comments)
    return (match[1], match[2] or "") if match else (None, comments)
