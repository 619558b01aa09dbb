"""Stored functions of a warehouse."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.catalog.catalog import Catalog
from lakehouse_engine.catalog.functions import Functions, Language, Parameter, StoredFunction
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.errors import MetadataError, OptionError, RelationNotFoundError, SqlError
from lakehouse_engine.storage.local import LocalStorage

TWICE = StoredFunction(Language.SQL, (Parameter("x", "bigint", "1"),), "bigint", "x * 2", deterministic=False)
NAME = RelationName("shop", "twice")


@pytest.fixture
def functions(tmp_path: Path) -> Functions:
    return Functions(Catalog(LocalStorage(str(tmp_path / "warehouse"))))


def test_what_was_put_is_found_by_names_of_any_case(functions: Functions) -> None:
    assert functions.put(NAME, TWICE) == NAME
    assert functions.find(("shop", "twice")) == (NAME, TWICE)
    assert functions.find(("spark_catalog", "SHOP", "Twice")) == (NAME, TWICE)
    assert functions.find(("shop", "other")) is None
    assert functions.find(("twice",)) is None


def test_put_replaces_the_function_of_a_name_that_differs_by_case(functions: Functions) -> None:
    functions.put(NAME, TWICE)
    other = StoredFunction(Language.PYTHON, (), "int", "def f(): return 1", aggregate=True, entry_point="f")
    assert functions.put(RelationName("shop", "TWICE"), other) == NAME
    assert functions.names("shop") == [NAME]
    assert functions.find(("shop", "twice")) == (NAME, other)


def test_drop(functions: Functions) -> None:
    functions.put(NAME, TWICE)
    assert functions.drop(RelationName("shop", "TWICE"))
    assert functions.names("shop") == functions.names("nowhere") == []
    assert not functions.drop(NAME, if_exists=True)
    with pytest.raises(RelationNotFoundError, match=r"no function shop\.twice"):
        functions.drop(NAME)


def test_functions_go_with_their_schema_and_are_no_relations(tmp_path: Path) -> None:
    house = Lakehouse(str(tmp_path / "warehouse"))
    house.create_schema("shop")
    house.create_function("shop.twice", TWICE)
    assert house.functions("shop") == ["shop.twice"]
    assert not house.exists("shop.twice")
    house.create_table("shop.twice", schema=pa.schema([("id", pa.int64())]))
    assert house.tables("shop") == ["shop.twice"]
    house.drop_schema("shop", cascade=True)
    assert house.schemas() == []


@pytest.mark.parametrize("content", [b"", b"[]", b'{"language": "cobol"}', b'{"language": "sql", "parameters": [["x"]]}'])
def test_a_file_that_is_no_function_is_named(functions: Functions, content: bytes) -> None:
    functions.put(NAME, TWICE)
    functions.catalog.storage.overwrite("shop/.functions/twice.json", content)
    with pytest.raises(MetadataError, match=r"shop/\.functions/twice\.json"):
        functions.find(("shop", "twice"))


def test_functions_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SqlError, match="entry point"):
        StoredFunction(Language.PYTHON, (), "int", "def f(): return 1")
    with pytest.raises(SqlError, match="X is there twice"):
        StoredFunction(Language.SQL, (Parameter("x", "int"), Parameter("X", "int")), "int", "x")
    with pytest.raises(SqlError, match="backquote"):
        StoredFunction(Language.SQL, (Parameter("x`", "int"),), "int", "1")
    with pytest.raises(OptionError, match="a StoredFunction"):
        Lakehouse(str(tmp_path)).create_function("shop.f", "x * 2")  # type: ignore[arg-type]
