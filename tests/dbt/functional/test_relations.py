"""dbt-tests-adapter: aliases, caching, catalog, column types, concurrency, empty, ephemeral, relations, sample mode, copy."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.aliases import fixtures as alias_fixtures
from dbt.tests.adapter.aliases.test_aliases import BaseAliasErrors, BaseAliases, BaseSameAliasDifferentSchemas
from dbt.tests.adapter.caching.test_caching import (
    BaseCachingLowercaseModel,
    BaseCachingSelectedSchemaOnly,
    BaseCachingUppercaseModel,
    BaseNoPopulateCache,
)
from dbt.tests.adapter.concurrency import test_concurrency as concurrency
from dbt.tests.adapter.empty.test_empty import BaseTestEmpty, BaseTestEmptyInlineSourceRef, BaseTestEmptySeedFlag, MetadataWithEmptyFlag
from dbt.tests.adapter.ephemeral.test_ephemeral import BaseEphemeralErrorHandling, BaseEphemeralMulti, BaseEphemeralNested
from dbt.tests.adapter.relations.test_changing_relation_type import BaseChangeRelationTypeValidator
from dbt.tests.adapter.relations.test_dropping_schema_named import BaseDropSchemaNamed
from dbt.tests.adapter.simple_copy.test_copy_uppercase import BaseSimpleCopyUppercase
from dbt.tests.adapter.simple_copy.test_simple_copy import EmptyModelsArentRunBase, SimpleCopyBase
from dbt.tests.util import check_relations_equal, read_file, run_dbt
from dbt.version import __version__ as dbt_version

CAST = alias_fixtures.MACROS__CAST_SQL.replace("'{{ s }}'::text", "cast('{{ s }}' as string)")


class Aliases:
    @pytest.fixture(scope="class")
    def macros(self):
        return {"cast.sql": CAST, "expect_value.sql": alias_fixtures.MACROS__EXPECT_VALUE_SQL}


class TestAliases(Aliases, BaseAliases):
    pass


class TestAliasErrors(Aliases, BaseAliasErrors):
    pass


class TestSameAliasDifferentSchemas(Aliases, BaseSameAliasDifferentSchemas):
    pass


class Caching:
    def run_and_inspect_cache(self, project, run_args=None):
        """As the suite's, without the database, of which there is none."""
        found = []
        for _ in range(2):
            run_dbt(run_args)
            (relation,) = project.adapter.cache.relations.values()
            found.append((relation.schema.lower(), relation.identifier.lower()))
        assert found[0] == found[1]
        assert found[0][0] == project.test_schema.lower()


class TestCachingLowercaseModel(Caching, BaseCachingLowercaseModel):
    pass


class TestCachingUppercaseModel(Caching, BaseCachingUppercaseModel):
    pass


class TestCachingSelectedSchemaOnly(Caching, BaseCachingSelectedSchemaOnly):
    pass


class TestNoPopulateCache(Caching, BaseNoPopulateCache):
    pass


class TestConcurrency(concurrency.BaseConcurrency):
    pass


class TestEmpty(BaseTestEmpty):
    pass


class TestEmptyInlineSourceRef(BaseTestEmptyInlineSourceRef):
    pass


@pytest.mark.skipif(dbt_version < "1.12", reason="`dbt seed --empty` came with dbt-core 1.12")
class TestEmptySeedFlag(BaseTestEmptySeedFlag):
    pass


class TestMetadataWithEmptyFlag(MetadataWithEmptyFlag):
    pass


class TestEphemeralMulti(BaseEphemeralMulti):
    def test_ephemeral_multi(self, project):
        """The suite compares the text that ran with Postgres' `create view`; here it is the query alone."""
        run_dbt(["seed"])
        assert len(run_dbt(["run"])) == 3
        for name in ("dependent", "double_dependent", "super_dependent"):
            check_relations_equal(project.adapter, ["seed", name])
        text = "".join(read_file("target", "run", "test", "models", "double_dependent.sql").split())
        assert text.startswith("with__dbt__cte__baseas(select*from" + project.test_schema + ".seed),__dbt__cte__base_copyas(")
        assert text.count("__dbt__cte__baseas(") == 1


class TestEphemeralNested(BaseEphemeralNested):
    def test_ephemeral_nested(self, project):
        """The suite compares the text that ran with Postgres' `create view`; here it is the query alone."""
        assert len(run_dbt(["run"])) == 2
        text = "".join(read_file("target", "run", "test", "models", "root_view.sql").split())
        assert text.startswith("with__dbt__cte__ephemeral_level_twoas(")
        assert text.index("__dbt__cte__ephemeral_level_twoas(") < text.index("__dbt__cte__ephemeralas(")
        check_relations_equal(project.adapter, ["source_table", "root_view"])


class TestEphemeralErrorHandling(BaseEphemeralErrorHandling):
    pass


class TestChangeRelationTypes(BaseChangeRelationTypeValidator):
    pass


class TestDropSchemaNamed(BaseDropSchemaNamed):
    pass


class TestSimpleCopy(SimpleCopyBase):
    pass


class TestEmptyModelsArentRun(EmptyModelsArentRunBase):
    @pytest.fixture(autouse=True)
    def relations_of_the_warehouse(self, project, monkeypatch):
        """The suite asks information_schema, which Spark does not have."""

        def listed() -> dict[str, str]:
            schema = project.adapter.Relation.create(schema=project.test_schema)
            return {one.identifier: str(one.type) for one in project.adapter.list_relations_without_caching(schema)}

        monkeypatch.setattr(project, "get_tables_in_schema", listed)


class TestSimpleCopyUppercase(BaseSimpleCopyUppercase):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target):
        return dbt_profile_target
