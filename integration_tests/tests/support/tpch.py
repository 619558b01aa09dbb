"""The feed: TPC-H data as three batches of changes, in the way of TPC-H's refresh functions (new orders, deleted orders) and with what
real feeds add: changed orders, changes that arrive late, changes that arrive twice, a column that is new in the third batch.

`tpchgen-cli` writes the tables once into `.cache/tpch` of the repository; everything else is derived with Arrow and depends on the
keys only, so that every run sees the same rows.

    1   all orders up to May 1998
    2   the orders of June; one in ten open orders of the year is filled; one in fifty of the last year is deleted
    3   the orders of July and August; more changes and deletions; a fifth of the orders changed before is changed again by a record
        that is older than the stored one; half of the deleted ones come back; orders have a `channel`
"""

from __future__ import annotations

import datetime as dt
import fcntl
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

REPOSITORY = Path(__file__).resolve().parents[3]
SCALE_FACTOR = "0.1"
CACHE = REPOSITORY / ".cache" / "tpch" / f"sf{SCALE_FACTOR}"
TABLES = ("region", "nation", "customer", "orders", "lineitem")
BATCHES = (1, 2, 3)
LOADED = {
    1: dt.datetime(1998, 6, 1, tzinfo=dt.timezone.utc),
    2: dt.datetime(1998, 7, 1, tzinfo=dt.timezone.utc),
    3: dt.datetime(1998, 8, 3, tzinfo=dt.timezone.utc),
}
TIME = pa.timestamp("us", tz="UTC")


def tables() -> Path:
    """The folder with `<table>.parquet`, generated on the first call on this machine."""
    finished = CACHE / "finished"
    with _only_one():
        if not finished.exists():
            program = Path(sysconfig.get_path("scripts"), "tpchgen-cli")
            command = [str(program), "parquet", "-s", SCALE_FACTOR, "-T", ",".join(TABLES), "-o", str(CACHE), "--overwrite", "--quiet"]
            subprocess.run(command, check=True)
            finished.touch()
    return CACHE


@contextmanager
def _only_one() -> Iterator[None]:
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def read(name: str) -> pa.Table:
    """A generated table; its strings as plain ones, its columns nullable."""
    table = pq.read_table(tables() / f"{name}.parquet")
    plain = [pa.field(field.name, pa.string() if pa.types.is_string_view(field.type) else field.type) for field in table.schema]
    return table.cast(pa.schema(plain))


class Feed:
    """Writes batches into a landing folder: `orders` and `lineitem` get a file each, `customer` is replaced.

    `archive` keeps each extract of the customers, for the results that are computed from all of them.
    """

    def __init__(self, landing: Path, archive: Path) -> None:
        self.landing = landing
        self.archive = archive
        self._orders, self._lineitem, self._customer = read("orders"), read("lineitem"), read("customer")

    def deliver(self, batch: int) -> None:
        changes = order_changes(self._orders, batch)
        self.write("orders", batch, changes)
        self.write("lineitem", batch, line_changes(self._lineitem, changes))
        extract = customer_extract(self._customer, batch)
        shutil.rmtree(self.landing / "customer", ignore_errors=True)
        self.write("customer", batch, extract)
        self.archive.mkdir(parents=True, exist_ok=True)
        pq.write_table(extract.append_column("batch", pa.array([batch] * len(extract), pa.int32())), self.archive / f"{batch}.parquet")

    def write(self, table: str, batch: int, rows: pa.Table) -> None:
        """A file of the landing folder."""
        folder = self.landing / table
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, folder / f"batch-{batch}.parquet")


def order_changes(orders: pa.Table, batch: int) -> pa.Table:
    """The changes of one batch: the columns of TPC-H's orders, `op`, `changed_at` and `loaded_at`; from the third on `channel`."""
    if batch == 1:
        return _changed(_placed(orders, None, "1998-06-01"), "I", None, batch)
    if batch == 2:
        return pa.concat_tables(_second(orders))
    return _with_channel(pa.concat_tables(_third(orders)))


def _second(orders: pa.Table) -> list[pa.Table]:
    followed = _placed(orders, "1998-01-01", "1998-06-01")
    filled = _share(followed, 10, 0)
    repeated = _share(followed, 30, 0)
    return [
        _changed(_placed(orders, "1998-06-01", "1998-07-01"), "I", None, 2),
        _changed(filled, "U", "1998-06-15", 2, status="F"),
        # Older states of orders that are filled, after the newer ones in the same file; and some of the newer ones once more.
        _changed(repeated, "U", "1998-06-10", 2, status="P"),
        _changed(_share(followed, 90, 0), "U", "1998-06-15", 2, status="F"),
        _changed(_share(_placed(orders, "1997-06-01", "1998-06-01"), 50, 1), "D", "1998-06-20", 2),
    ]


