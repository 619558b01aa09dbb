"""dbt-tests-adapter: docs, catalog, relation types. Statistics of tables come from the engine."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.basic.expected_catalog import base_expected_catalog, expected_references_catalog, no_stats
from dbt.tests.adapter.basic.test_docs_generate import BaseDocsGenerate, BaseDocsGenReferences
from dbt.tests.adapter.basic.test_get_catalog_for_single_relation import BaseGetCatalogForSingleRelation
from dbt.tests.adapter.catalog import files
from dbt.tests.adapter.catalog.relation_types import CatalogRelationTypes

from dbt.adapters.lakehouse.reading.catalog import STATISTICS


class AnyValue:
    def __eq__(self, other: object) -> bool:
        return other is not None

    __hash__ = None  # type: ignore[assignment]


def table_stats() -> dict[str, Any]:
    """Statistics of a table without key or partitions."""
    found = {
        name: {"id": name, "label": label, "value": AnyValue(), "description": description, "include": True}
        for name, (label, description) in STATISTICS.items()
        if name not in ("record_key", "partition_by")
    }
    return {**found, "has_stats": {**no_stats()["has_stats"], "value": True}}


class Docs:
    @pytest.fixture(scope="class")
    def profile_user(self):
        return None

    def types(self) -> dict[str, Any]:
        return {
            "role": None,
            "id_type": "bigint",
            "text_type": "string",
            "time_type": "timestamp",
            "view_type": "view",
            "table_type": "table",
            "model_stats": no_stats(),
            "seed_stats": table_stats(),
        }


class TestDocsGenerate(Docs, BaseDocsGenerate):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project):
        return base_expected_catalog(project, **self.types())


class TestDocsGenReferences(Docs, BaseDocsGenReferences):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project):
        types = {**self.types(), "model_stats": table_stats(), "view_summary_stats": no_stats()}
        return expected_references_catalog(project, bigint_type="bigint", **types)


class TestGetCatalogForSingleRelation(BaseGetCatalogForSingleRelation):
    """The statistics of a table name its commit; they are compared by what they are, the rest by value."""

    @pytest.fixture(scope="class")
    def expected_catalog_my_seed(self, project):
        return ExpectedTable(project.test_schema, "my_seed", "table")

    @pytest.fixture(scope="class")
    def expected_catalog_my_view_model(self, project):
        return ExpectedTable(project.test_schema, "my_view_model", "view")


class ExpectedTable:
    COLUMNS = (("id", "bigint"), ("first_name", "string"), ("email", "string"), ("ip_address", "string"), ("updated_at", "timestamp"))

    def __init__(self, schema: str, name: str, kind: str) -> None:
        self.schema, self.name, self.kind = schema, name, kind

    def __eq__(self, other: Any) -> bool:
        assert (other.metadata.schema, other.metadata.name, other.metadata.type) == (self.schema, self.name, self.kind)
        assert [(column.name, column.type) for column in other.columns.values()] == list(self.COLUMNS)
        assert other.stats["has_stats"].value is (self.kind == "table")
        assert self.kind == "view" or (other.stats["rows"].value, other.stats["files"].value) == (1, 1)
        return True

    __hash__ = None  # type: ignore[assignment]


class TestCatalogRelationTypes(CatalogRelationTypes):
    @pytest.fixture(scope="class", autouse=True)
    def models(self):
        return {"my_table.sql": files.MY_TABLE, "my_view.sql": files.MY_VIEW}

    @pytest.mark.parametrize(
        ("node_name", "relation_type"),
        [("seed.test.my_seed", "table"), ("model.test.my_table", "table"), ("model.test.my_view", "view")],
    )
    def test_relation_types_populate_correctly(self, docs, node_name, relation_type):
        super().test_relation_types_populate_correctly(docs, node_name, relation_type)
