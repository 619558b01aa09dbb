"""Typed configs of one model, translated to engine options.

`dbt parse` and `dbt compile` call `config_findings` for every node; a write uses `ModelConfig.from_node`. An impossible value is refused
with the model's name, the value and the nearest valid one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.base import AdapterConfig

from dbt.adapters.lakehouse.bridge.validation import is_meta_column
from dbt.adapters.lakehouse.config.clauses import SKIPPED_STEPS, MergeClauses, clause_findings
from dbt.adapters.lakehouse.config.deletes import deletes_findings, deletes_softly, purge_after
from dbt.adapters.lakehouse.config.external_config import EXTERNAL, KEYS, external_findings
from dbt.adapters.lakehouse.config.findings import refuse
from dbt.adapters.lakehouse.config.keys import CONFIG_OF_OPTION, DBT_KEYS, ELSEWHERE, OWN_KEYS, WITHOUT_EFFECT
from dbt.adapters.lakehouse.config.metadata_config import metadata_findings, metadata_options
from dbt.adapters.lakehouse.config.service_config import default_options, service_findings, service_options, texts
from dbt.adapters.lakehouse.names import did_you_mean, nearest
from lakehouse_engine.api.options import layered

STRATEGIES = ("append", "merge", "insert_overwrite", "delete+insert", "replace_where", "microbatch")
STORED = ("table", "incremental", "snapshot", "seed", "materialized_view")
"""Materializations that produce a table."""
_BY_MACRO = {strategy.replace("+", "_"): strategy for strategy in STRATEGIES if "+" in strategy}
"""Names of dbt's strategy macros. As a project's own strategy such a name would run dbt's statements."""
TABLE_TYPES = ("cow", "mor")
INDEXES = ("auto", "simple", "global_simple", "bloom", "global_bloom", "bucket", "record_level")
TABLE_VERSIONS = ("6", "8", "9")
SCHEMA_CHANGES = ("ignore", "fail", "append_new_columns", "sync_all_columns")
DUPLICATES = ("latest", "error")
_DUPLICATES_KEY = "lakehouse.duplicate.source.keys"
COLUMNS = ("unique_key", "ordering_fields", "precombine_field", "partition_by", "merge_update_columns", "merge_exclude_columns")
"""Configs that name columns."""
FLAGS = ("hive_style_partitioning", "audit", *SKIPPED_STEPS)
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
CONDITIONS = ("incremental_predicates", "predicates", "delete_condition")


@dataclass
class LakehouseConfig(AdapterConfig):
    """The configs of this adapter, as dbt lists them."""

    table_type: str = "cow"
    ordering_fields: list[str] | str | None = None
    precombine_field: list[str] | str | None = None
    partition_by: list[str] | str | None = None
    hive_style_partitioning: bool = True
    merge_update_columns: list[str] | str | None = None
    merge_exclude_columns: list[str] | str | None = None
    incremental_predicates: list[str] | str | None = None
    delete_condition: str | None = None
    matched_condition: str | None = None
    not_matched_condition: str | None = None
    not_matched_by_source_action: str | None = None
    not_matched_by_source_condition: str | None = None
    skip_matched_step: bool = False
    skip_not_matched_step: bool = False
    source_alias: str | None = None
    target_alias: str | None = None
    on_duplicate_source_keys: str = "latest"
    index: str = "auto"
    metadata: list[str] | str | bool | None = None
    deletes: dict[str, Any] | str = "hard"
    audit: bool = False
    table_version: int | None = None
    hoodie: dict[str, Any] | None = None
    compaction: dict[str, Any] | None = None
    clustering: dict[str, Any] | None = None
    cleaning: dict[str, Any] | None = None
    archiving: dict[str, Any] | None = None


