"""dbt-tests-adapter: grants, which are refused for every kind of node before anything is built."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.grants.base_grants import TEST_USER_ENV_VARS
from dbt.tests.adapter.grants.test_incremental_grants import BaseIncrementalGrants
from dbt.tests.adapter.grants.test_invalid_grants import BaseInvalidGrants, invalid_user_table_model_schema_yml
from dbt.tests.adapter.grants.test_model_grants import BaseModelGrants, multiple_privileges_table_model_schema_yml
from dbt.tests.adapter.grants.test_seed_grants import BaseSeedGrants, ignore_grants_yml, zero_grants_yml
from dbt.tests.adapter.grants.test_snapshot_grants import BaseSnapshotGrants
from dbt.tests.util import run_dbt, write_file
from dbt_common.exceptions import DbtConfigError


class Refused:
    """A warehouse directory has no users: a grant that did nothing would look like protection, so that it is refused by name."""

    @pytest.fixture(scope="class", autouse=True)
    def users(self):
        with pytest.MonkeyPatch.context() as patch:
            for name in TEST_USER_ENV_VARS:
                patch.setenv(name, name.lower())
            yield

    def refused(self, project: Any, command: str, name: str) -> None:
        with pytest.raises(DbtConfigError, match=rf"'{name}' .*grants cannot be applied: a warehouse directory has no users"):
            run_dbt([command])
        schema = project.adapter.Relation.create(schema=project.test_schema)
        assert project.adapter.list_relations_without_caching(schema) == []


class TestModelGrants(Refused, BaseModelGrants):
    def test_view_table_grants(self, project, get_test_users):
        self.refused(project, "run", "my_model")
        write_file(multiple_privileges_table_model_schema_yml, project.project_root, "models", "schema.yml")
        self.refused(project, "run", "my_model")


class TestIncrementalGrants(Refused, BaseIncrementalGrants):
    def test_incremental_grants(self, project, get_test_users):
        self.refused(project, "run", "my_incremental_model")


class TestInvalidGrants(Refused, BaseInvalidGrants):
    def test_invalid_grants(self, project, get_test_users, logs_dir):
        write_file(invalid_user_table_model_schema_yml, project.project_root, "models", "schema.yml")
        self.refused(project, "run", "my_invalid_model")


class TestSnapshotGrants(Refused, BaseSnapshotGrants):
    def test_snapshot_grants(self, project, get_test_users):
        self.refused(project, "snapshot", "my_snapshot")


class TestSeedGrants(Refused, BaseSeedGrants):
    def test_seed_grants(self, project, get_test_users):
        self.refused(project, "seed", "my_seed")
        for text in (ignore_grants_yml, zero_grants_yml):
            write_file(text, project.project_root, "seeds", "schema.yml")
            assert len(run_dbt(["seed"])) == 1
