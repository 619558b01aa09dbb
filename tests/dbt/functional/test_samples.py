"""dbt-tests-adapter: `--sample` and `--empty`, of SQL and Python models; `meta` in Python models; current times; quotes in text."""

from __future__ import annotations

import inspect

import freezegun
import pytest
from dbt.tests.adapter.aliases import fixtures as alias_fixtures
from dbt.tests.adapter.aliases.test_aliases import BaseSameAliasDifferentDatabases
from dbt.tests.adapter.python_model.test_python_model import BasePythonEmptyTests, BasePythonMetaGetTests, BasePythonSampleTests
from dbt.tests.adapter.sample_mode.test_sample_mode import BaseSampleModeTest
from dbt.tests.adapter.utils.test_escape_single_quotes import BaseEscapeSingleQuotesQuote
from dbt.tests.adapter.utils.test_timestamps import BaseCurrentTimestamps
from dbt.version import __version__ as dbt_version

import lakehouse_engine.table  # before the clock stands still: what is imported then, has the still one
from tests.dbt.functional.test_relations import Aliases

assert lakehouse_engine.table


class TestSampleMode(BaseSampleModeTest):
    @freezegun.freeze_time("2025-01-03T02:03:00Z", ignore=["lakehouse_engine", "grpc", "pyspark"])
    def test_sample_mode(self, project, monkeypatch):
        """The suite's own body with dbt's clock alone standing still.

        Commits whose time is not that of their files are refused, and calls of Spark Connect would never be due.
        """
        monkeypatch.setenv("DBT_EXPERIMENTAL_SAMPLE_MODE", "True")
        inspect.unwrap(BaseSampleModeTest.test_sample_mode)(self, project)


@pytest.mark.skipif(dbt_version < "1.11", reason="dbt-core 1.10 does not look for `dbt.config.meta_get` in Python models")
class TestPythonMeta(BasePythonMetaGetTests):
    pass


class TestPythonEmpty(BasePythonEmptyTests):
    pass


class TestPythonSample(BasePythonSampleTests):
    pass


class TestCurrentTimestamps(BaseCurrentTimestamps):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "get_current_timestamp.sql": 'select {{ current_timestamp() }} as current_timestamp, '
            '{{ current_timestamp_in_utc_backcompat() }} as current_timestamp_in_utc_backcompat, '
            '{{ current_timestamp_backcompat() }} as current_timestamp_backcompat'
        }

    @pytest.fixture(scope="class")
    def expected_sql(self):
        return (
            "select current_timestamp() as current_timestamp, current_timestamp::timestamp as current_timestamp_in_utc_backcompat, "
            "current_timestamp::timestamp as current_timestamp_backcompat"
        )

    @pytest.fixture(scope="class")
    def expected_schema(self):
        return dict.fromkeys(
            ("current_timestamp", "current_timestamp_in_utc_backcompat", "current_timestamp_backcompat"), "timestamp"
        )


class TestEscapeSingleQuotesQuote(BaseEscapeSingleQuotesQuote):
    """A quote within text may be doubled as well as escaped."""


class TestSameAliasDifferentDatabases(Aliases, BaseSameAliasDifferentDatabases):
    """There are no databases; the two models have schemas of their own."""

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "schema.yml": alias_fixtures.MODELS_DUPE_CUSTOM_DATABASE__SCHEMA_YML,
            "model_a.sql": alias_fixtures.MODELS_DUPE_CUSTOM_DATABASE__MODEL_A_SQL,
            "model_b.sql": alias_fixtures.MODELS_DUPE_CUSTOM_DATABASE__MODEL_B_SQL,
        }
