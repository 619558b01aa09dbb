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
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.relation import LakehouseRelation

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


class TestNamesThatAreNoWords:
    """They are quoted wherever a relation is rendered; there is no table `a` that could be read in the place of `a b`."""

    @pytest.fixture(scope="class")
    def models(self):
        later = "{% if is_incremental() %} union all select max(id) + 1 from {{ this }} {% endif %}"
        return {
            "m.sql": "{{ config(materialized='incremental', unique_key='id', alias='a b') }} select 1 as id " + later,
            "v.sql": "{{ config(alias='a-view') }} select * from {{ ref('m') }}",
            "w.sql": "{{ config(materialized='materialized_view', alias='1e5 rows') }} select count(*) as many from {{ ref('m') }}",
            "changes.sql": "{{ config(materialized='table') }} select id from {{ lakehouse.changes(ref('m'), 'earliest') }}",
            "before.sql": "{{ config(materialized='table') }} select id from {{ lakehouse.at(ref('m'), -1) }}",
        }

    def test_models_and_what_reads_them(self, project):
        run_dbt(["run", "--select", "m"])
        run_dbt(["run"])
        run_dbt(["run", "--select", "m", "v", "w"])
        schema = project.test_schema
        wanted = {"`a b`": [1, 2, 3], "`a-view`": [1, 2, 3], "`1e5 rows`": [3], "changes": [1, 2], "before": [1]}
        found = {name: sorted(row[0] for row in project.run_sql(f"select * from {schema}.{name}", fetch="all")) for name in wanted}
        assert found == wanted
        run_dbt(["run", "--full-refresh", "--select", "m"])
        assert project.run_sql(f"select * from {schema}.`a b`", fetch="all") == [(1,)]

    def test_rendered(self):
        wanted = {"a b": "s.`a b`", "1e5": "s.`1e5`", "t1": "s.t1", "a`b": "s.`a``b`", "`a b`": "s.`a b`", "Ü": "s.`Ü`"}
        assert {name: LakehouseRelation.create(schema="s", identifier=name).render() for name in wanted} == wanted


class TestAliasesThatDifferInCaseOnly:
    """They are one table: the second model would replace what the first wrote."""

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "a.sql": "{{ config(materialized='table', alias='T1') }} select 1 as x",
            "b.sql": "{{ config(alias='t1') }} select 2 as x",
            "c.sql": "{{ config(alias='t1', schema='other') }} select 2 as x",
            "d.sql": "{{ config(alias='T2') }} select 2 as x",
            "e.sql": "{{ config(materialized='ephemeral', alias='t2') }} select 2 as x",
        }

    def test_they_are_refused_by_name(self, project):
        said = r"model 'b' \(models/b.sql\): its \S+\.t1 is \S+\.T1 of model 'a' \(models/a.sql\)"
        with pytest.raises(DbtConfigError, match=said) as caught:
            run_dbt(["parse"])
        assert not [name for name in ("'c'", "'d'", "'e'") if f"model {name}" in str(caught.value)]


class TestSubqueriesOfOddNames:
    """Ephemeral models and fixtures of unit tests are subqueries, which may be called as tables may."""

    UNITS = """
unit_tests:
  - name: newer_rows
    model: newer
    overrides: {macros: {is_incremental: true}}
    given:
      - {input: ref('all-rows'), format: sql, rows: "select 1 as id union all select 2"}
      - {input: this, rows: [{id: 1}]}
    expect: {rows: [{id: 2}]}
"""

    @pytest.fixture(scope="class")
    def models(self):
        newer = "select * from {{ ref('all-rows') }} {% if is_incremental() %} where id > (select max(id) from {{ this }}) {% endif %}"
        return {
            "all-rows.sql": "{{ config(materialized='ephemeral') }} select 1 as id",
            "newer.sql": "{{ config(materialized='incremental', unique_key='id', alias='Newer Rows') }} " + newer,
            "units.yml": self.UNITS,
        }

    def test_they_are_quoted(self, project):
        run_dbt(["run"])
        assert [str(result.status) for result in run_dbt(["build"]).results] == ["pass", "success"]
        assert project.run_sql(f"select id from {project.test_schema}.`Newer Rows`", fetch="one")[0] == 1