@dataclass(frozen=True)
class ModelConfig:
    """What one model asks of its table. `name` is for messages; column names are spelled as the user wrote them."""

    name: str
    materialized: str = "view"
    table_type: str = "cow"
    table_version: int | None = None
    """Version of a new table; None takes the warehouse's option, or 6."""
    record_key: tuple[str, ...] = ()
    ordering_fields: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    hive_style: bool = True
    strategy: str = "append"
    merge_update_columns: tuple[str, ...] = ()
    merge_exclude_columns: tuple[str, ...] = ()
    predicates: tuple[str, ...] = ()
    delete_condition: str | None = None
    clauses: MergeClauses = field(default_factory=MergeClauses)
    on_schema_change: str = "ignore"
    on_duplicate_source_keys: str | None = None
    index: str = "auto"
    event_time: str | None = None
    deletes_softly: bool = False
    purge_after: str | None = None
    hoodie: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_node(cls, node: Mapping[str, Any], defaults: Mapping[str, str] | None = None) -> ModelConfig:
        """Read the configs of a node (Jinja's `model`). Raises `DbtConfigError` with all findings."""
        return cls.from_config(node_name(node), node["config"], defaults)

    @classmethod
    def from_config(cls, name: str, config: Mapping[str, Any], defaults: Mapping[str, str] | None = None) -> ModelConfig:
        refuse(_value_findings(name, config))
        materialized = str(config.get("materialized") or "view")
        unique_key = names(config.get("unique_key"))
        strategy = strategy_of(config)
        return cls(
            name=name,
            materialized=materialized,
            table_type=_lower(config.get("table_type"), "cow"),
            table_version=None if config.get("table_version") is None else int(config["table_version"]),
            record_key=record_key_of(materialized, strategy, unique_key) if materialized != "snapshot" else (_scd_id(config),),
            ordering_fields=_ordering_fields(config),
            partition_by=names(config.get("partition_by")),
            hive_style=config.get("hive_style_partitioning") is not False,
            strategy=strategy,
            merge_update_columns=names(config.get("merge_update_columns")),
            merge_exclude_columns=tuple(one for one in names(config.get("merge_exclude_columns")) if not is_meta_column(one)),
            predicates=names(config.get("incremental_predicates") or config.get("predicates")),
            delete_condition=config.get("delete_condition") or None,
            clauses=MergeClauses.of(name, config) if materialized == "incremental" and strategy == "merge" else MergeClauses(),
            on_schema_change=_lower(config.get("on_schema_change"), "ignore"),
            on_duplicate_source_keys=_lower(config.get("on_duplicate_source_keys"), "") or None,
            index=_lower(config.get("index"), "auto"),
            event_time=config.get("event_time") or None,
            deletes_softly=deletes_softly(config),
            purge_after=purge_after(config),
            hoodie=layered(
                default_options(config),
                defaults or {},
                service_options(config),
                metadata_options(config),
                texts(config.get("hoodie") or {}),
            ),
        )

    @property
    def options(self) -> dict[str, str]:
        """Engine options of a write."""
        chosen = dict(self.hoodie)
        if self.index != "auto":
            chosen["hoodie.index.type"] = self.index.upper()
        if self.record_key and self.on_duplicate_source_keys:
            chosen[_DUPLICATES_KEY] = self.on_duplicate_source_keys.upper()
        return chosen


def record_key_of(materialized: str, strategy: str, unique_key: tuple[str, ...]) -> tuple[str, ...]:
    """Record key: `unique_key`, unless the strategy lets several rows share it (then keys are generated). A project's own strategy keeps
    it, because its SQL may be a MERGE.
    """
    if materialized == "incremental" and strategy != "merge" and strategy in STRATEGIES:
        return ()
    return unique_key


def _scd_id(config: Mapping[str, Any]) -> str:
    """Record key of a snapshot: its row identifier. The model's `unique_key` has many versions."""
    return str((config.get("snapshot_meta_column_names") or {}).get("dbt_scd_id") or "dbt_scd_id")


def strategy_of(config: Mapping[str, Any]) -> str:
    """The incremental strategy: merge with a key, else append."""
    chosen = config.get("incremental_strategy")
    if chosen and chosen != "default":
        return str(chosen)
    return "merge" if names(config.get("unique_key")) else "append"


def names(value: Any) -> tuple[str, ...]:
    """A string or list of strings as a tuple, without empty entries."""
    if value is None:
        return ()
    listed = [value] if isinstance(value, str) else list(value)
    return tuple(str(item).strip() for item in listed if str(item).strip())


