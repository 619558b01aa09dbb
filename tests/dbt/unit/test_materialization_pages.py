"""docs/materializations against the materializations that the adapter has."""

from __future__ import annotations

import re

from tests.support.documents import ROOT

MACROS = ROOT / "dbt" / "include" / "lakehouse" / "macros"
PAGES = ROOT / "docs" / "materializations"
OF_DBT_CORE = {"materialized_view"}
"""dbt-core's own, for which the adapter has the statements."""
NOT_ONE = {"python-models"}


def test_every_materialization_has_a_page_and_every_page_is_of_one() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in MACROS.rglob("*.sql"))
    ours = set(re.findall(r"{%-? materialization (\w+), adapter='lakehouse'", text))
    assert {"table", "incremental"} <= ours
    assert {path.stem for path in PAGES.glob("*.md")} == ours | OF_DBT_CORE | NOT_ONE


def test_every_page_leads_to_the_options_and_is_reached_from_the_guide() -> None:
    guide = (ROOT / "docs" / "dbt.md").read_text(encoding="utf-8")
    pages = sorted(PAGES.glob("*.md"))
    assert [page.name for page in pages if "](../options.md)" not in page.read_text(encoding="utf-8")] == []
    assert [page.name for page in pages if f"](materializations/{page.name})" not in guide] == []
