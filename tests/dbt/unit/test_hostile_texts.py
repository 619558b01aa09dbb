"""Hostile texts in every argument of every run-operation, and in every config of a model that takes text: without Spark.

Each is refused with one of dbt's errors, or taken as the text that it is. A canary table, a file beside the warehouse and a secret of the
environment say whether it did more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dbt_common.exceptions import DbtConfigError, DbtRuntimeError

from dbt.adapters.lakehouse.bridge.outcomes import dbt_error
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.config.model_config import ModelConfig, strategy_findings
from dbt.adapters.lakehouse.config.service_config import SERVICES, service_options
from dbt.adapters.lakehouse.operations import check_arguments, operate
from dbt.adapters.lakehouse.reading import travel
from dbt.adapters.lakehouse.relation import LakehouseRelation
from dbt.adapters.lakehouse.writing.selection import select_tables
from dbt.adapters.lakehouse.writing.writes import TableWriter
from dbt.include import lakehouse
from lakehouse_engine.catalog.names import RelationName
from tests.dbt.unit.checking import check_config, check_options
from tests.support.hostile_texts import PAYLOADS, filled_in
from tests.support.untouched import files_below

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "part": ["a", "b"], "note": ["kept", "too"]})
SECRET = "the-canary-sings"
OPERATIONS = Path(lakehouse.PACKAGE_PATH) / "macros" / "operations"
SIGNATURE = re.compile(r"\{% macro (\w+)\(([^)]*)\) %\}")
NODES = {
    f"model.p.{name}": {
        "name": name,
        "unique_id": f"model.p.{name}",
        "resource_type": "model",
        "schema": "s",
        "alias": name,
        "tags": ["mine"],
        "config": {"materialized": "incremental", "unique_key": "id"},
    }
    for name in ("orders", "canary")
}


def operations() -> Iterator[tuple[str, str]]:
    """Every run-operation and each of its arguments, as the macros have them."""
    for file in sorted(OPERATIONS.glob("*.sql")):
        name, given = SIGNATURE.findall(file.read_text(encoding="utf-8"))[0]
        if name != "lakehouse_operation":
            yield from ((name, part.split("=")[0].strip()) for part in given.split(","))


class House:
    """A warehouse with a table to aim at and a canary, beside a folder that nobody may touch."""

    def __init__(self, root: Path) -> None:
        self.root, self.outside = root, root / "outside"
        self.outside.mkdir()
        (self.outside / "secret.txt").write_text(SECRET)
        self.warehouse = Warehouse(str(root / "lakehouse"), options={"lakehouse.task.threads": 1})
        for name in ("orders", "canary"):
            self.writer("s", name, {"materialized": "incremental", "unique_key": "id"}).create(ROWS)
        self.rows = self.read("orders")

    def writer(self, schema: str, name: str, config: Mapping[str, Any]) -> TableWriter:
        node = {"name": name, "unique_id": f"model.p.{name}", "resource_type": "model", "config": config}
        return TableWriter(self.warehouse, schema, name, ModelConfig.from_node(node, {}))

    def read(self, name: str) -> list[dict[str, Any]]:
        return sorted(self.warehouse.table("s", name).to_arrow().to_pylist(), key=lambda row: row["id"])

    def around(self, *apart: str) -> dict[str, bytes]:
        """Every file but those below the folders `apart` of the warehouse."""
        places = [f"{self.root}/lakehouse/{place}/" for place in apart]
        return {path: content for path, content in files_below(self.root).items() if not any(path.startswith(place) for place in places)}

    @contextmanager
    def guarded(self, *apart: str) -> Iterator[None]:
        """What happens changes nothing elsewhere, and its errors are dbt's and tell no secret."""
        before = self.around(*apart)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - which ones may come is what is asked
            check_told(dbt_error(error))
        assert self.around(*apart) == before


def check_told(error: Exception) -> None:
    assert isinstance(error, DbtRuntimeError), repr(error)
    assert str(error).strip()
    assert SECRET not in str(error)


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setenv("CANARY_SECRET", SECRET)
    return House(tmp_path)


def call(house: House, operation: str, argument: str, text: str) -> str:
    ways: dict[str, Any] = {"model": "orders", "relation": None, "tag": None, "all": False}
    arguments: dict[str, Any] = {}
    if argument in ways:
        ways = {**dict.fromkeys(ways), argument: text}
    else:
        arguments[argument] = text
    check_arguments(operation, (*ways, *arguments), {})
    tables = select_tables(NODES, ways, lambda *name: house.warehouse.kind(*name) == "table", house.warehouse.options)
    report = operate(house.warehouse, operation, tables, arguments)
    assert SECRET not in report.text
    report.check()
    return report.text


def test_every_operation_has_its_arguments_tried() -> None:
    found = dict(operations())
    assert {"savepoint", "restore", "rollback", "compact", "clean", "archive", "repair", "verify", "history"} <= set(found)
    assert len(PAYLOADS) >= 50


@pytest.mark.parametrize(("operation", "argument"), sorted(operations()))
def test_an_operation_refuses_a_hostile_argument_or_takes_it_as_text(house: House, operation: str, argument: str) -> None:
    for payload in PAYLOADS.values():
        with house.guarded("s/orders"):
            call(house, operation, argument, filled_in(payload, house.outside))
    assert house.read("orders") == house.rows
    call(house, "verify", "quick", "false")


