"""dbt-tests-adapter: simple_seed. The table of expected rows is made in Spark's dialect."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.simple_seed import fixtures, seeds
from dbt.tests.adapter.simple_seed import test_seed as simple
from dbt.tests.adapter.simple_seed.test_seed_type_override import BaseSimpleSeedColumnOverride

from tests.dbt.functional.spark_text import spark_text


class Expected:
    """The rows that the seeds of a class are compared with."""

    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project):
        for statement in spark_text(seeds.seeds__expected_sql).split(";"):
            project.run_sql(statement)


class NoCascade(Expected):
    """A stored view outlives the table that it reads: dropping a table drops nothing else."""

    def _check_relation_end_state(self, run_result, project, exists):
        super()._check_relation_end_state(run_result, project, exists=True)


class TestBasicSeedTests(NoCascade, simple.BaseBasicSeedTests):
    pass


class TestSeedConfigFullRefreshOn(NoCascade, simple.BaseSeedConfigFullRefreshOn):
    pass


class TestSeedConfigFullRefreshOff(NoCascade, simple.BaseSeedConfigFullRefreshOff):
    pass


class TestSeedCustomSchema(Expected, simple.BaseSeedCustomSchema):
    pass


class TestSeedWithUniqueDelimiter(Expected, simple.BaseSeedWithUniqueDelimiter):
    pass


class TestSeedWithWrongDelimiter(Expected, simple.BaseSeedWithWrongDelimiter):
    def test_seed_with_wrong_delimiter(self, project):
        """The file then has one column, named like its whole header: a name that Hudi's Avro schema cannot hold is refused."""
        from dbt.tests.util import run_dbt

        result = run_dbt(["seed"], expect_pass=False).results[0]
        assert result.status == "error"


class TestSeedWithEmptyDelimiter(Expected, simple.BaseSeedWithEmptyDelimiter):
    pass


class TestSimpleSeedEnabledViaConfig(simple.BaseSimpleSeedEnabledViaConfig):
    pass


class TestSeedParsing(Expected, simple.BaseSeedParsing):
    pass


class TestSimpleSeedWithBOM(Expected, simple.BaseSimpleSeedWithBOM):
    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project):
        for statement in spark_text(seeds.seeds__expected_sql).split(";"):
            project.run_sql(statement)
        rows = seeds.seed__actual_csv.lstrip()
        (project.project_root / "seeds").join("seed_bom.csv").write_text("\ufeff" + rows, encoding="utf-8")


class TestSeedSpecificFormats(simple.BaseSeedSpecificFormats):
    @pytest.fixture(scope="class")
    def seeds(self):
        rows = "\n".join(str(number) for number in range(20_000))
        return {
            "big_seed.csv": f"seed_id\n{rows}\n",
            "seed.with.dots.csv": seeds.seed__with_dots_csv,
            "seed_unicode.csv": seeds.seed__unicode_csv,
        }


class TestEmptySeed(simple.BaseTestEmptySeed):
    pass


class TestSimpleSeedColumnOverride(BaseSimpleSeedColumnOverride):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "schema.yml": fixtures.properties__schema_yml.replace("type: text", "type: string")
            .replace("without time zone", "")
            .replace("type: integer", "type: bigint")
        }

    @staticmethod
    def seed_enabled_types():
        return {"seed_id": "string", "birthday": "date"}

    @staticmethod
    def seed_tricky_types():
        return {"seed_id_str": "string", "looks_like_a_bool": "string", "looks_like_a_date": "string"}
