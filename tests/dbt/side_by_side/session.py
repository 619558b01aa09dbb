"""An interactive session beside dbt: statements that change the tables that everybody has, and reads that must see whole commits."""

from __future__ import annotations

import random
import sys
import uuid
from pathlib import Path

from pyspark.sql import SparkSession

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import CommitConflictError
from tests.dbt.side_by_side import shop
from tests.dbt.side_by_side.ledger import Ledger, stopped

UPDATE = "update s.{table} set n = n + 1 where part = {part}"
INSERT = "insert into s.{table} (step, id, part) select '{step}', cast(id as int), cast(id % 2 as int) from range(5)"
EVENT = "insert into s.events (id, at) values ({number}, timestamp'2026-01-0{day} 13:00:00')"
STATE = "update s.states set n = n + 1 where id = {number}"
MERGE = (
    "merge into s.{table} as t using (select id, n + 1 as n from s.{table} where part = {part}) as u on t.id = u.id "
    "when matched then update set n = u.n"
)


class Session:
    def __init__(self, folder: Path) -> None:
        spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.memory", "1g")
        self.lakehouse = Lakehouse(shop.warehouse(folder), spark=spark.config("spark.sql.shuffle.partitions", "1").getOrCreate())
        self.dice, self.ledger = random.Random("session"), Ledger(folder, "session")

    def count(self, table: str, part: int) -> None:
        keyed = table.endswith(shop.WHOLE)
        statement = self.dice.choice((UPDATE, MERGE)) if keyed else UPDATE
        self._do(table, statement.format(table=table, part=part), part=part)

    def append(self, table: str) -> None:
        step = uuid.uuid4().hex
        self._do(table, INSERT.format(table=table, step=step), step=step)

    def happen(self, number: int) -> None:
        """Something new in what the models of everybody read."""
        self._do("events", EVENT.format(number=number, day=number % 3 + 1), step=str(number))
        self._do("states", STATE.format(number=number % 6), step=str(number))

    def look(self, table: str) -> None:
        """A reader sees each row once, and of the rows that commits change together all or none."""
        rows = self.lakehouse.sql(f"select id, part, n from s.{table}").toArrow()
        assert sorted(rows["id"].to_pylist()) == list(range(shop.IDS)), f"{table}: {rows.to_pylist()}"
        counts = rows.group_by("part").aggregate([("n", "count_distinct")])["n_count_distinct"].to_pylist()
        assert set(counts) == {1}, f"{table}: {rows.to_pylist()}"

    def _do(self, table: str, statement: str, **what: object) -> None:
        try:
            self.lakehouse.sql(statement)
        except CommitConflictError as error:
            self.ledger.write(table, failed=f"{type(error).__name__}: {error}")
        else:
            self.ledger.write(table, **what)


def main(folder: Path) -> None:
    session, number = Session(folder), 100
    while not stopped(folder):
        number += 1
        table = session.dice.choice(shop.tables(*shop.COUNTERS, owner="shared"))
        session.count(table, session.dice.randrange(shop.PARTS))
        session.look(table)
        session.append(session.dice.choice(shop.tables("append", owner="shared")))
        session.happen(number)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
