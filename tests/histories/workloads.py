"""What writers do, and what each operation means for a model of the table (`tests.support.table_model`)."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa

from tests.histories.log import Json
from tests.histories.mixed import Mixed
from tests.histories.plans import Plan
from tests.histories.writer import Writer
from tests.support.table_model import TableModel


class Workload(Protocol):
    schema: pa.Schema

    def __init__(self, plan: Plan) -> None: ...

    def first_rows(self) -> list[Json]:
        """What the table holds when the history begins."""
        ...

    def step(self, writer: Writer) -> None:
        """One of a writer's steps, which may take several attempts."""
        ...

    def last(self, writer: Writer) -> bool:
        """A write that nobody is beside; whether it was acknowledged."""
        ...

    def apply(self, model: TableModel, kind: str, what: Json, instant: str) -> None:
        """What an operation means, given what was there before it."""
        ...

    def wrong(self, rows: list[list[Any]]) -> str | None:
        """What cannot be in any whole state of the table, whatever was committed."""
        ...


class ListAppend:
    """Elements, each given once, are appended to lists by reading and writing; lost updates and torn orders show in the lists."""

    schema = pa.schema([("id", pa.string()), ("part", pa.string()), ("items", pa.list_(pa.string()))])
    PARTITIONS, LISTS = 6, 18

    def __init__(self, plan: Plan) -> None:
        """Nothing depends on the plan."""

    def first_rows(self) -> list[Json]:
        return [{"id": f"k{number}", "part": f"p{number % self.PARTITIONS}", "items": []} for number in range(self.LISTS)]

    def step(self, writer: Writer) -> None:
        chance = writer.chance.random()
        if chance < 0.15:
            writer.until_done(lambda: self._new(writer, "insert"))
        elif chance < 0.3:
            writer.until_done(lambda: self._new(writer, "upsert"))
        elif chance < 0.4:
            writer.until_done(lambda: self._append(writer, keys=2))
        else:
            writer.until_done(lambda: self._append(writer))

    def last(self, writer: Writer) -> bool:
        return self._append(writer, keys=self.LISTS) and self._new(writer, "upsert")

    def _new(self, writer: Writer, kind: str) -> bool:
        name = writer.next_name()
        row = {"id": f"n{name}", "part": f"p{writer.chance.randrange(self.PARTITIONS)}", "items": [name]}
        write = getattr(writer.table, kind)
        return writer.attempt("new", {"row": row}, lambda metadata: write(writer.batch([row]), extra_metadata=metadata))

    def _append(self, writer: Writer, keys: int = 1) -> bool:
        instant, rows = writer.look()
        name, chosen = writer.next_name(), writer.chance.sample(sorted(rows), keys)
        batch = writer.batch([{**rows[key], "items": [*rows[key]["items"], name]} for key in chosen])
        return writer.attempt(
            "append",
            {"ids": chosen, "item": name},
            lambda metadata: writer.table.upsert(batch, expected_instant=instant, extra_metadata=metadata),
        )

    def apply(self, model: TableModel, kind: str, what: Json, instant: str) -> None:
        if kind == "new":
            model.insert([what["row"]], instant)
        else:
            rows = [model.stored[(key,)][1] for key in what["ids"]]
            model.upsert([{**row, "items": [*row["items"], what["item"]]} for row in rows], instant)

    def wrong(self, rows: list[list[Any]]) -> str | None:
        twice = [key for key, _, items in rows if len(set(items)) < len(items)]
        return f"an element is twice in the lists {twice}" if twice else None


class Bank:
    """Money moves between accounts, two rows in one commit; there is always as much of it."""

    schema = pa.schema([("id", pa.string()), ("part", pa.string()), ("balance", pa.int64())])
    PARTITIONS, ACCOUNTS, BALANCE = 8, 24, 100

    def __init__(self, plan: Plan) -> None:
        """Nothing depends on the plan."""

    def first_rows(self) -> list[Json]:
        return [{"id": f"a{one}", "part": f"p{one % self.PARTITIONS}", "balance": self.BALANCE} for one in range(self.ACCOUNTS)]

    def step(self, writer: Writer) -> None:
        writer.until_done(lambda: self._transfer(writer))

    def last(self, writer: Writer) -> bool:
        return self._transfer(writer)

    def _transfer(self, writer: Writer) -> bool:
        instant, rows = writer.look()
        chance = writer.chance
        payer = rows[chance.choice([key for key in sorted(rows) if rows[key]["balance"] > 0])]
        near = [key for key in sorted(rows) if key != payer["id"] and (chance.random() < 0.2 or rows[key]["part"] == payer["part"])]
        paid = rows[chance.choice(near)]
        amount = chance.randint(1, payer["balance"])
        batch = writer.batch([{**payer, "balance": payer["balance"] - amount}, {**paid, "balance": paid["balance"] + amount}])
        return writer.attempt(
            "transfer",
            {"of": payer["id"], "to": paid["id"], "amount": amount},
            lambda metadata: writer.table.upsert(batch, expected_instant=instant, extra_metadata=metadata),
        )

    def apply(self, model: TableModel, kind: str, what: Json, instant: str) -> None:
        payer, paid = (model.stored[(what[role],)][1] for role in ("of", "to"))
        rows = [{**payer, "balance": payer["balance"] - what["amount"]}, {**paid, "balance": paid["balance"] + what["amount"]}]
        model.upsert(rows, instant)

    def wrong(self, rows: list[list[Any]]) -> str | None:
        total, debts = sum(balance for _, _, balance in rows), [key for key, _, balance in rows if balance < 0]
        if len(rows) != self.ACCOUNTS or total != self.ACCOUNTS * self.BALANCE:
            return f"{len(rows)} accounts hold {total}, not {self.ACCOUNTS * self.BALANCE}"
        return f"the accounts {debts} are below zero" if debts else None


WORKLOADS: dict[str, type[Workload]] = {"list_append": ListAppend, "bank": Bank, "mixed": Mixed}
