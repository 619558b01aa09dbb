"""Sources whose meta names files, and models that write some: what they read and write, and what is refused by name."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtConfigError, DbtDatabaseError

from dbt.adapters.lakehouse.bridge.exports import Owner, check_place
from dbt.adapters.lakehouse.config.external_config import ExternalConfig, check_places
from dbt.adapters.lakehouse.config.validation import check_all, check_sources
from dbt.adapters.lakehouse.relation import LakehouseRelation, relation_class
from dbt.adapters.lakehouse.surroundings import Surroundings
from dbt.adapters.lakehouse.warehouse_adapter import WarehouseAdapter
from tests.dbt.unit.checking import check_config

CSV = {"format": "csv", "path": "data/{name}.csv", "options": {"header": True}}


def source(of_table: Any, of_source: Any = None, **other: Any) -> Any:
    given = {"meta": {"lakehouse": of_table}, "source_meta": {"lakehouse": of_source}, "name": "orders", "identifier": "orders_v2"}
    names = {"source_name": "raw", "schema": "raw", "database": None, "original_file_path": "models/s.yml", "resource_type": "source"}
    return SimpleNamespace(**{**names, **given, "quoting_dict": {}, "catalog_name": None, **other})


def relation(one: Any, **around: Any) -> LakehouseRelation:
    kind = relation_class(Surroundings("/project", **around))
    return kind.create_from(SimpleNamespace(quoting={}), one)


def test_a_source_renders_to_the_call_that_reads_its_files_below_the_project():
    found = relation(source(CSV))
    assert str(found) == "read_files('/project/data/orders.csv', format => 'csv', header => 'true')"
    assert (found.schema, found.identifier) == ("raw", "orders_v2")
    assert found.replace(limit=0).render_limited() == f"(select * from {found} where false limit 0)"


def test_a_table_adds_to_what_its_source_says():
    found = relation(source({"path": "/abs/{identifier}/*", "schema": "a int", "options": {"sep": ";"}}, CSV))
    assert str(found) == "read_files('/abs/orders_v2/*', format => 'csv', schema => 'a int', header => 'true', sep => ';')"


@pytest.mark.parametrize("path", ["s3://b/k/*", "file:/x", "hdfs://h/k"])
def test_addresses_stay_as_they_are(path):
    assert f"'{path}'" in str(relation(source({**CSV, "path": path})))


def test_a_source_without_files_is_a_table():
    assert str(relation(source(None))) == "raw.orders_v2"
    assert str(relation(source(None, CSV))) == "raw.orders_v2"
    assert relation(source(None)).files is None


REFUSED = [
    ({**CSV, "format": "cvs"}, "format 'cvs' is not one of csv, json, parquet, orc, text; did you mean 'csv'"),
    ({"path": "x"}, "'format' is missing"),
    ({"format": "csv"}, "'path' is missing"),
    ({"format": "csv", "path": ""}, "'path' is missing"),
    ({**CSV, "option": {}}, "no key 'option'; did you mean 'options'"),
    ({**CSV, "options": {"heder": True}}, "csv has no option 'heder'; did you mean 'header'"),
    ({**CSV, "options": {"header": [1]}}, "has no plain value"),
    ({**CSV, "options": "header"}, "'options' is a mapping"),
    ({**CSV, "schema": ["a"]}, "'schema' is a text"),
    ("csv", "is a mapping with format, path, schema, options"),
]


@pytest.mark.parametrize(("meta", "message"), REFUSED)
def test_wrong_meta_is_refused_with_the_sources_name(meta, message):
    found = relation(source(meta))
    assert re.search(message, found.wrong)
    assert found.wrong.startswith("source 'raw.orders' (models/s.yml): meta.lakehouse")
    assert found.files is None


def test_a_profile_without_files_refuses_the_source():
    assert re.search(r"source 'raw.orders' .* \(allow_files: false\)", relation(source(CSV), allow_files=False).wrong)
    assert str(relation(source(None), allow_files=False)) == "raw.orders_v2"


def test_wrong_sources_are_refused_together():
    adapter = SimpleNamespace(Relation=relation_class(Surroundings("/project")), config=SimpleNamespace(quoting={}))
    with pytest.raises(DbtConfigError) as caught:
        WarehouseAdapter.know_files(adapter, [source("csv", name="a"), source(CSV, name="b"), source({**CSV, "format": "cvs"}, name="c")])
    assert [line.split(" (")[0] for line in caught.value.msg.splitlines()] == ["source 'raw.a'", "source 'raw.c'"]


def test_a_source_that_reads_files_has_no_name_of_a_models_relation():
    model = SimpleNamespace(resource_type="model", schema="RAW", alias="orders_V2", name="m", original_file_path="m.sql", config={})
    with pytest.raises(DbtConfigError, match=r"reads files as RAW.orders_V2, which model 'm' \(m.sql\) builds"):
        check_sources([source(CSV)], {"m": model})
    check_sources([source(None)], {"m": model})
    check_sources([source(CSV, schema="other")], {"m": model})


def external(**configs: Any) -> dict[str, Any]:
    return {"materialized": "external", "location": "out/x", **configs}


WRONG = [
    ({"location": None}, "needs 'location'"),
    ({"location": "s3://b/k"}, "is an address"),
    ({"location": "out/*"}, "as a pattern"),
    ({"location": "out/x.csv"}, "leave the ending out"),
    ({"format": "cvs"}, "format 'cvs' is not one of parquet, csv, json; did you mean 'csv'"),
    ({"format": "orc"}, "format 'orc' is not one of"),
    ({"format": "csv", "options": {"seq": ";"}}, "csv has no option 'seq'; did you mean 'sep'"),
    ({"unique_key": "id"}, "'unique_key' has no effect"),
    ({"table_type": "mor"}, "'table_type' is for tables"),
    ({"hoodie": {"hoodie.index.type": "BLOOM"}}, "'hoodie' is for tables"),
    ({"audit": True}, "external"),
]


@pytest.mark.parametrize(("configs", "message"), WRONG)
def test_wrong_configs_of_an_external_model_are_refused_by_name(configs, message):
    with pytest.raises(DbtConfigError, match=message) as caught:
        check_config("model 'm'", external(**configs), ["location", "format", "options"])
    assert "model 'm'" in caught.value.msg


def test_configs_of_an_external_model_are_known_there_and_nowhere_else():
    check_config("m", external(format="CSV", partition_by="a", options={"sep": ";"}), ["location", "format", "options"])
    with pytest.raises(DbtConfigError, match="'location' has no meaning here: it belongs to materialized 'external'"):
        check_config("m", {"materialized": "table", "location": "x"}, ["location"])


def test_a_location_is_below_the_project():
    found = ExternalConfig.of("m", external(location="../x/./y", partition_by=["a"], options={"compression": "none"}), "/p/q")
    assert found == ExternalConfig("m", "/p/x/y", "parquet", ("a",), (("compression", "none"),))


def node(name: str, location: str) -> Any:
    return SimpleNamespace(resource_type="model", name=name, original_file_path=f"{name}.sql", config=external(location=location))


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("out/x", "out/../out/x", "are one, or in each other"),
        ("out", "out/x", "are one, or in each other"),
        ("out/x", "/wh/s/t", "the warehouse /wh are in each other"),
        ("out/x", "/", "the warehouse /wh are in each other"),
        ("out/x", "/prod/s", "the warehouse /prod are in each other"),
    ],
)
def test_external_models_write_neither_over_each_other_nor_over_the_warehouse(first, second, message):
    with pytest.raises(DbtConfigError, match=message):
        check_places({"a": node("a", first), "b": node("b", second)}, "/project", ["/wh", "/prod"], allow_files=True)


def test_external_models_beside_each_other_are_fine_where_files_are_allowed():
    nodes = {"a": node("a", "out/x"), "b": node("b", "out/xy")}
    check_places(nodes, "/project", ["s3://b/wh"], allow_files=True)
    with pytest.raises(DbtConfigError, match=r"model 'a' .* \(allow_files: false\)"):
        check_places(nodes, "/project", ["/wh"], allow_files=False)


def test_a_place_is_the_models_own_or_empty(tmp_path):
    place, mine = tmp_path / "x", Owner("m", "s.m in /wh")
    check_place(str(place), mine)
    place.mkdir()
    check_place(str(place), mine)
    (place / "theirs.txt").write_text("")
    with pytest.raises(DbtDatabaseError, match="written by somebody else"):
        check_place(str(place), mine)
    (place / "_lakehouse.json").write_text('{"model": "m"}')
    check_place(str(place), mine)
    with pytest.raises(DbtDatabaseError, match="written by m,"):
        check_place(str(place), Owner("other", "s.m in /wh"))
    (tmp_path / "link").symlink_to(place)
    with pytest.raises(DbtDatabaseError, match="is no folder"):
        check_place(str(tmp_path / "link"), mine)


def test_another_target_does_not_replace_the_files_of_a_model(tmp_path):
    production, ci = Owner("m", "shop.m in s3://b/wh"), Owner("m", "ci.m in /ci")
    production.write(str(tmp_path))
    check_place(str(tmp_path), production)
    with pytest.raises(DbtDatabaseError, match=r"has the files of shop.m in s3://b/wh, and this run is of ci.m in /ci: give each target"):
        check_place(str(tmp_path), ci)


def test_findings_of_all_checks_are_raised_as_one():
    def refuse(text: str) -> None:
        raise DbtConfigError(text)

    with pytest.raises(DbtConfigError) as caught:
        check_all(lambda: refuse("a"), lambda: None, lambda: refuse("b\nc"))
    assert caught.value.msg == "a\nb\nc"


def test_an_external_model_without_a_location_does_not_hide_the_findings_about_others():
    check_places({"m": node("m", None)}, "/project", "/project/lakehouse", allow_files=True)
