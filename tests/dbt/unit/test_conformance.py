"""docs/conformance.md against the classes that it is made of."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from tests.dbt import conformance
from tests.dbt.conformance_reasons import REASONS

DOCUMENTED = "1.20.0"
"""The suite that the page is of; another one has other classes."""
pytestmark = pytest.mark.skipif(
    version("dbt-tests-adapter") != DOCUMENTED or version("dbt-core") < "1.11",
    reason=f"the page is of dbt-tests-adapter {DOCUMENTED}, parts of which need dbt-core 1.11",
)

of_this_dbt = pytest.mark.skipif(
    not version("dbt-core").startswith("1.11."), reason="the page says what runs on dbt-core 1.11, which the lock has; 1.12 runs more"
)


@of_this_dbt
def test_every_base_class_is_wired_or_has_a_reason_and_the_page_says_so():
    assert conformance.DOCUMENT.read_text(encoding="utf-8") == conformance.written(), "run `make docs`"


def test_a_base_class_without_either_is_named(monkeypatch):
    monkeypatch.delitem(REASONS, "functions.test_js_udfs.BasicJSUDF")
    with pytest.raises(ValueError, match=r"functions\.test_js_udfs\.BasicJSUDF is neither wired nor in REASONS"):
        conformance.rows()


def test_a_reason_for_a_class_that_is_wired_or_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(REASONS, "basic.test_base.BaseSimpleMaterializations", "none")
    monkeypatch.setitem(REASONS, "basic.test_base.Gone", "none")
    with pytest.raises(ValueError, match=r"Materializations is wired and in REASONS; basic\.test_base\.Gone of REASONS is no class"):
        conformance.rows()


@of_this_dbt
def test_methods_say_what_became_of_them():
    states = {f"{row.base}.{method.name}": method for row in conformance.rows() for method in row.methods}
    assert states["BaseEmpty.test_empty"].state == "as it is"
    assert states["CatalogRelationTypes.test_relation_types_populate_correctly"].state == "with more checks"
    assert states["BaseModelGrants.test_view_table_grants"].state == "replaced"
    assert "no users" in states["BaseModelGrants.test_view_table_grants"].why
    assert states["BaseTestEmptySeedFlag.test_build_empty_with_seed"].state == "skipped"
    assert states["BasicJSUDF.test_js_udf"].state == "not wired"


def test_a_replaced_body_needs_a_reason():
    class Base:
        def test_it(self):
            """dbt's."""

    class Ours(Base):
        __module__ = f"{conformance.OURS}.somewhere"

        def test_it(self):
            assert True

    with pytest.raises(ValueError, match=r"Ours\.test_it replaces a test"):
        conformance._method(Ours, "test_it")
