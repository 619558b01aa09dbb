"""One attempt of a task at one data file, which may outlive its write."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from lakehouse_engine.commit.concurrency.attempts import check_open
from lakehouse_engine.errors import LakehouseError, LateAttemptError
from lakehouse_engine.format.file_names import MarkerType, marker_path
from lakehouse_engine.storage.base import Storage

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FileAttempt:
    """The file's writer calls it when it opens and closes the file. `announce` makes the file's marker, of `kind`.

    A rollback or a commit of an open write removes files of other attempts by their markers. Once the write is no longer open, the attempt
    removes its own file.
    """

    storage: Storage
    instant_time: str
    path: str
    kind: MarkerType
    announce: Callable[[], None]

    def begin(self) -> None:
        """Call before the file is opened: makes the marker. Raises `LateAttemptError`, and what `announce` raises; the file must not be
        written then.
        """
        check_open(self.storage, self.instant_time)
        self.announce()

    def end(self) -> None:
        """Call when the file is closed and durable. Raises `LateAttemptError`, after removing the file, if the write is over."""
        try:
            check_open(self.storage, self.instant_time)
        except LateAttemptError:
            self._remove()
            raise

    def give_up(self) -> None:
        """Call after a failure, with the file closed. Raises nothing, so that the first failure is reported."""
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
        # No commit can name it: an attempt reports its file only after its last check.
        self.storage.delete(self.path)
        self.storage.delete(marker_path(self.instant_time, self.path, self.kind))
