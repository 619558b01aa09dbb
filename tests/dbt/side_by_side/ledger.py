"""What a process was told that it did: lines of JSON, written after each answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Ledger:
    """Of one process, in the folder of the project."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f"{name}.ledger"

    def write(self, table: str, **what: Any) -> None:
        """`part`: the part that was changed (None: all rows), `step`: a name of appended rows, `failed`: the error instead of them."""
        with self._path.open("a") as file:
            file.write(json.dumps({"table": table, **what}) + "\n")

    @staticmethod
    def read(folder: Path) -> Iterator[dict[str, Any]]:
        """The entries of all processes."""
        for path in sorted(folder.glob("*.ledger")):
            for line in path.read_text().splitlines():
                yield json.loads(line)


def stopped(folder: Path) -> bool:
    return (folder / "stop").exists()