def node_name(node: Mapping[str, Any]) -> str:
    """Name of a node for messages."""
    return str(node.get("unique_id") or node.get("name") or "?")


def config_findings(name: str, config: Mapping[str, Any], extra: Sequence[str], *, strict: bool = True) -> Iterator[str]:
    """Find unknown keys (those in `extra` that nothing reads) and impossible or contradictory values.

    `strict` is False for models of installed packages, whose configs for other adapters the user cannot change: only a key close to one of
    ours is refused there. A key set to none has no effect; projects for several adapters use that. Each finding starts with `name`.
    """
    # A Python model's own keys, read by `dbt.config.get`.
    of_external = KEYS if config.get("materialized") == EXTERNAL else ()
    known = (*OWN_KEYS, *DBT_KEYS, *of_external, *(config.get("config_keys_used") or ()))
    for key in extra:
        if key in known or key in WITHOUT_EFFECT or config.get(key) is None:
            continue
        if key in ELSEWHERE:
            if strict:
                yield f"{name}: the config '{key}' has no meaning here: {ELSEWHERE[key]}"
        elif strict or nearest(key, OWN_KEYS):
            hint = did_you_mean(key, (*known, *(str(name) for name in config if name not in extra))) or "; keys of your own go under 'meta'"
            yield f"{name}: the config '{key}' is not known{hint}"
    yield from _value_findings(name, config)


def _value_findings(name: str, config: Mapping[str, Any]) -> Iterator[str]:
    yield from _choice_findings(name, config)
    yield from _flag_findings(name, config)
    unreadable = [*_condition_findings(name, config), *_column_findings(name, config)]
    yield from unreadable
    if not unreadable:  # these can be compared only if each of them is readable
        yield from _key_findings(name, config)
        yield from _strategy_findings(name, config)
        is_ordered = bool(_ordering_fields(config))
        yield from deletes_findings(name, config, strategy_of(config), has_key=bool(names(config.get("unique_key"))), is_ordered=is_ordered)
        yield from _audit_findings(name, config)
    yield from _materialized_findings(name, config)
    if config.get("materialized") == EXTERNAL:
        yield from external_findings(name, config)
    yield from _hoodie_findings(name, config, config.get("hoodie"))
    yield from service_findings(name, config)
    yield from metadata_findings(name, config)
    yield from _unavailable_findings(name, config)


def _choice_findings(name: str, config: Mapping[str, Any]) -> Iterator[str]:
    for key, valid in (
        ("table_type", TABLE_TYPES),
        ("index", INDEXES),
        ("on_schema_change", SCHEMA_CHANGES),
        ("on_duplicate_source_keys", DUPLICATES),
    ):
        value = config.get(key)
        if value is not None and str(value).lower() not in valid:
            yield f"{name}: {key} '{value}' is not one of {', '.join(valid)}{did_you_mean(str(value).lower(), valid)}"


def _flag_findings(name: str, config: Mapping[str, Any]) -> Iterator[str]:
    """Find texts such as 'false', which would count as true."""
    for key in FLAGS:
        value = config.get(key)
        if value is not None and not isinstance(value, bool):
            yield f"{name}: {key} is true or false, not {type(value).__name__} '{value}'; write it without quotes"


def _condition_findings(name: str, config: Mapping[str, Any]) -> Iterator[str]:
    """Find conditions that are no SQL text: a mapping would count by its keys, and a plain true would match every row."""
    unreadable = set()
    for key in CONDITIONS:
        value = config.get(key)
        listed = value if isinstance(value, list | tuple) and key != "delete_condition" else [value]
        if not all(isinstance(item, str | None) for item in listed):
            unreadable.add(key)
            several = "" if key == "delete_condition" else " or a list of them"
            yield f"{name}: {key} is a condition in SQL{several}, not {type(value).__name__} '{value}'"
    if unreadable & {"incremental_predicates", "predicates"}:
        return
    newer, older = names(config.get("incremental_predicates")), names(config.get("predicates"))
    if newer and older and newer != older:
        yield f"{name}: incremental_predicates {list(newer)} and their older name predicates {list(older)} differ; keep one"