def _third(orders: pa.Table) -> list[pa.Table]:
    followed = _placed(orders, "1998-01-01", "1998-06-01")
    last_year = _placed(orders, "1997-06-01", "1998-06-01")
    june = _placed(orders, "1998-06-01", "1998-07-01")
    return [
        _changed(_placed(orders, "1998-07-01", None), "I", None, 3),
        _changed(_share(june, 5, 2), "U", "1998-07-10", 3, status="F"),
        # Late: older than the change of the second batch, which stays.
        _changed(_share(followed, 50, 0), "U", "1998-05-31", 3, status="P"),
        _changed(_share(followed, 50, 10), "U", "1998-07-12", 3, status="P"),
        # Changed and deleted within one batch.
        _changed(_share(last_year, 50, 2), "U", "1998-07-13", 3, status="P"),
        _changed(_share(last_year, 50, 2), "D", "1998-07-14", 3),
        _changed(_share(last_year, 100, 1), "I", "1998-07-20", 3, status="O"),
    ]


def line_changes(lineitem: pa.Table, changes: pa.Table) -> pa.Table:
    """The lines of every changed order, as often as the order is in `changes`, with the order's `op` and times."""
    about = changes.select(["o_orderkey", "o_orderstatus", "op", "changed_at", "loaded_at"])
    joined = lineitem.join(about, "l_orderkey", "o_orderkey", join_type="inner")
    filled = pc.equal(joined["o_orderstatus"], "F")
    shipped = pc.if_else(pc.equal(joined["op"], "U"), pc.if_else(filled, "F", "O"), joined["l_linestatus"])
    position = joined.schema.get_field_index("l_linestatus")
    lines = joined.set_column(position, "l_linestatus", shipped).drop_columns(["o_orderstatus"])
    return lines.sort_by([("l_orderkey", "ascending"), ("l_linenumber", "ascending"), ("changed_at", "descending")])


def customer_extract(customer: pa.Table, batch: int) -> pa.Table:
    """All customers at the time of a batch: some change, some leave, some of those return."""
    if batch == 1:
        return customer
    keys = customer["c_custkey"]
    moved, gone = _rest(keys, 20, batch), _rest(keys, 200, batch + 10)
    raised = pc.add(customer["c_acctbal"], pa.scalar(Decimal(f"{batch}.25"), pa.decimal128(15, 2))).cast(pa.decimal128(15, 2))
    balance = pc.if_else(moved, raised, customer["c_acctbal"])
    segment = pc.if_else(_rest(keys, 40, batch), "MACHINERY", customer["c_mktsegment"])
    changed = customer.set_column(5, "c_acctbal", balance).set_column(6, "c_mktsegment", segment)
    return changed.filter(pc.invert(gone))


def _placed(orders: pa.Table, since: str | None, before: str | None) -> pa.Table:
    """Orders placed from `since` (inclusive) to `before` (exclusive)."""
    day = orders["o_orderdate"]
    kept = pc.is_valid(day)
    kept = pc.and_(kept, pc.greater_equal(day, dt.date.fromisoformat(since))) if since else kept
    kept = pc.and_(kept, pc.less(day, dt.date.fromisoformat(before))) if before else kept
    return orders.filter(kept)


def _share(orders: pa.Table, of: int, rest: int) -> pa.Table:
    """One in `of` orders, spread evenly; different shares of a common `of` have no order in common."""
    return orders.filter(_rest(orders["o_orderkey"], of, rest))


def _rest(keys: pa.ChunkedArray, of: int, rest: int) -> pa.ChunkedArray:
    # Order keys are sparse (8 of 32 are used): without the first steps some rests would never occur.
    mixed = pc.add(pc.shift_right(keys, 5), pc.bit_wise_and(keys, 31))
    return pc.equal(pc.subtract(mixed, pc.multiply(pc.divide(mixed, of), of)), rest)


def _changed(orders: pa.Table, op: str, day: str | None, batch: int, status: str | None = None) -> pa.Table:
    """Orders as changes; without `day` they changed when they were placed."""
    start = orders["o_orderdate"] if day is None else pa.scalar(dt.date.fromisoformat(day))
    moment = start.cast(pa.timestamp("us"))
    seconds = pc.bit_wise_and(orders["o_orderkey"], 0xFFFF)
    changed_at = pc.assume_timezone(pc.add(moment, pc.multiply(seconds, 1_000_000).cast(pa.duration("us"))), "UTC")
    if status is not None:
        position = orders.schema.get_field_index("o_orderstatus")
        orders = orders.set_column(position, "o_orderstatus", pa.array([status] * len(orders), pa.string()))
    return (
        orders.append_column("op", pa.array([op] * len(orders), pa.string()))
        .append_column("changed_at", changed_at)
        .append_column("loaded_at", pa.array([LOADED[batch]] * len(orders), TIME))
    )


def _with_channel(changes: pa.Table) -> pa.Table:
    web = pc.equal(pc.bit_wise_and(changes["o_orderkey"], 1), 0)
    return changes.append_column("channel", pc.if_else(web, "web", pa.scalar(None, pa.string())))

