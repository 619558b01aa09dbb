"""One attempt of a task at one data file, which may outlive the write that it belongs to."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from lakehouse_engine.commit.beside.attempts import check_open
from lakehouse_engine.errors import LakehouseError, LateAttemptError
from lakehouse_engine.format.file_names import MarkerType, marker_path
from lakehouse_engine.storage.base import Storage

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FileAttempt:
    """Told by the writer of the file when it opens and closes it. `announce` makes the file's marker, of `kind`.

    Whoever takes an open write back, or completes it, removes files of other attempts by their markers. A write that is not open is past
    that: then the attempt removes its own.
    """

    storage: Storage
    instant_time: str
    path: str
    kind: MarkerType
    announce: Callable[[], None]

    def begin(self) -> None:
        """Before the file is opened: its marker. Raises `LateAttemptError`, and what `announce` raises; nothing is written then."""
        check_open(self.storage, self.instant_time)
        self.announce()

    def end(self) -> None:
        """Once the file is closed and durable. Raises `LateAttemptError`, the file being gone again."""
        try:
            check_open(self.storage, self.instant_time)
        except LateAttemptError:
            self._remove()
            raise

    def give_up(self) -> None:
        """After a failure, with the file closed. Raises nothing: the failure that led here is to be told."""
        try:
            check_open(self.storage, self.instant_time)
        except LateAttemptError:
            try:
                self._remove()
            except LakehouseError as error:
                logger.warning("%s of a write that is over could not be removed (%s); the next write does", self.path, error)
        except LakehouseError as error:
            logger.info("whether %s is still wanted is not known (%s); its marker tells whoever takes the write back", self.path, error)

    def _remove(self) -> None:
        # No commit can name it: an attempt reports its file after it has looked for the last time.
        self.storage.delete(self.path)
        self.storage.delete(marker_path(self.instant_time, self.path, self.kind))
