"""What packages find: a database of the target, relations that are made with it, and the adapter's macros in front of theirs."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from dbt.adapters.factory import AdapterContainer
from dbt_common.exceptions import DbtConfigError, DbtRuntimeError

from dbt.adapters.lakehouse import Plugin
from dbt.adapters.lakehouse.config import dispatch
from dbt.adapters.lakehouse.config.dispatch import ask_adapter_first, ask_databricks_last
from dbt.adapters.lakehouse.relation import LakehouseRelation
from tests.dbt.unit.checking import check_config


def test_the_target_has_the_one_catalog_as_its_database_and_the_profile_none():
    credentials = Plugin.credentials.from_dict({"schema": "s"})
    assert dict(credentials.connection_info())["database"] == "spark_catalog"
    assert credentials.database is None


@pytest.mark.parametrize("database", ["spark_catalog", "SPARK_CATALOG", None])
def test_a_relation_of_the_catalog_has_no_database(database):
    relation = LakehouseRelation.create(database=database, schema="s", identifier="t")
    assert (relation.database, str(relation)) == (None, "s.t")
    assert relation.matches(schema="s", identifier="t")


def test_a_relation_of_another_database_is_refused():
    with pytest.raises(DbtRuntimeError, match="database"):
        LakehouseRelation.create(database="elsewhere", schema="s", identifier="t")


KINDS = [("table", True), ("materialized_view", True), ("view", False), ("function", False), (None, None)]


@pytest.mark.parametrize(("kind", "is_hudi"), KINDS)
def test_what_is_stored_is_of_hudi(kind, is_hudi):
    relation = LakehouseRelation.create(schema="s", identifier="t", type=kind and LakehouseRelation.get_relation_type(kind))
    assert relation.is_hudi is is_hudi
    assert relation.incorporate(type=LakehouseRelation.get_relation_type("view")).is_hudi is False


def orders(*given: tuple[str, list[str]]) -> dict[str, list[str]]:
    config = SimpleNamespace(dispatch=[{"macro_namespace": name, "search_order": order} for name, order in given], project_name="shop")
    ask_adapter_first(config)
    return {entry["macro_namespace"]: entry["search_order"] for entry in config.dispatch}


def test_macros_of_the_adapter_stand_before_those_of_a_package_and_behind_the_projects():
    assert orders()["audit_helper"] == ["shop", "dbt", "audit_helper"]


def test_an_order_that_a_project_gives_is_kept_around_them():
    given = ("dbt_utils", ["spark_utils", "dbt_utils"]), ("automate_dv", ["mine", "automate_dv"])
    found = orders(("audit_helper", ["mine", "shop", "audit_helper"]), *given)
    assert found["audit_helper"] == ["mine", "shop", "dbt", "audit_helper"]
    assert found["dbt_utils"] == ["spark_utils", "dbt", "dbt_utils"]
    assert found["automate_dv"] == ["mine", "automate_dv"]


def test_an_order_that_names_the_adapters_macros_or_leaves_the_package_out():
    found = orders(("elementary", ["dbt", "shop", "elementary"]), ("dbt_expectations", ["mine"]))
    assert found["elementary"] == ["dbt", "shop", "elementary"]
    assert found["dbt_expectations"] == ["mine", "dbt"]


def test_a_profile_alone_has_no_macros_to_find():
    profile = SimpleNamespace(profile_name="shop")
    ask_adapter_first(profile)
    assert vars(profile) == {"profile_name": "shop"}


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """The prefixes of macros that dbt looks for, with the plugins loaded as for a profile of this type."""
    loaded = AdapterContainer()
    loaded.load_plugin("lakehouse")
    monkeypatch.setattr(dispatch, "FACTORY", loaded)
    return lambda: loaded.get_adapter_type_names("lakehouse")


def test_macros_for_databricks_stand_behind_those_for_spark_and_no_package_of_macros_is_lost(plugins):
    paths = dispatch.FACTORY.get_include_paths("lakehouse")
    for _ in range(2):
        ask_databricks_last()
        assert plugins() == ["lakehouse", "spark", "databricks"]
    assert dispatch.FACTORY.get_include_paths("lakehouse") == paths
    dispatch.FACTORY.load_plugin("lakehouse")  # as each command of one process does


def test_without_plugins_there_is_nothing_to_look_for(monkeypatch):
    monkeypatch.setattr(dispatch, "FACTORY", AdapterContainer())
    ask_databricks_last()
    assert dispatch.FACTORY.plugins == {}


def test_a_config_without_a_value_says_nothing():
    check_config("m", {"file_format": None}, ["file_format"])
    with pytest.raises(DbtConfigError, match="file_format"):
        check_config("m", {"file_format": "delta"}, ["file_format"])


def test_indexes_of_a_package_for_postgres_are_no_slip():
    check_config("m", {"indexes": [{"columns": ["a"]}]}, ["indexes"], strict=False)
    with pytest.raises(DbtConfigError, match="did you mean 'index'"):
        check_config("m", {"indexx": "bloom"}, ["indexx"], strict=False)
