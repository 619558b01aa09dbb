"""Output of an embedded Spark's JVM: collected while Spark starts, passed on afterwards."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

_NOISE = re.compile(rb"^WARNING: Using incubator modules:[^\n]*\n", re.MULTILINE)
_KEPT_BYTES = 1 << 20
_STANDARD_ERROR = 2
_PADDING = ("\tat ", "WARNING:", "Caused by:", "Error: Could not create", "Error: A fatal exc", "Error occurred during init")
"""Lines that do not explain why Java ended."""
_LOGGED = re.compile(r"^\d\d:\d\d:\d\d ERROR \S+ ")
_THROWN = re.compile(r"^(Exception in thread \"[^\"]*\" )?([\w$]+\.)+[\w$]*(Exception|Error): ")


class JvmOutput:
    """Reads a JVM's output in a thread. Call `let_through` when Spark has started: the collected lines go to standard error, without Java's
    warning about its vector module. If Spark does not start, use `lines` in the error.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._kept: bytearray | None = bytearray()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read, name="lakehouse-jvm-output", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._stream:
            while piece := os.read(self._stream.fileno(), 1 << 16):
                with self._lock:
                    if self._kept is None:
                        _pass_on(piece)
                    else:
                        self._kept += piece[: max(0, _KEPT_BYTES - len(self._kept))]

    def let_through(self) -> None:
        with self._lock:
            kept, self._kept = self._kept, None
            if kept:
                _pass_on(_NOISE.sub(b"", bytes(kept)))

    def lines(self, wait_s: float = 0) -> list[str]:
        """Collected lines. Waits a limited time for the last words of a JVM that is ending."""
        self._thread.join(wait_s)
        with self._lock:
            return bytes(self._kept or b"").decode(errors="replace").splitlines()


def _pass_on(piece: bytes) -> None:
    with suppress(OSError):  # standard error is closed
        while piece:
            piece = piece[os.write(_STANDARD_ERROR, piece) :]


def reason_in(lines: Sequence[str]) -> str | None:
    """The line that says why Java or Spark ended, without Java class names: the last one that Spark logged, else the first."""
    said = [line.strip() for line in lines if line.strip() and not line.startswith(_PADDING)]
    logged = [line for line in said if _LOGGED.match(line) and not line.endswith("Error initializing SparkContext.")]
    found = logged[-1:] or [line for line in said if not _LOGGED.match(line)][:1]
    return _THROWN.sub("", _LOGGED.sub("", found[0])) if found else None