def test_a_savepoint_is_called_and_commented_what_it_was_given(house: House) -> None:
    kept = []
    for number, payload in enumerate(PAYLOADS.values()):
        text = filled_in(payload, house.outside)
        try:
            call(house, "savepoint", "comment", text)
        except DbtRuntimeError:
            continue
        made = list(house.warehouse.table("s", "orders").savepoints())
        assert [one.comment for one in made] == [text]
        call(house, "delete_savepoint", "savepoint", made[0].instant)
        kept.append(number)
    assert len(kept) > len(PAYLOADS) // 2


TEXTS = ("unique_key", "ordering_fields", "precombine_field", "partition_by", "merge_update_columns", "merge_exclude_columns")
CHOICES = ("table_type", "index", "on_schema_change", "on_duplicate_source_keys", "incremental_strategy", "audit")
FLAGS = ("hive_style_partitioning",)
NESTED = [(service, key) for service, keys in SERVICES.items() for key in keys]
OPTIONS = ("hoodie.table.name", "hoodie.clean.policy", "hoodie.parquet.compression.codec", "hoodie.index.type", "hoodie.base.path")


def write(house: House, config: Mapping[str, Any], schema: str = "s", name: str = "made") -> None:
    """What dbt does with a model: its config is checked when the project is parsed, and again when it writes."""
    given = {"materialized": "incremental", "unique_key": "id", **config}
    check_config(f"model '{name}'", given, list(config))
    assert not list(strategy_findings(name, given, ()))
    check_options({**service_options(given), **(given.get("hoodie") or {})})
    writer = house.writer(schema, name, given)
    writer.replace(ROWS, existing=None)
    writer.replace(ROWS, existing="table")


def refused_all(house: House, attempt: Callable[[str], object], *apart: str) -> None:
    for payload in PAYLOADS.values():
        with house.guarded(*apart):
            attempt(filled_in(payload, house.outside))


@pytest.mark.parametrize("key", [*TEXTS, *CHOICES, *FLAGS])
def test_a_config_of_a_model_is_refused_or_means_a_column(house: House, key: str) -> None:
    refused_all(house, lambda text: write(house, {key: text}), "s/made")
    refused_all(house, lambda text: write(house, {key: [text, "id"]}), "s/made")


@pytest.mark.parametrize(("service", "key"), NESTED)
def test_a_config_of_a_service_is_refused_or_an_option(house: House, service: str, key: str) -> None:
    refused_all(house, lambda text: write(house, {"table_type": "mor", service: {key: text}}), "s/made")
    refused_all(house, lambda text: write(house, {"table_type": "mor", service: {text: 1}}), "s/made")


@pytest.mark.parametrize("key", OPTIONS)
def test_a_hoodie_option_is_refused_or_kept_as_text(house: House, key: str) -> None:
    refused_all(house, lambda text: write(house, {"hoodie": {key: text}}), "s/made")
    refused_all(house, lambda text: write(house, {"hoodie": {text: "1"}}), "s/made")


@pytest.mark.parametrize("key", ["a config", "hoodie", "compaction", "grants"])
def test_a_hostile_key_or_shape_is_refused_by_name(house: House, key: str) -> None:
    for payload in PAYLOADS.values():
        text = filled_in(payload, house.outside)
        config = {text: "x"} if key == "a config" else {key: text or "x"}
        with pytest.raises((DbtConfigError, DbtRuntimeError)):
            write(house, config)


def test_a_schema_or_alias_is_a_folder_of_the_warehouse_or_refused(house: House) -> None:
    root = Path(house.warehouse.root)
    for payload in PAYLOADS.values():
        text = filled_in(payload, house.outside)
        before = house.around()
        for schema, name in ((text, "made"), ("s", text)):
            with house.guarded(text, f"s/{text}"):
                write(house, {}, schema, name)
        new = {Path(path).relative_to(root) for path in set(house.around()) - set(before)}
        assert all(path.parts[0] == text or path.parts[:2] == ("s", text) for path in new), text
    assert house.read("canary") == house.rows


@pytest.mark.parametrize("of", ["at", "begin", "end"])
def test_a_point_in_history_is_an_instant_or_refused(house: House, of: str) -> None:
    relation = LakehouseRelation.create(schema="s", identifier="orders")
    given: dict[str, Callable[[str], str]] = {
        "at": lambda text: travel.at(house.warehouse, relation, text),
        "begin": lambda text: travel.changes(house.warehouse, relation, text),
        "end": lambda text: travel.changes(house.warehouse, relation, "earliest", text),
    }

    def attempt(text: str) -> None:
        assert re.fullmatch(r"[\w.\s(),]*('[\w.]+'[\w.\s(),]*)+", given[of](text)), "a literal of something else than an instant"

    refused_all(house, attempt)


def test_comments_are_kept_as_they_are(house: House) -> None:
    for payload in PAYLOADS.values():
        text = filled_in(payload, house.outside)
        with house.guarded("s/orders", "s/.docs"):
            house.warehouse.set_comments("s", "orders", text, {"note": text})
        kept = house.warehouse.catalog.comments(RelationName("s", "orders"))
        assert (kept.comment or "", kept.columns.get("note", "")) == (text, text)
    assert house.read("orders") == house.rows


def test_the_guard_sees_what_it_is_there_for(house: House) -> None:
    with pytest.raises(AssertionError), house.guarded("s/orders"):
        (house.outside / "touched").touch()
    with pytest.raises(AssertionError), house.guarded("s/orders"):
        house.warehouse.drop("s", "canary")
    with pytest.raises(AssertionError), house.guarded("s/orders"):
        raise DbtRuntimeError(SECRET)
    with pytest.raises(AssertionError), house.guarded("s/orders"):
        raise KeyError("x")
