"""Every kind of write beside every other, and the table services: what the table holds follows from the commits in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tests.histories.log import Json
from tests.histories.plans import Plan
from tests.histories.writer import Writer
from tests.support.table_model import TableModel

_WRITES = {
    "upsert": 6.0,
    "insert": 2.0,
    "delete": 2.0,
    "upsert_and_delete": 1.0,
    "increment": 4.0,
    "move": 2.0,
    "overwrite": 0.7,
    "drop_partition": 0.3,
}
_SERVICES = {"clean": 0.6, "archive": 0.6, "savepoint": 0.5, "delete_savepoint": 0.6}
_COMPACTIONS = {"schedule": 0.6, "run": 0.8, "compact": 0.6}
_CLUSTERINGS = {"schedule_clustering": 0.4, "run_clustering": 0.5, "cluster": 0.5, "rollback_clustering": 0.2}
_SAVEPOINTS = 2


class Mixed:
    """Keys `s<n>` are shared by all writers, who meet at them; all others are given once."""

    schema = pa.schema([("id", pa.string()), ("part", pa.string()), ("n", pa.int64()), ("ts", pa.int64())])
    PARTITIONS, SHARED = 4, 20

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def first_rows(self) -> list[Json]:
        return [{"id": key, "part": self._home(key), "n": 0, "ts": 0} for key in (f"s{number}" for number in range(self.SHARED // 2))]

    def step(self, writer: Writer) -> None:
        weights = {**_WRITES, **_SERVICES, **_CLUSTERINGS, **(_COMPACTIONS if self.plan.merges_on_read else {})}
        name = writer.chance.choices(list(weights), list(weights.values()))[0]
        act: Callable[[Writer], Any] = getattr(self, f"_{name}")
        if name in _WRITES:
            writer.until_done(lambda: act(writer))
        else:
            act(writer)

    def last(self, writer: Writer) -> bool:
        if self.plan.merges_on_read:
            while (answer := writer.serve("run", lambda: writer.table.compact("run"))) is not None and answer.instant is not None:
                pass
        return self._upsert(writer) and self._insert(writer)

    # writes

    def _row(self, writer: Writer, key: str) -> Json:
        """Without a global index a key belongs to a partition."""
        chance = writer.chance
        part = f"p{chance.randrange(self.PARTITIONS)}" if self.plan.is_global else self._home(key)
        return {"id": key, "part": part, "n": chance.randrange(1000), "ts": chance.randrange(4)}

    def _home(self, key: str) -> str:
        return f"p{sum(key.encode()) % self.PARTITIONS}"

    def _shared(self, writer: Writer, most: int = 4) -> list[Json]:
        numbers = writer.chance.sample(range(self.SHARED), writer.chance.randint(1, most))
        return [self._row(writer, f"s{number}") for number in numbers]

    def _own(self, writer: Writer) -> list[Json]:
        return [self._row(writer, f"{writer.next_name()}-{number}") for number in range(writer.chance.randint(1, 3))]

    def _upsert(self, writer: Writer) -> bool:
        rows = [*self._shared(writer), *self._own(writer)[:1]]
        return writer.attempt(
            "upsert", {"rows": rows}, lambda metadata: writer.table.upsert(writer.batch(rows), extra_metadata=metadata)
        )

    def _insert(self, writer: Writer) -> bool:
        rows = self._own(writer)
        return writer.attempt(
            "insert", {"rows": rows}, lambda metadata: writer.table.insert(writer.batch(rows), extra_metadata=metadata)
        )

    def _keys(self, writer: Writer, rows: list[Json]) -> pa.Table:
        return writer.batch(rows).select(["id"] if self.plan.is_global else ["id", "part"])

    def _delete(self, writer: Writer) -> bool:
        rows = self._shared(writer, most=3)
        return writer.attempt(
            "delete", {"keys": rows}, lambda metadata: writer.table.delete(self._keys(writer, rows), extra_metadata=metadata)
        )

    def _upsert_and_delete(self, writer: Writer) -> bool:
        rows = self._shared(writer, most=6)
        new, old = rows[::2], rows[1::2]
        if not old:
            return self._upsert(writer)
        return writer.attempt(
            "upsert_and_delete",
            {"rows": new, "keys": old},
            lambda metadata: writer.table.upsert(
                writer.batch(new), delete_keys=self._keys(writer, old), extra_metadata=metadata
            ),
        )

    def _increment(self, writer: Writer) -> bool:
        return self._changed(writer, "increment", lambda row: {**row, "n": row["n"] + 1})

    def _move(self, writer: Writer) -> bool:
        """The row goes to the next partition, and says so."""
        if not self.plan.is_global:
            return self._increment(writer)
        return self._changed(writer, "move", self._moved)

    def _moved(self, row: Json) -> Json:
        return {**row, "part": f"p{(int(row['part'][1:]) + 1) % self.PARTITIONS}", "n": row["n"] + 1}

    def _changed(self, writer: Writer, kind: str, change: Callable[[Json], Json]) -> bool:
        instant, rows = writer.look()
        if not rows:
            return self._upsert(writer)
        row = rows[writer.chance.choice(sorted(rows))]
        return writer.attempt(
            kind,
            {"id": row["id"], "part": row["part"], "ts": row["ts"]},
            lambda metadata: writer.table.upsert(writer.batch([change(row)]), expected_instant=instant, extra_metadata=metadata),
        )

    def _overwrite(self, writer: Writer) -> bool:
        part = f"p{writer.chance.randrange(self.PARTITIONS)}"
        rows = [{**row, "part": part} for row in self._own(writer)]
        return writer.attempt(
            "overwrite", {"rows": rows}, lambda metadata: writer.table.insert_overwrite(writer.batch(rows), extra_metadata=metadata)
        )

    def _drop_partition(self, writer: Writer) -> bool:
        part = f"p{writer.chance.randrange(self.PARTITIONS)}"
        return writer.attempt(
            "drop_partition",
            {"part": part},
            lambda metadata: writer.table.delete_partitions([{"part": part}], extra_metadata=metadata),
        )

    # services

    def _clean(self, writer: Writer) -> None:
        writer.serve("clean", lambda: writer.table.clean())

    def _archive(self, writer: Writer) -> None:
        writer.serve("archive", lambda: writer.table.archive())

    def _savepoint(self, writer: Writer) -> None:
        if len(writer.table.savepoints()) < _SAVEPOINTS:
            writer.serve("savepoint", lambda: writer.table.savepoint())

    def _delete_savepoint(self, writer: Writer) -> None:
        found = writer.table.savepoints()
        if found:
            oldest = found[0].instant
            writer.serve("delete_savepoint", lambda: writer.table.delete_savepoint(oldest), of=oldest)

    def _schedule(self, writer: Writer) -> None:
        writer.serve("schedule", lambda: writer.table.compact("schedule"))

    def _run(self, writer: Writer) -> None:
        writer.serve("run", lambda: writer.table.compact("run"))

    def _compact(self, writer: Writer) -> None:
        writer.serve("compact", lambda: writer.table.compact())

    def _schedule_clustering(self, writer: Writer) -> None:
        writer.serve("schedule clustering", lambda: writer.table.cluster("schedule", order_by=self._order(writer)))

    def _run_clustering(self, writer: Writer) -> None:
        writer.serve("run clustering", lambda: writer.table.cluster("run"))

    def _cluster(self, writer: Writer) -> None:
        writer.serve("cluster", lambda: writer.table.cluster(order_by=self._order(writer)))

    def _rollback_clustering(self, writer: Writer) -> None:
        """The newest plan, if one is pending and it is not being run."""
        pending = writer.pending_clusterings()
        if pending:
            writer.serve("rollback clustering", lambda: writer.table.rollback(pending[-1]), of=pending[-1])

    def _order(self, writer: Writer) -> list[str]:
        """By different columns, so that there is always something to cluster."""
        return [writer.chance.choice(["id", "n", "ts"])]

    # what they mean

    def apply(self, model: TableModel, kind: str, what: Json, instant: str) -> None:
        if kind in ("upsert", "upsert_and_delete"):
            model.upsert(what["rows"], instant)
            model.delete(what.get("keys", []), instant)
        elif kind == "insert":
            model.insert(what["rows"], instant)
        elif kind == "delete":
            model.delete(what["keys"], instant)
        elif kind == "overwrite":
            model.insert_overwrite(what["rows"], instant)
        elif kind == "drop_partition":
            model.delete_partitions([(what["part"],)], instant)
        else:
            key = (what["id"],) if self.plan.is_global else ((what["id"],), (what["part"],))
            row = model.stored[key][1]
            model.upsert([self._moved(row) if kind == "move" else {**row, "n": row["n"] + 1}], instant)

    def wrong(self, rows: list[list[Any]]) -> str | None:
        keys = [(key, None if self.plan.is_global else part) for key, part, *_ in rows]
        return None if len(set(keys)) == len(keys) else f"keys are stored twice: {sorted(key for key in set(keys) if keys.count(key) > 1)}"
