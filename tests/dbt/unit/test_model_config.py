"""Model configs: what they mean for a table, and which are refused."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.config.keys import OWN_KEYS
from dbt.adapters.lakehouse.config.model_config import ModelConfig, strategy_findings, strategy_of
from dbt.adapters.lakehouse.config.service_config import service_options
from tests.dbt.unit.checking import check_config


def config(**values: Any) -> dict[str, Any]:
    return {"materialized": "incremental", **values}


def test_strategy_is_merge_with_a_key_and_append_without() -> None:
    assert strategy_of(config(unique_key="id")) == "merge"
    assert strategy_of(config(unique_key=[])) == "append"
    assert strategy_of(config(unique_key="id", incremental_strategy="delete+insert")) == "delete+insert"


@pytest.mark.parametrize(
    ("values", "key"),
    [
        (config(unique_key=["a", "b"]), ("a", "b")),
        (config(unique_key="id", incremental_strategy="delete+insert"), ()),
        (config(unique_key="id", incremental_strategy="append"), ()),
        (config(unique_key="id", incremental_strategy="mine"), ("id",)),
        (config(incremental_strategy="mine"), ()),
        ({"materialized": "table", "unique_key": "id"}, ("id",)),
        ({"materialized": "snapshot", "unique_key": "id"}, ("dbt_scd_id",)),
        ({"materialized": "snapshot", "unique_key": "id", "snapshot_meta_column_names": {"dbt_scd_id": "row_id"}}, ("row_id",)),
    ],
)
def test_record_key(values: dict[str, Any], key: tuple[str, ...]) -> None:
    assert ModelConfig.from_config("m", values).record_key == key


@pytest.mark.parametrize(
    ("metadata", "options"),
    [
        (None, {}),
        ("auto", {}),
        (True, {"hoodie.metadata.enable": "true"}),
        ("False", {"hoodie.metadata.enable": "false"}),
        (["files"], {"hoodie.metadata.enable": "true"}),
        (
            ["column_stats", "record_index"],
            {
                "hoodie.metadata.enable": "true",
                "hoodie.metadata.index.column.stats.enable": "true",
                "hoodie.metadata.global.record.level.index.enable": "true",
            },
        ),
    ],
)
def test_metadata_means_options_of_the_metadata_table(metadata: Any, options: dict[str, str]) -> None:
    found = ModelConfig.from_config("m", config(unique_key="id", metadata=metadata))
    assert found.options == options


def test_precombine_field_is_an_alias() -> None:
    assert ModelConfig.from_config("m", config(unique_key="id", precombine_field="ts")).ordering_fields == ("ts",)


def test_options_join_profile_model_and_dbt_configs() -> None:
    found = ModelConfig.from_config(
        "m",
        config(unique_key="id", index="simple", on_duplicate_source_keys="error", hoodie={"hoodie.parquet.max.file.size": 1}),
        {"hoodie.parquet.max.file.size": "2", "hoodie.parquet.small.file.limit": "0"},
    )
    assert found.options == {
        "hoodie.parquet.max.file.size": "1",
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.index.type": "SIMPLE",
        "lakehouse.duplicate.source.keys": "ERROR",
    }


def test_a_merge_on_read_model_compacts_inline_unless_the_profile_or_the_model_says_otherwise() -> None:
    mor = config(unique_key="id", table_type="mor")
    inline = "hoodie.compact.inline"
    assert ModelConfig.from_config("m", mor).options[inline] == "true"
    assert ModelConfig.from_config("m", mor, {inline: "false"}).options[inline] == "false"
    assert ModelConfig.from_config("m", {**mor, "compaction": {"mode": "inline"}}, {inline: "false"}).options[inline] == "true"
    planned = ModelConfig.from_config("m", {**mor, "compaction": {"mode": "async", "commits": 3}}).options
    assert (planned[inline], planned["hoodie.compact.schedule.inline"]) == ("false", "true")
    assert planned["hoodie.compact.inline.max.delta.commits"] == "3"
    assert inline not in ModelConfig.from_config("m", config(unique_key="id")).options


def test_short_names_of_services_become_hoodie_keys_which_the_profile_does_not_override() -> None:
    cleaning, archiving = {"commits_retained": 4, "automatic": False}, {"max_commits": 9}
    values = config(cleaning=cleaning, archiving=archiving, hoodie={"hoodie.keep.max.commits": 8})
    found = ModelConfig.from_config("m", values, {"hoodie.clean.commits.retained": "30"}).options
    assert found["hoodie.clean.commits.retained"] == "4"
    assert found["hoodie.clean.automatic"] == "false"
    assert found["hoodie.keep.max.commits"] == "8"


@pytest.mark.parametrize(
    ("cleaning", "policy"),
    [
        ({"fileversions_retained": 1}, "KEEP_LATEST_FILE_VERSIONS"),
        ({"hours_retained": 48}, "KEEP_LATEST_BY_HOURS"),
        ({"commits_retained": 1}, "KEEP_LATEST_COMMITS"),
        ({"policy": "keep_latest_by_hours", "hours_retained": 1}, "KEEP_LATEST_BY_HOURS"),
        ({"automatic": True}, None),
    ],
)
def test_what_a_clean_keeps_by_says_its_policy(cleaning: dict[str, Any], policy: str | None) -> None:
    assert ModelConfig.from_config("m", config(cleaning=cleaning)).options.get("hoodie.clean.policy") == policy
    if policy:
        profile = {"hoodie.cleaner.policy": "KEEP_LATEST_BY_HOURS" if "COMMITS" in policy else "KEEP_LATEST_COMMITS"}
        assert ModelConfig.from_config("m", config(cleaning=cleaning), profile).options["hoodie.clean.policy"] == policy


def test_an_option_wins_over_a_short_name_by_its_older_name_too() -> None:
    older = {"hoodie.cleaner.policy": "KEEP_LATEST_COMMITS", "hoodie.cleaner.commits.retained": 3}
    found = ModelConfig.from_config("m", config(cleaning={"hours_retained": 2}, hoodie=older)).options
    assert (found["hoodie.clean.policy"], found["hoodie.clean.commits.retained"]) == ("KEEP_LATEST_COMMITS", "3")


def test_excluded_meta_columns_are_left_out_as_no_merge_changes_them() -> None:
    found = ModelConfig.from_config("m", config(unique_key="id", merge_exclude_columns=["v", "_hoodie_commit_time", "_HOODIE_FILE_NAME"]))
    assert found.merge_exclude_columns == ("v",)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (config(table_type="cwo"), "did you mean 'cow'"),
        (config(compaction={"mode": "inline"}), "table_type 'mor'"),
        (config(table_type="mor", compaction={"mode": "sometimes"}), "inline, async, none"),
        (config(table_type="mor", compaction={"commit": 3}), "did you mean 'commits'"),
        (config(cleaning=["x"]), "cleaning is a mapping"),
        (config(archiving={"min_commit": 3}), "did you mean 'min_commits'"),
        (config(unique_key="id", ordering_fields=["a", "b"]), "keeps one ordering field"),
        (config(unique_key="id", precombine_field=["a", "b"]), "keeps one ordering field"),
        (config(partition_by={"field": "day", "data_type": "date"}), "partition_by is a column or a list of columns, not dict"),
        (config(unique_key=5), "unique_key is a column or a list of columns, not int '5'"),
        (config(unique_key="id", merge_update_columns=[{"a": 1}]), "merge_update_columns is a column or a list"),
        (config(unique_key="id", merge_update_columns=["v", "`_Hoodie_File_Name`"]), "names `_Hoodie_File_Name`, which each commit"),
        (config(index="bucket"), "needs a record key"),
        (config(index="bucket", unique_key="id", incremental_strategy="delete+insert"), "needs a record key"),
        (config(index="blom"), "did you mean 'bloom'"),
        (config(audit="yes"), "audit is true or false"),
        (config(audit=0), "audit is true or false"),
        (config(partition_by="day", hive_style_partitioning="false"), "hive_style_partitioning is true or false, not str 'false'"),
        (config(partition_by="day", hive_style_partitioning=1), "hive_style_partitioning is true or false"),
        (config(unique_key="id", incremental_predicates={"id > 1": 2}), "incremental_predicates is a condition in SQL or a list of them"),
        (config(unique_key="id", predicates=True), "predicates is a condition in SQL"),
        (config(unique_key="id", delete_condition=True), "delete_condition is a condition in SQL, not bool 'True'"),
        (config(unique_key="id", delete_condition=["gone"]), "delete_condition is a condition in SQL, not list"),
        (config(unique_key="id", predicates=["id = 1"], incremental_predicates=["id = 2"]), "predicates.*differ; keep one"),
        ({"materialized": "view", "audit": True}, "'view' has none"),
        (config(unique_key="id", audit=True, incremental_strategy="microbatch"), "each of its batches is a commit"),
        (config(audit=True, incremental_strategy="my_own"), "the project's own"),
        (config(index="record_level"), "index 'record_level' needs a record key"),
        (config(unique_key="id", index="record_level", metadata=False), "index 'record_level' asks the metadata table"),
        (config(metadata="on"), "metadata is auto, true, false or a list of files, column_stats, .*; not str 'on'"),
        (config(metadata={"files": True}), "metadata is auto, true, false or a list"),
        (config(metadata=["files", "colum_stats"]), "metadata names 'colum_stats', .* did you mean 'column_stats'"),
        (config(metadata=["partition_stats"]), "'partition_stats', which are made of 'column_stats'"),
        (config(metadata=True, hoodie={"hoodie.metadata.enable": "true"}), "'hoodie.metadata.enable' is said by the config 'metadata'"),
        (config(table_version=7), "table_version 7 is none that tables are made in; use 6, 8, 9"),
        (config(table_version="5"), "table_version '5' is none that tables are made in"),
        (config(table_version=True), "table_version True is none that tables are made in"),
        (config(hoodie={"hoodie.table.version": 8}), "'table_version'"),
        (config(hoodie={"hoodie.write.table.version": 8}), "'table_version'"),
        (config(on_schema_change="append_new_column"), "did you mean 'append_new_columns'"),
        (config(on_duplicate_source_keys="fail"), "latest, error"),
        (config(on_duplicate_source_keys="error"), "on_duplicate_source_keys 'error' needs a record key"),
        (config(unique_key="id", on_duplicate_source_keys="error", incremental_strategy="append"), "needs a record key"),
        (config(unique_key="id", on_duplicate_source_keys="error", incremental_strategy="delete+insert"), "needs a record key"),
        (config(unique_key="id", on_duplicate_source_keys="ERROR", incremental_strategy="insert_overwrite"), "'unique' constraint"),
        ({"materialized": "table", "on_duplicate_source_keys": "error"}, "needs a record key"),
        ({"materialized": "seed", "on_duplicate_source_keys": "error"}, "needs a record key"),
        (config(incremental_strategy="merge"), "needs a unique_key"),
        (config(incremental_strategy="delete+insert"), "needs a unique_key"),
        (config(incremental_strategy="replace_where"), "needs incremental_predicates"),
        (config(incremental_strategy="append", incremental_predicates=["id > 1"]), "have no meaning"),
        (config(ordering_fields="ts"), "needs a unique_key"),
        (config(unique_key="id", ordering_fields="a", precombine_field="b"), "keep one"),
        (config(unique_key="id", merge_update_columns=["a"], merge_exclude_columns=["b"]), "not both"),
        (config(incremental_strategy="append", merge_update_columns=["a"]), "belongs to incremental_strategy 'merge'"),
        (config(hoodie="x"), "mapping"),
        (config(hoodie=5), "hoodie is a mapping of hoodie.\\* keys, not int '5'"),
        (config(unique_key="id, day"), r"unique_key 'id, day' is one name: several columns are a list, \['id', 'day'\]"),
        ({"materialized": "table", "partition_by": ["y", "m,d"]}, r"partition_by 'm,d' is one name: .*, \['m', 'd'\]"),
        (config(hoodie={"hoodie.datasource.write.recordkey.field": "id"}), "'unique_key'"),
        (config(clustering={"a": 1}), "clustering has no 'a'; it takes order_by, layout, commits, trigger"),
        (config(clustering={"trigger": "now"}), "clustering trigger 'now' is not one of inline, async, none"),
        (config(clustering={"order_by": "a, b"}), "order_by 'a, b' is one name: several columns are a list"),
        (config(clustering={"order_by": 5}), "clustering order_by is a list of columns, not 5"),
        (config(clustering={"order_by": ["a"], "layout": "spiral"}), "layout 'spiral' is not one of linear, z_order, hilbert"),
        (config(clustering={"layout": "hilbert"}), "layout 'hilbert' needs columns: order_by"),
        (config(grants={"select": ["me"]}), "no users"),
        (
            config(cleaning={"hours_retained": 2, "commits_retained": 3}),
            r"commits_retained \(KEEP_LATEST_COMMITS\), hours_retained \(.*; keep one of them, or name",
        ),
        (
            config(cleaning={"policy": "KEEP_LATEST_COMMITS", "hours_retained": 2}),
            r"given: hours_retained \(KEEP_LATEST_BY_HOURS\), policy KEEP_LATEST_COMMITS; keep one of them$",
        ),
        (
            config(cleaning={"policy": "KEEP_LATEST"}),
            "'orders': cleaning policy='KEEP_LATEST' does not parse",
        ),
        (config(table_type="mor", compaction={"seconds": 60}), "compaction seconds count with a trigger of them: time_elapsed"),
        (config(table_type="mor", compaction={"seconds": 60, "trigger": "num_commits"}), "compaction seconds count"),
        (config(table_type="mor", compaction={"commits": 3, "trigger": "TIME_ELAPSED"}), "compaction commits count with a trigger of them"),
        ({"materialized": "table", "unique_key": "id", "delete_condition": "gone"}, "belongs to incremental models"),
        (
            config(unique_key="id", on_duplicate_source_keys="latest", hoodie={"lakehouse.duplicate.source.keys": "ERROR"}),
            "is said by the config 'on_duplicate_source_keys'",
        ),
        (config(unique_key="id", ordering_fields=["a", "b"]), "version 6 keeps one ordering field, .*table_version 8 or 9"),
    ],
)
def test_wrong_values_are_refused_with_the_model_and_the_remedy(values: dict[str, Any], words: str) -> None:
    with pytest.raises(DbtConfigError, match=words) as caught:
        check_config("model 'orders'", values, [])
    assert "model 'orders'" in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        config(unique_key="id", on_duplicate_source_keys="error"),
        config(unique_key="id", on_duplicate_source_keys="error", incremental_strategy="mine"),
        config(on_duplicate_source_keys="latest", incremental_strategy="append"),
        {"materialized": "table", "unique_key": "id", "on_duplicate_source_keys": "error"},
        {"materialized": "snapshot", "unique_key": "id", "on_duplicate_source_keys": "error"},
        {"materialized": "view", "on_duplicate_source_keys": "error"},
    ],
)
def test_rows_with_one_key_may_be_an_error_where_there_is_a_record_key(values: dict[str, Any]) -> None:
    check_config("m", values, [])


@pytest.mark.parametrize("given", [{}, {"hive_style_partitioning": None}, {"hive_style_partitioning": True}])
def test_partitions_are_in_hives_style_unless_said_otherwise(given: dict[str, Any]) -> None:
    assert ModelConfig.from_config("m", config(**given)).hive_style is True
    assert ModelConfig.from_config("m", config(hive_style_partitioning=False)).hive_style is False


def test_a_condition_may_be_said_under_both_names() -> None:
    both = config(unique_key="id", predicates="id = 1", incremental_predicates=["id = 1"])
    assert ModelConfig.from_config("m", both).predicates == ("id = 1",)


def test_a_service_config_that_is_none_says_nothing() -> None:
    given = {"compaction": {"mode": None, "commits": None}, "cleaning": {"policy": None}, "hoodie": {"hoodie.parquet.max.file.size": None}}
    mor = config(unique_key="id", table_type="mor")
    assert ModelConfig.from_config("m", {**mor, **given}).options == ModelConfig.from_config("m", mor).options


@pytest.mark.parametrize("version", [6, "6", 8, 9, "9", None])
def test_a_version_that_tables_are_made_in_may_be_said(version: Any) -> None:
    check_config("m", config(table_version=version), [])
    assert "table_version" in OWN_KEYS


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("parttion_by", "did you mean 'partition_by'"),
        ("file_format", "every table is a Hudi table"),
        ("owner_of_this", "under 'meta'"),
    ],
)
def test_unknown_keys_are_refused(key: str, words: str) -> None:
    with pytest.raises(DbtConfigError, match=words):
        check_config("m", config(**{key: 1}), [key])


def test_packages_may_carry_configs_of_other_adapters_but_not_mistyped_ones_of_ours() -> None:
    check_config("m", config(dist="even"), ["dist"], strict=False)
    with pytest.raises(DbtConfigError, match="partition_by"):
        check_config("m", config(partition_bye="x"), ["partition_bye"], strict=False)


def test_strategies_of_the_project_are_accepted_and_mistyped_ones_are_not() -> None:
    assert not list(strategy_findings("m", config(incremental_strategy="insert_only"), {"get_incremental_insert_only_sql"}))
    for strategy, near in (("upsert", "merge"), ("insert-overwrite", "insert_overwrite")):
        (text,) = strategy_findings("m", config(incremental_strategy=strategy), set())
        assert f"did you mean '{near}'" in text


def test_a_strategy_that_is_called_as_its_macro_is_refused_and_not_taken_for_one_of_the_projects_own() -> None:
    (text,) = strategy_findings("m", config(incremental_strategy="delete_insert"), {"get_incremental_delete_insert_sql"})
    assert text == "m: incremental_strategy 'delete_insert' is written 'delete+insert'"


def test_names_with_commas_that_are_expressions_or_quoted_are_left_to_whom_they_are_for() -> None:
    check_config("m", {"materialized": "snapshot", "unique_key": "id, day"}, [])
    check_config("m", config(unique_key="coalesce(id, day)"), [])
    check_config("m", config(unique_key="`id,day`"), [])


def test_all_wrong_configs_of_a_model_are_told_at_once() -> None:
    wrong = {
        "incremental_strategy": "append",
        "table_type": "cwo",
        "index": "blom",
        "audit": "yes",
        "delete_condition": "gone",
        "merge_update_columns": ["a"],
        "cleaning": {"polcy": "x", "hours": 1},
        "hoodie": {"hoodie.table.name": "x", "hoodie.index.type": "BLOOM"},
        "table_version": 7,
        "parttion_by": "day",
        "location": "/x",
    }
    with pytest.raises(DbtConfigError) as raised:
        check_config("m", config(**wrong), ["parttion_by", "location"])
    lines = str(raised.value.msg).splitlines()
    assert all(line.startswith("m: ") for line in lines)
    alone = ("'parttion_by'", "'location'", "'cwo'", "'blom'", "audit is")
    for words in (*alone, "delete_condition belongs", "merge_update_columns belongs"):
        assert sum(words in line for line in lines) == 1, (words, lines)
    for words in ("'polcy'", "'hours'", "'hoodie.table.name'", "'hoodie.index.type'", "table_version 7"):
        assert sum(words in line for line in lines) == 1, (words, lines)


def test_what_cannot_be_read_is_told_and_what_would_follow_from_it_is_not() -> None:
    with pytest.raises(DbtConfigError) as raised:
        check_config("m", config(unique_key={"a": 1}, partition_by=7, delete_condition=True, compaction="daily"), [])
    told = [line.split()[1] for line in str(raised.value.msg).splitlines()]
    assert told == ["delete_condition", "unique_key", "partition_by", "compaction"]


@pytest.mark.parametrize("key", ["location", "location_root", "format", "tblproperties", "zorder", "cluster_id", "compression"])
def test_configs_of_other_adapters_have_an_answer_and_not_the_nearest_name(key: str) -> None:
    with pytest.raises(DbtConfigError, match=f"the config '{key}' has no meaning here: ") as raised:
        check_config("m", config(**{key: "x"}), [key])
    assert "did you mean" not in str(raised.value)
    check_config("m", config(**{key: "x"}), [key], strict=False)


def test_a_key_that_a_python_model_asks_for_is_its_own() -> None:
    asked = {"materialized": "table", "mine": 1, "config_keys_used": ["mine"], "parttion_by": "day"}
    check_config("m", {key: asked[key] for key in asked if key != "parttion_by"}, ["mine", "config_keys_used"])
    with pytest.raises(DbtConfigError, match="'parttion_by' is not known; did you mean 'partition_by'"):
        check_config("m", asked, ["mine", "config_keys_used", "parttion_by"])


SOFT = {"unique_key": "id", "ordering_fields": "ts"}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (config(**SOFT, deletes="sft"), "deletes 'sft' is not one of hard, soft.*did you mean 'soft'"),
        (config(**SOFT, deletes={"mode": "soft", "purge": "3 days"}), "deletes has no 'purge'.*did you mean 'purge_after'"),
        (config(**SOFT, deletes={"mode": "soft", "purge_after": "soon"}), "purge_after 'soon' is no number of hours, days or weeks"),
        (config(**SOFT, deletes={"purge_after": "3 days"}), "purge_after goes with deletes mode 'soft'"),
        (config(unique_key="id", deletes="soft"), "deletes 'soft' needs ordering_fields"),
        (config(deletes="soft"), "with the strategy 'merge'"),
        (config(unique_key="id", incremental_strategy="append", deletes="soft"), "with the strategy 'merge'"),
        ({"materialized": "table", **SOFT, "deletes": "soft"}, "needs an incremental model"),
    ],
)
def test_soft_deletes_are_refused_where_they_make_no_sense(values: dict[str, Any], said: str) -> None:
    with pytest.raises(DbtConfigError, match=said):
        check_config("m", values, [])


def test_soft_deletes_are_a_word_or_a_mapping() -> None:
    given = ("hard", "soft", {"mode": "soft", "purge_after": "30 days"})
    found = [ModelConfig.from_config("m", config(**SOFT, deletes=value)) for value in given]
    assert [(one.deletes_softly, one.purge_after) for one in found] == [(False, None), (True, None), (True, "30 days")]


@pytest.mark.parametrize(
    ("clustering", "means"),
    [
        ({"order_by": ["a", "b"], "layout": "hilbert"}, {"inline": "true", "columns": "a,b", "layout": "hilbert"}),
        ({"order_by": ["a"], "commits": 8}, {"inline": "true", "columns": "a", "commits": "8"}),
        ({"order_by": "a", "trigger": "async"}, {"inline": "false", "schedule": "true", "columns": "a"}),
        ({"trigger": "none"}, {"inline": "false"}),
    ],
)
def test_a_clustering_means_the_engines_options(clustering: dict[str, Any], means: dict[str, str]) -> None:
    keys = {
        "inline": "hoodie.clustering.inline",
        "schedule": "hoodie.clustering.schedule.inline",
        "columns": "hoodie.clustering.plan.strategy.sort.columns",
        "layout": "hoodie.layout.optimize.strategy",
        "commits": "hoodie.clustering.inline.max.commits",
    }
    assert service_options({"clustering": clustering}) == {keys[name]: value for name, value in means.items()}
