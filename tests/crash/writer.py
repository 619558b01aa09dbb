"""A process that changes a table until it is killed: `python -m tests.crash.writer <mode> <table> <log> <name> <count> [<start> [<seed>]]`.

Mode `upsert`: commit number n upserts the rows `<name>-<n>-0..4` and the row `last-<name>`; deletes nothing. Mode `insert`: one new row a
commit. Mode `count`: adds 1 to the row `counter` by reading and writing under one lock, and inserts a row of its own. Mode `mixed`: as
`upsert`, with table services in between, drawn from `seed`. What was acknowledged goes to the log, a line each, durably: `<instant> <n>`
of a commit, `saved <instant> <n>` of a savepoint after commit n, `restored <instant>`, and `did <service>` of every service. Before a
restore `restoring <instant>` stands there, for it may be finished by another process. Starts no JVM.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable

import pyarrow as pa

from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.timeline.lock import TableLock
from tests.support.local_table import LocalTable

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("n", pa.int64())])
ROWS = 5


def rows_of(name: str, number: int) -> dict[str, tuple[str, int]]:
    """The rows of one commit by id: (part, n)."""
    rows = {f"{name}-{number}-{row}": (f"p{row % 3}", number) for row in range(ROWS)}
    return {**rows, f"last-{name}": ("p0", number)}


def as_batch(rows: dict[str, tuple[str, int]]) -> pa.Table:
    return pa.table([list(rows), [part for part, _ in rows.values()], [n for _, n in rows.values()]], schema=SCHEMA)


class Writer:
    """Changes one table, and tells the log what was acknowledged."""

    def __init__(self, path: str, log_path: str, name: str) -> None:
        self.storage = LocalStorage(path)
        self.table, self.name = LocalTable(self.storage), name
        self.merge_on_read = self.table.state.config.table_type is TableType.MERGE_ON_READ
        self._log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.tell("ready")

    def tell(self, text: str) -> None:
        os.write(self._log, f"{text}\n".encode())
        os.fsync(self._log)

    def upsert(self, number: int) -> None:
        # A commit that was published and not acknowledged is done again, with the same rows.
        self.tell(f"{self.table.upsert(as_batch(rows_of(self.name, number))).instant} {number}")

    def insert(self, number: int) -> None:
        self.tell(f"{self.table.insert(as_batch({f'{self.name}-{number}': ('p1', number)})).instant} {number}")

    def count(self, number: int) -> None:
        with TableLock(self.storage):
            stored = self.table.read(["id", "n"]).to_pylist()
            value = next((row["n"] for row in stored if row["id"] == "counter"), 0)
            rows = {"counter": ("p0", value + 1), f"{self.name}-{number}": ("p1", number)}
            instant = self.table.upsert(as_batch(rows)).instant
        self.tell(f"{instant} {number}")

    def mixed(self, number: int, chance: random.Random) -> None:
        self.upsert(number)
        services: dict[str, Callable[[], object]] = {
            "nothing": lambda: None,
            "savepoint": lambda: self.savepoint(number),
            "restore": self.restore,
            "clean": lambda: self.table.clean(2),
            "archive": lambda: self.table.archive(4, 6, retain=2),
            "cluster": lambda: self.table.cluster("n"),
        }
        if self.merge_on_read:
            services["compact"] = self.table.compact
        service = chance.choice(list(services))
        services[service]()
        self.tell(f"did {service}")

    def savepoint(self, number: int) -> None:
        if not self._savepoints():
            self.tell(f"saved {self.table.savepoint().instant} {number}")

    def restore(self) -> None:
        """To a commit of before, and then forward again from there: the log says which numbers are gone."""
        for saved in self._savepoints():
            self.tell(f"restoring {saved}")
            self.table.restore(saved)
            self.tell(f"restored {saved}")
            self.table.delete_savepoint(saved)

    def _savepoints(self) -> list[str]:
        return sorted(self.table.state.timeline.savepointed)


def main(mode: str, path: str, log_path: str, name: str, count: int, start_at: float, seed: int) -> None:
    writer, chance = Writer(path, log_path, name), random.Random(seed)
    time.sleep(max(0.0, start_at - time.time()))
    with open(log_path) as acknowledged:
        first = 1 + max((int(line.split()[1]) for line in acknowledged if line[0].isdigit()), default=-1)
    for number in range(first, first + count):
        if mode == "mixed":
            writer.mixed(number, chance)
        else:
            getattr(writer, mode)(number)


if __name__ == "__main__":
    mode, path, log_path, name, count, *more = sys.argv[1:]
    start_at, seed = [*more, *("0", "0")[len(more) :]]
    main(mode, path, log_path, name, int(count), float(start_at), int(seed))
