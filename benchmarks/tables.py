"""Tables as folders: restored from a pristine copy before an operation that changes them."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DataFiles:
    """The files with data under a table: relative path -> bytes. Parquet, Hudi's logs, deletion vectors of Iceberg and Delta."""

    sizes: dict[str, int]

    @classmethod
    def of(cls, table: Path) -> DataFiles:
        return cls({str(path.relative_to(table)): path.stat().st_size for path in sorted(table.rglob("*")) if _has_data(path, table)})

    def added_since(self, earlier: DataFiles) -> tuple[int, int]:
        """How many files, and how many bytes, are here and were not there."""
        added = [size for path, size in self.sizes.items() if path not in earlier.sizes]
        return len(added), sum(added)


def _has_data(path: Path, table: Path) -> bool:
    """Logs of a table's own metadata are no data of it; checksum files of Hadoop are not either."""
    if path.suffix == ".crc" or not path.is_file():
        return False
    return path.suffix in (".parquet", ".puffin", ".bin") or (".log." in path.name and ".hoodie" not in path.relative_to(table).parts)


def copy_table(source: Path, target: Path) -> None:
    """Copy a table quickly: Parquet files, which no format ever changes, are hard-linked; everything else is copied."""
    shutil.copytree(source, target, copy_function=_link_or_copy)


def _link_or_copy(source: str, target: str) -> str:
    if source.endswith(".parquet"):
        os.link(source, target)
        return target
    return str(shutil.copy2(source, target))


class TableSpace:
    """Folders for one contender's tables: kept states of it (the pristine one first of all), and live ones made from them.

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
        return self.state("pristine")

    def state(self, name: str) -> Path:
        """Where the table is kept in that state; not there before `keep`."""
        return self._root / "kept" / name / "bench" / "orders"

    def fresh(self) -> Path:
        """A path for a table that does not exist yet; earlier live tables are removed."""
        for live in self._root.glob("live*"):
            shutil.rmtree(live)
        self._count += 1
        folder = f"live-{self._count}" if self._relocatable else "live"
        table = self._root / folder / "bench" / "orders"
        table.parent.mkdir(parents=True)
        return table

    def restored(self, state: str = "pristine") -> Path:
        """A live copy of a kept table."""
        table = self.fresh()
        copy_table(self.state(state), table)
        return table

    def keep(self, table: Path, state: str = "pristine") -> None:
        """Keep the live `table` as a state. It stays where it is, too."""
        shutil.rmtree(self.state(state).parent, ignore_errors=True)
        copy_table(table, self.state(state))

    def adopt(self, other: TableSpace) -> None:
        """Start from another contender's kept states."""
        copy_table(other._root / "kept", self._root / "kept")

    def remove(self) -> None:
        """Delete everything."""
        shutil.rmtree(self._root)

    def scratch(self, name: str) -> Path:
        """A path for a folder that does not exist yet."""
        path = self._root / name
        shutil.rmtree(path, ignore_errors=True)
        return path
