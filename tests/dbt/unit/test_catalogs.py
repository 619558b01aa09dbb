"""The profile's `catalog` and `catalogs`: what is accepted, shown and refused, and what relations make of a database."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import RelationType
from dbt_common.exceptions import DbtConfigError, DbtRuntimeError

from dbt.adapters.lakehouse import Plugin, impl
from dbt.adapters.lakehouse.relation import LakehouseRelation, relation_class
from dbt.adapters.lakehouse.surroundings import Surroundings


def credentials(**keys: Any) -> Any:
    return Plugin.credentials.from_dict({"schema": "s", **keys})


def test_places_are_absolute_and_secrets_are_not_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {"region": "eu", "secret_access_key": "hidden", "access_key_id": "hidden"}
    given = credentials(catalogs={"Prod": "wh", "lake": {"warehouse": "s3://b/k", "storage_options": options}})
    assert given.catalogs["prod"].given == {"warehouse": str(Path(tmp_path, "wh")), "storage_options": {}}
    assert given.catalogs["lake"].given == {"warehouse": "s3://b/k", "storage_options": options}
    shown = dict(given.connection_info())
    assert shown["catalogs"]["prod"] == str(Path(tmp_path, "wh"))
    assert "hidden" not in str(shown)
    assert "hidden" not in repr(given)
    assert (given.database, shown["database"]) == (None, "spark_catalog")


def test_the_own_name_is_the_database_of_all_that_the_project_has():
    given = credentials(catalog="Prod")
    assert (given.catalog, given.database) == ("prod", "prod")
    assert credentials(catalog="prod", database="prod").database == "prod"
    assert dict(given.connection_info())["catalog"] == "prod"


def test_a_profile_without_them_is_shown_without_them():
    assert not {"catalog", "catalogs"} & set(dict(credentials().connection_info()))


WRONG = [
    ({"catalogs": ["prod"]}, "catalogs is a mapping"),
    ({"catalogs": {"a b": "/x"}}, "catalogs: a catalog's name is a plain word, not 'a b'"),
    ({"catalogs": {"spark_catalog": "/x"}}, "cannot be called 'spark_catalog'"),
    ({"catalogs": {"a": "/x", "A": "/y"}}, "two called 'A'"),
    ({"catalog": "a", "catalogs": {"a": "/x"}}, "two called 'a'"),
    ({"catalogs": {"a": ""}}, "catalogs.a is a directory or an address"),
    ({"catalogs": {"a": {"path": "/x"}}}, "catalogs.a is a directory or an address"),
    ({"catalogs": {"a": {"warehouse": "/x", "storage_option": {}}}}, "no key 'storage_option'; did you mean 'storage_options'"),
    ({"catalogs": {"a": {"warehouse": "/x", "storage_options": {"region": "x"}}}}, "catalogs.a: storage_options belong to"),
    ({"catalogs": {"a": "ftp://x"}}, "catalogs.a: warehouse: 'ftp://' is none of"),
    ({"catalog": 1}, "catalog: a catalog's name is a plain word, not 1"),
    ({"catalog": "prod", "database": "other"}, "has no 'database'"),
]


@pytest.mark.parametrize(("keys", "message"), WRONG)
def test_wrong_catalogs_are_refused_by_name(keys, message):
    with pytest.raises(DbtConfigError, match=message):
        credentials(**keys)


KIND = relation_class(Surroundings(catalog="dev", attached=frozenset({"prod"})))


def test_relations_of_an_attached_catalog_have_names_of_three_parts():
    found = KIND.create(database="PROD", schema="a b", identifier="t", type=RelationType.Table)
    assert (str(found), found.database, found.is_attached, found.is_hudi) == ("prod.`a b`.t", "prod", True, True)
    assert str(found.incorporate(path={"identifier": "u"})) == "prod.`a b`.u"
    assert str(found.without_identifier()) == "prod.`a b`"
    assert found.include(database=False, schema=False).is_temporary
    assert found.matches(database="prod", schema="a b", identifier="t")
    assert isinstance(found, LakehouseRelation)
    assert isinstance(found, BaseRelation)


@pytest.mark.parametrize("database", ["dev", "DEV", "spark_catalog", None])
def test_relations_of_the_warehouse_itself_have_two(database):
    found = KIND.create(database=database, schema="s", identifier="t")
    assert (str(found), found.database, found.is_attached) == ("s.t", None, False)


def test_another_database_is_refused_with_those_that_there_are():
    with pytest.raises(DbtRuntimeError, match=r"s\.t: 'prd' is given as its database, and the profile knows dev, prod"):
        KIND.create(database="prd", schema="s", identifier="t")


def test_one_profile_gives_one_class():
    assert relation_class(Surroundings(catalog="dev", attached=frozenset({"prod"}))) is KIND
    assert LakehouseRelation.around == Surroundings()
    assert pickle.loads(pickle.dumps(Surroundings(attached=frozenset({"a"})))).attached == {"a"}


@pytest.mark.parametrize(("schemas", "told"), [([], "there is no schema in /p to read from"), (["a"], "/p (1 schema(s), to be read only)")])
def test_debug_says_whether_an_attached_warehouse_is_there(monkeypatch, schemas, told):
    lines = []
    monkeypatch.setattr(impl, "logger", SimpleNamespace(info=lines.append, warning=lines.append))
    impl.LakehouseAdapter._show_attached(SimpleNamespace(list_schemas=lambda _: schemas), "prod", "/p")
    assert [told in line for line in lines] == [True]
