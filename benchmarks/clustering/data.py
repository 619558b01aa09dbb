"""Rows of the clustered table, what its queries must answer, and how many of its files hold an answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COLUMNS = ("customer_id", "product_id")
CUSTOMERS, PRODUCTS = 100_000, 10_000
_CUSTOMER, _PRODUCT = 31_337, 4_242
_WIDTH = (CUSTOMERS // 50, PRODUCTS // 50)

SUMS = "select count(*), sum(quantity), sum(customer_id), sum(product_id) from {t}"
QUERIES = {
    "one customer": f"{SUMS} where customer_id = {_CUSTOMER}",
    "one product": f"{SUMS} where product_id = {_PRODUCT}",
    "customers and products": f"{SUMS} where customer_id >= {_CUSTOMER} and customer_id < {_CUSTOMER + _WIDTH[0]}"
    f" and product_id >= {_PRODUCT} and product_id < {_PRODUCT + _WIDTH[1]}",
}
ALL = "all"


@dataclass(frozen=True)
class Made:
    """Input files of `rows` rows, and the answers of `QUERIES` and of `SUMS` over all of them."""

    folder: Path
    answers: dict[str, list[int]]


def made(folder: Path, rows: int, files: int) -> Made:
    """Parquet files of equal numbers of rows, made once from a seed: two random numbers to cluster by, a key, a price, a day, texts."""
    said, source = folder / "answers.json", folder / "rows"
    if not said.is_file():
        source.mkdir(parents=True, exist_ok=True)
        said.write_text(json.dumps(_write(source, rows, files)))
    return Made(source, json.loads(said.read_text()))


def _write(source: Path, rows: int, files: int) -> dict[str, list[int]]:
    import pyarrow.parquet as pq

    answers: dict[str, list[int]] = {}
    each = -(-rows // files)
    for number in range(files):
        table = batch(number * each, min(each, rows - number * each), number)
        pq.write_table(table, source / f"{number:05}.parquet", compression="zstd")
        for name, found in _answers(table).items():
            answers[name] = [one + other for one, other in zip(answers.get(name, [0] * 4), found, strict=True)]
    return answers


def batch(first: int, count: int, seed: int) -> Any:
    """Rows from number `first` on."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    chance = np.random.default_rng(seed)
    numbers = pc.utf8_lpad(pa.array(np.arange(first, first + count)).cast(pa.string()), 16, "0")
    text = pa.array(chance.integers(0, 2**62, count)).cast(pa.string())
    states = pa.DictionaryArray.from_arrays(pa.array(chance.integers(0, 5, count), pa.int8()), ["new", "paid", "sent", "held", "returned"])
    return pa.table(
        {
            "id": pc.binary_join_element_wise("key", numbers, "-"),
            "customer_id": chance.integers(0, CUSTOMERS, count),
            "product_id": chance.integers(0, PRODUCTS, count),
            "quantity": chance.integers(1, 100, count),
            "price": chance.random(count) * 1000,
            "day": pa.array(chance.integers(18_000, 20_000, count).astype(np.int32)).cast(pa.date32()),
            "state": states.cast(pa.string()),
            "comment": pc.binary_join_element_wise("a comment on number", text, " "),
        }
    )


def _answers(table: Any) -> dict[str, list[int]]:
    import pyarrow.compute as pc

    customer, product = pc.field("customer_id"), pc.field("product_id")
    both = (customer >= _CUSTOMER) & (customer < _CUSTOMER + _WIDTH[0]) & (product >= _PRODUCT) & (product < _PRODUCT + _WIDTH[1])
    asked = {ALL: None, "one customer": customer == _CUSTOMER, "one product": product == _PRODUCT, "customers and products": both}
    return {name: _sums(table if condition is None else table.filter(condition)) for name, condition in asked.items()}


def _sums(table: Any) -> list[int]:
    import pyarrow.compute as pc

    return [table.num_rows, *(int(pc.sum(table.column(name)).as_py() or 0) for name in ("quantity", "customer_id", "product_id"))]