def _column_findings(name: str, config: Mapping[str, Any]) -> Iterator[str]:
    """Find column configs that are neither a name nor a list of names: a mapping, which other adapters accept, would count by its keys."""
    for key in COLUMNS:
        value = config.get(key)
        listed = [value] if isinstance(value, str) or value is None else value
        if not isinstance(listed, list | tuple) or not all(isinstance(item, str | None) for item in listed):
            yield f"{name}: {key} is a column or a list of columns, not {type(value).__name__} '{value}'"
        elif key != "unique_key" or config.get("materialized") != "snapshot":  # where it may be an expression
            for one, several in _listed_in_text(value):
                yield f"{name}: {key} '{one}' is one name: several columns are a list, {several}"


def _listed_in_text(value: Any) -> Iterator[tuple[str, list[str]]]:
    """Texts that hold several comma-separated names, each with those names."""
    for one in names(value):
        several = [part.strip() for part in one.split(",")]
        if len(several) > 1 and all(_WORD.fullmatch(part) for part in several):
            yield one, several


def _key_findings(name: str, config: Mapping[str, Any]) -> Iterator[str]:
    ordering, older = names(config.get("ordering_fields")), names(config.get("precombine_field"))
    if ordering and older and ordering != older:
        yield f"{name}: ordering_fields {list(ordering)} and its alias precombine_field {list(older)} differ; keep one"
    materialized = config.get("materialized")
    if (ordering or older) and materialized in ("table", "incremental", "materialized_view") and not names(config.get("unique_key")):
        yield f"{name}: ordering_fields says which of two records with one key wins; it needs a unique_key"
    if len(ordering or older) > 1 and str(config.get("table_version")).strip() not in ("8", "9"):
        several = list(ordering or older)
        yield f"{name}: a table of version 6 keeps one ordering field, not {several}; say table_version 8 or 9, or combine them"
    yield from _need_findings(name, config)
    if config.get("merge_update_columns") and config.get("merge_exclude_columns"):
        yield f"{name}: give merge_update_columns or merge_exclude_columns, not both"
    for own in names(config.get("merge_update_columns")):
        if is_meta_column(own):
            yield f"{name}: merge_update_columns names {own}, which each commit writes itself; leave it out"


def _need_findings(name: str, config: Mapping[str, Any]) -> Iterator[str]:
    """Find configs without effect on rows with generated keys. A snapshot has its own key."""
    materialized = str(config.get("materialized"))
    if materialized not in ("table", "incremental", "materialized_view", "seed"):
        return
    strategy = strategy_of(config) if materialized == "incremental" else ""
    if record_key_of(materialized, strategy, names(config.get("unique_key"))):
        return
    needed = "a record key: a unique_key, and of an incremental model the strategy 'merge' or one of your own"
    if (index := _lower(config.get("index"), "auto")) in ("bucket", "record_level") and materialized != "seed":
        yield f"{name}: index '{index}' needs {needed}"
    if _lower(config.get("on_duplicate_source_keys"), "latest") == "error":
        instead = "without one, a 'unique' constraint of the model's contract refuses such rows"
        yield f"{name}: on_duplicate_source_keys 'error' needs {needed}; {instead}"


def _strategy_findings(name: str, config: Mapping[str, Any]) -> Iterator[str]:
    if config.get("materialized") in ("table", "materialized_view") and config.get("delete_condition"):
        kind = config["materialized"]
        yield f"{name}: delete_condition belongs to incremental models, and a '{kind}' is built of all rows: leave them out in its query"
    if config.get("materialized") != "incremental":
        return
    strategy = strategy_of(config)
    if strategy not in STRATEGIES:
        return
    if strategy == "merge" and not names(config.get("unique_key")):
        yield f"{name}: incremental_strategy 'merge' needs a unique_key; without one use 'append' or 'insert_overwrite'"
    if strategy == "delete+insert" and not names(config.get("unique_key")):
        yield (
            f"{name}: incremental_strategy 'delete+insert' needs a unique_key; to replace by condition use 'replace_where'"
        )
    predicates = names(config.get("incremental_predicates") or config.get("predicates"))
    if strategy == "replace_where" and not predicates:
        yield f"{name}: incremental_strategy 'replace_where' needs incremental_predicates: the rows to replace"
    if predicates and strategy in ("append", "insert_overwrite", "microbatch"):
        yield f"{name}: incremental_predicates have no meaning for the strategy '{strategy}'; leave them out"
    for key in ("merge_update_columns", "merge_exclude_columns", "delete_condition"):
        if config.get(key) and strategy != "merge":
            yield f"{name}: {key} belongs to incremental_strategy 'merge', but the strategy is '{strategy}'"
    fixed = {key: names(config.get(key)) for key in ("unique_key", "partition_by")}
    yield from clause_findings(name, config, strategy, fixed)


