"""Mistakes in configs that a run from scratch tells of, and not only the second one, which may be the one in production."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.dbt_project import Project

ROW = "select 1 as id, 'a' as name, struct(1 as a{more}) as n"
MODELS = {
    "updates": "unique_key='id', merge_update_columns=['name', 'nmae']",
    "excludes": "unique_key='id', merge_exclude_columns=['nmae']",
    "merge_where": "unique_key='id', incremental_predicates=['DBT_INTERNAL_DEST.nmae = 1']",
    "delete_where": "unique_key='id', incremental_strategy='delete+insert', incremental_predicates=['nmae = 1']",
    "replace_where": "incremental_strategy='replace_where', incremental_predicates=['nmae = 1']",
    "reads_itself": "unique_key='id', incremental_predicates=['DBT_INTERNAL_DEST.id <= (select max(id) from s.reads_itself)']",
    "reads_meta": "unique_key='id', incremental_predicates=[\"DBT_INTERNAL_DEST._hoodie_commit_time > '2'\"]",
    "renamed": "unique_key='id', target_alias='t', incremental_predicates=['t.id > 0']",
    "clauses": "unique_key='id', matched_condition='DBT_INTERNAL_DEST.id < (select max(id) from s.clauses)'",
    "no_clause": "unique_key='id', matched_condition='DBT_INTERNAL_DEST.nmae = 1'",
    "nested": "unique_key='id'",
}
REFUSED = {
    "updates": "merge_update_columns names the column 'nmae', which the model does not have; did you mean 'name'?",
    "excludes": "merge_exclude_columns names the column 'nmae', which the model does not have; did you mean 'name'?",
    "merge_where": "incremental_predicates (DBT_INTERNAL_DEST.nmae = 1): [UNRESOLVED_COLUMN",
    "no_clause": "matched_condition or not_matched_condition: [UNRESOLVED_COLUMN",
    "delete_where": "incremental_predicates (nmae = 1): [UNRESOLVED_COLUMN",
    "replace_where": "incremental_predicates (nmae = 1): [UNRESOLVED_COLUMN",
}
CONTRACT = """{{ config(materialized='table', contract={'enforced': true}) }}
-- a comment
select
  cast(1 as int) as id,
  cast(nothing as int) as name -- line 5
"""
COLUMNS = "models: [{name: lines, columns: [{name: id, data_type: int}, {name: name, data_type: int}]}]"


def test_first_runs_refuse_what_the_next_ones_would(tmp_path: Path, spark_keys: dict[str, Any]) -> None:
    shop = Project(tmp_path, spark_keys)
    row = "{{ config(materialized='incremental', CONFIG) }} " + ROW.replace("{more}", "{{ var('more', '') }}")
    for name, config in MODELS.items():
        (shop.folder / "models" / f"{name}.sql").write_text(row.replace("CONFIG", config))
    (shop.folder / "models" / "lines.sql").write_text(CONTRACT)
    (shop.folder / "models" / "lines.yml").write_text(COLUMNS)
    shown = shop.dbt("run", fails=True)
    for name, words in REFUSED.items():
        assert f"model.shop.{name}: {words}" in shown
        assert not (shop.warehouse / "s" / name).exists()
    for name in MODELS.keys() - REFUSED:
        assert shop.rows(name).num_rows == 1
    assert "line 5 pos" in shown  # of the error of `lines`

    shown = shop.dbt("run", "--select", "nested", "--vars", "{more: ', 2 as b'}", fails=True)
    assert "hoodie." not in shown
    assert "on_schema_change: append_new_columns" in shown
