"""Tables as folders: restored from a pristine copy before an operation that changes them."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DataFiles:
    """The Parquet files under a table: relative path -> bytes."""

    sizes: dict[str, int]

    @classmethod
    def of(cls, table: Path) -> DataFiles:
        return cls({str(path.relative_to(table)): path.stat().st_size for path in sorted(table.rglob("*.parquet"))})

    def added_since(self, earlier: DataFiles) -> tuple[int, int]:
        """How many files, and how many bytes, are here and were not there."""
        added = [size for path, size in self.sizes.items() if path not in earlier.sizes]
        return len(added), sum(added)


def copy_table(source: Path, target: Path) -> None:
    """Copy a table quickly: Parquet files, which no format ever changes, are hard-linked; everything else is copied."""
    shutil.copytree(source, target, copy_function=_link_or_copy)


def _link_or_copy(source: str, target: str) -> str:
    if source.endswith(".parquet"):
        os.link(source, target)
        return target
    return str(shutil.copy2(source, target))


class TableSpace:
    """Folders for one contender's tables: a pristine one, and live ones made from it.

    A live table of a contender whose tables cannot move is always at the same path, otherwise each has its own, so that nothing a
    session remembers about a path can be wrong.
    """

    def __init__(self, root: Path, *, relocatable: bool) -> None:
        self._root = root
        self._relocatable = relocatable
        self._count = 0
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)

    @property
    def pristine(self) -> Path:
        return self._root / "pristine" / "bench" / "orders"

    def fresh(self) -> Path:
        """A path for a table that does not exist yet; earlier live tables are removed."""
        for live in self._root.glob("live*"):
            shutil.rmtree(live)
        self._count += 1
        folder = f"live-{self._count}" if self._relocatable else "live"
        table = self._root / folder / "bench" / "orders"
        table.parent.mkdir(parents=True)
        return table

    def restored(self) -> Path:
        """A live copy of the pristine table."""
        table = self.fresh()
        copy_table(self.pristine, table)
        return table

    def keep(self, table: Path) -> None:
        """Make the live `table` the pristine one. It stays where it is, too."""
        shutil.rmtree(self.pristine.parent, ignore_errors=True)
        copy_table(table, self.pristine)

    def adopt(self, pristine: Path) -> None:
        """Start from another contender's pristine table."""
        copy_table(pristine, self.pristine)

    def scratch(self, name: str) -> Path:
        """A path for a folder that does not exist yet."""
        path = self._root / name
        shutil.rmtree(path, ignore_errors=True)
        return path