def _audit_findings(name: str, config: Mapping[str, Any]) -> Iterator[str]:
    if not config.get("audit"):
        return
    materialized = str(config.get("materialized") or "view")
    if materialized not in STORED:
        yield f"{name}: audit holds back the rows of a table; '{materialized}' has none, so leave it out"
    if materialized == "materialized_view":
        yield f"{name}: audit holds back a model's own write, and anybody may refresh a materialized view: use 'table'"
    strategy = strategy_of(config)
    if materialized == "incremental" and (strategy == "microbatch" or strategy not in STRATEGIES):
        why = "each of its batches is a commit" if strategy == "microbatch" else "its statements are the project's own"
        yield f"{name}: audit publishes a model's one write; with incremental_strategy '{strategy}' {why}: leave it out"


def _materialized_findings(name: str, config: Mapping[str, Any]) -> Iterator[str]:
    if config.get("materialized") != "materialized_view":
        return
    if config.get("sql_header"):
        yield f"{name}: a materialized view is refreshed by its query alone, without its sql_header: leave it out"
    if config.get("hive_style_partitioning") is False:
        yield f"{name}: the partitions of a materialized view are in Hive's style: leave hive_style_partitioning out"


def strategy_findings(name: str, config: Mapping[str, Any], macros: Collection[str]) -> Iterator[str]:
    """Find a mistyped strategy: not ours, no macro of the project, and close to one of ours. dbt refuses others at run time."""
    if config.get("materialized") != "incremental":
        return
    strategy = strategy_of(config)
    if written := _BY_MACRO.get(strategy):
        yield f"{name}: incremental_strategy '{strategy}' is written '{written}'"
        return
    if strategy in STRATEGIES or f"get_incremental_{strategy.replace('+', '_')}_sql" in macros:
        return
    if near := {"upsert": "merge"}.get(strategy) or nearest(strategy, STRATEGIES):
        yield f"{name}: incremental_strategy '{strategy}' is not known; did you mean '{near}'?"


def _hoodie_findings(name: str, config: Mapping[str, Any], hoodie: Any) -> Iterator[str]:
    if hoodie is None:
        return
    if not isinstance(hoodie, Mapping):
        yield f"{name}: hoodie is a mapping of hoodie.* keys, not {type(hoodie).__name__} '{hoodie}'"
        return
    for key in hoodie:
        if key in CONFIG_OF_OPTION:
            yield f"{name}: '{key}' is said by the config '{CONFIG_OF_OPTION[key]}'; use that one"
    if _DUPLICATES_KEY in hoodie and config.get("on_duplicate_source_keys") is not None:
        yield f"{name}: '{_DUPLICATES_KEY}' is said by the config 'on_duplicate_source_keys'; use one of them"


def _unavailable_findings(name: str, config: Mapping[str, Any]) -> Iterator[str]:
    version = config.get("table_version")
    if version is not None and (isinstance(version, bool) or str(version).strip() not in TABLE_VERSIONS):
        yield f"{name}: table_version {version!r} is none that tables are made in; use {', '.join(TABLE_VERSIONS)}, or leave it out"
    grants = config.get("grants") or {}
    if any(grants.values() if isinstance(grants, Mapping) else [grants]):
        yield f"{name}: grants cannot be applied: a warehouse directory has no users; use the permissions of its storage"


def _ordering_fields(config: Mapping[str, Any]) -> tuple[str, ...]:
    return names(config.get("ordering_fields")) or names(config.get("precombine_field"))


def _lower(value: Any, default: str) -> str:
    return str(value).lower() if value is not None else default
