"""Sources whose meta names files: what they read, and what is refused by name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.config.validation import check_sources
from dbt.adapters.lakehouse.relation import LakehouseRelation, relation_class
from dbt.adapters.lakehouse.surroundings import Surroundings

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
    with pytest.raises(DbtConfigError, match=message) as caught:
        relation(source(meta))
    assert "source 'raw.orders' (models/s.yml): meta.lakehouse" in caught.value.msg


def test_a_profile_without_files_refuses_the_source():
    with pytest.raises(DbtConfigError, match=r"source 'raw.orders' .* \(allow_files: false\)"):
        relation(source(CSV), allow_files=False)
    assert str(relation(source(None), allow_files=False)) == "raw.orders_v2"


def test_a_source_that_reads_files_has_no_name_of_a_models_relation():
    model = SimpleNamespace(resource_type="model", schema="RAW", alias="orders_V2", name="m", original_file_path="m.sql", config={})
    with pytest.raises(DbtConfigError, match=r"reads files as RAW.orders_V2, which model 'm' \(m.sql\) builds"):
        check_sources([source(CSV)], {"m": model})
    check_sources([source(None)], {"m": model})
    check_sources([source(CSV, schema="other")], {"m": model})
