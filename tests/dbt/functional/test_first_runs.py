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
    "deletes": "unique_key='id', delete_condition=\"nmae = 'D'\"",
    "matched": "unique_key='id', matched_condition='DBT_INTERNAL_SOURCE.nmae = 1'",
    "by_source": "unique_key='id', not_matched_by_source_action='delete', not_matched_by_source_condition='nmae = 1'",
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
    "no_clause": "matched_condition (DBT_INTERNAL_DEST.nmae = 1): [UNRESOLVED_COLUMN",
    "delete_where": "incremental_predicates (nmae = 1): [UNRESOLVED_COLUMN",
    "replace_where": "incremental_predicates (nmae = 1): [UNRESOLVED_COLUMN",
    "deletes": "delete_condition (nmae = 'D'): [UNRESOLVED_COLUMN",
    "matched": "matched_condition (DBT_INTERNAL_SOURCE.nmae = 1): [UNRESOLVED_COLUMN",
    "by_source": "not_matched_by_source_condition (nmae = 1): [UNRESOLVED_COLUMN",
}
SNAPSHOTS = {
    "keyless": "unique_key='idd', strategy='check', check_cols='all'",
    "timeless": "unique_key='id', strategy='timestamp', updated_at='changed'",
    "checkless": "unique_key='id', strategy='check', check_cols=['nmae']",
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


def test_snapshots_and_seeds_name_what_their_files_lack(tmp_path: Path, spark_keys: dict[str, Any]) -> None:
    shop = Project(tmp_path, spark_keys)
    for kind in ("snapshots", "seeds"):
        (shop.folder / kind).mkdir()
    for name, config in SNAPSHOTS.items():
        text = f"{{% snapshot {name} %}} {{{{ config({config}) }}}} select 1 as id, 'a' as name {{% endsnapshot %}}"
        (shop.folder / "snapshots" / f"{name}.sql").write_text(text)
    (shop.folder / "seeds" / "empty.csv").write_text("\n")
    shown = shop.dbt("build", fails=True)
    assert "keyless: unique_key names the column 'idd', which the model does not have; did you mean 'id'?" in shown
    assert "timeless: updated_at names the column 'changed', which the model does not have; it has id, name" in shown
    assert "checkless: check_cols names the column 'nmae', which the model does not have; did you mean 'name'?" in shown
    assert "empty.csv is empty: a seed's first line has the names of its columns" in shown
    assert not (shop.warehouse / "s").exists() or not list((shop.warehouse / "s").glob("[!.]*"))
