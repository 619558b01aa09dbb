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
from dbt.tests.util import run_dbt


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
