"""dbt-tests-adapter: persist_docs for columns that are not there, and for quoted names whose case differs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dbt.tests.adapter.persist_docs import fixtures
from dbt.tests.adapter.persist_docs.test_persist_docs import (
    BasePersistDocsAllColumnsMissing,
    BasePersistDocsCommentOnQuotedColumn,
    BasePersistDocsQuotedColumnCaseSensitive,
    BasePersistDocsQuotedDescriptionNotAppliedOnMismatch,
)
from dbt.tests.util import run_dbt, write_file

from dbt.adapters.lakehouse.reading.catalog import CatalogEntry


class TestPersistDocsAllColumnsMissing(BasePersistDocsAllColumnsMissing):
    pass


class TestPersistDocsQuotedColumnCaseSensitive(BasePersistDocsQuotedColumnCaseSensitive):
    pass


class TestPersistDocsQuotedDescriptionNotAppliedOnMismatch(BasePersistDocsQuotedDescriptionNotAppliedOnMismatch):
    pass


class TestPersistDocsCommentOnQuotedColumn(BasePersistDocsCommentOnQuotedColumn):
    """The suite's column is named 2id, which Hudi's Avro schema cannot hold and is refused; a reserved word has to be quoted, too."""

    @pytest.fixture(scope="class")
    def models(self):
        return {"quote_model.sql": fixtures._MODELS__MODEL_USING_QUOTE_UTIL.replace("2id", "from")}

    @pytest.fixture(scope="class")
    def properties(self):
        return {"properties.yml": fixtures._PROPERTIES__QUOTE_MODEL.replace("2id", "from")}

    @pytest.fixture(scope="class")
    def run_has_comments(self, project):
        def check() -> None:
            run_dbt()
            run_dbt(["docs", "generate"])
            catalog = json.loads((Path(project.project_root) / "target" / "catalog.json").read_text(encoding="utf-8"))
            assert catalog["nodes"]["model.test.quote_model"]["columns"]["from"]["comment"].startswith("XXX")

        return check


class TestPersistDocsOfNamesInAnotherCase:
    """Unquoted names are names whatever their case: the description is kept by the name that the table has."""

    YAML = "models: [{name: m, columns: [{name: ID, description: the id}, {name: name, description: 'the name'}]}]"

    @pytest.fixture(scope="class")
    def models(self):
        docs = "persist_docs={'columns': true}"
        return {"m.sql": "{{ config(materialized='table', " + docs + ") }} select 1 as id, 'x' as Name", "m.yml": self.YAML}

    def comments(self, project):
        run_dbt(["run"])
        run_dbt(["docs", "generate"])
        catalog = json.loads((Path(project.project_root) / "target" / "catalog.json").read_text(encoding="utf-8"))
        return {name: column["comment"] for name, column in catalog["nodes"]["model.test.m"]["columns"].items()}

    def test_they_are_there_and_follow_what_is_said_later(self, project):
        assert self.comments(project) == {"id": "the id", "Name": "the name"}
        described = project.run_sql(f"describe table {project.test_schema}.m", fetch="all")
        assert [row[2] for row in described[:2]] == ["the id", "the name"]
        changed = self.YAML.replace("ID, description: the id", "Id, description: ''").replace("the name", "another")
        write_file(changed, project.project_root, "models", "m.yml")
        assert self.comments(project) == {"id": None, "Name": "another"}


def test_what_was_kept_under_another_spelling_is_shown() -> None:
    entry = CatalogEntry("s", "m", "table", [("id", "int"), ("Name", "string")], {"columns": {"ID": "a", "name": "b", "Name": "c"}})
    assert [entry.column_comment(name) for name in ("id", "Name", "other")] == ["a", "c", None]
