"""The integration projects of packages, from the copies that LAKEHOUSE_PACKAGES names (`make packages`), and the page about them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.dbt.packages import page
from tests.dbt.packages.lane import Known, Outcome, ancestors, copies, digest_of, findings, merged, run, short
from tests.dbt.packages.table import KNOWN

PARENTS = {"test.p.on_b": ["model.p.b"], "model.p.b": ["model.p.a"], "model.p.a": []}


def outcome(passed: tuple[str, ...] = (), failed: tuple[str, ...] = (), errors: tuple[str, ...] = ()) -> Outcome:
    return Outcome(dict.fromkeys(passed, ""), dict.fromkeys(failed, "error: no"), PARENTS, errors)


@pytest.mark.dbt
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.lane.name.replace(" ", "-"))
def test_a_package_does_what_it_is_known_to_do(known: Known, tmp_path: Path) -> None:
    source = copies()
    if source is None:
        pytest.skip("LAKEHOUSE_PACKAGES names no folder of packages' copies (`make packages`)")
    missing = [name for name in known.lane.packages if not (source / name / "dbt_project.yml").exists()]
    if missing:
        pytest.skip(f"no copy of {', '.join(missing)} in {source}")
    found = run(known.lane, source, tmp_path / "project")
    wrong = findings(found, known.failing)
    assert not wrong, "\n".join(wrong)
    counts = page.counts_of(known, found, source)
    if os.environ.get("LAKEHOUSE_PACKAGES_COUNTED"):
        page.keep(known, counts)
    kept = page.counted()[known.lane.name]
    if kept["digests"] == counts["digests"]:
        assert counts["nodes"] == kept["nodes"], "run with LAKEHOUSE_PACKAGES_COUNTED=1, and write the page"


def test_the_page_is_of_the_table() -> None:
    assert page.DOCUMENT.read_text(encoding="utf-8") == page.written(), "run `make docs`"


def test_a_failure_needs_a_reason_of_its_own_or_of_what_it_stands_on() -> None:
    assert findings(outcome(failed=("model.p.a",)), {}) == ["model.a: error: no"]
    assert findings(outcome(failed=("model.p.a", "model.p.b", "test.p.on_b")), {"model.a": "Spark"}) == []
    assert findings(outcome(("model.p.a",), ("model.p.b", "test.p.on_b")), {"test.on_b": "Spark"}) == ["model.b: error: no"]


def test_a_reason_for_what_passes_or_is_not_there_is_a_finding() -> None:
    assert findings(outcome(passed=("model.p.a",)), {"model.a": "Spark"}) == ["model.a passes, and is listed as failing"]
    assert findings(outcome(passed=("model.p.a",)), {"model.gone": "Spark"}) == ["model.gone is listed, and is no node"]


def test_dbt_itself_must_not_fail() -> None:
    assert findings(outcome(errors=("dbt seed: no",)), {}) == ["dbt itself failed: dbt seed: no"]


def test_nodes_are_counted_by_kind() -> None:
    assert outcome(("model.p.a", "test.p.on_b"), ("model.p.b",)).counts == {"model": (1, 2), "test": (1, 1)}


def test_what_a_node_stands_on_is_told_once_at_any_distance() -> None:
    assert list(ancestors("test.p.on_b", {**PARENTS, "model.p.a": ["model.p.b"]})) == ["model.p.b", "model.p.a"]
    assert short("unit_test.p.model.name") == "unit_test.model.name"


def test_another_version_of_a_copy_has_another_digest(tmp_path: Path) -> None:
    (tmp_path / "macros").mkdir()
    macro = tmp_path / "macros" / "a.sql"
    macro.write_text("one")
    before = digest_of(tmp_path)
    (tmp_path / "README.md").write_text("no part of it")
    assert digest_of(tmp_path) == before
    macro.write_text("two")
    assert digest_of(tmp_path) != before


def test_settings_are_added_to_those_of_the_project() -> None:
    given = {"vars": {"a": 1}, "models": {"p": {"+enabled": True, "m": None}}, "name": "p"}
    added = {"vars": {"b": 2}, "models": {"p": {"m": {"+materialized": "table"}}}}
    assert merged(given, added) == {
        "vars": {"a": 1, "b": 2},
        "models": {"p": {"+enabled": True, "m": {"+materialized": "table"}}},
        "name": "p",
    }
