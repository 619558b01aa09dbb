"""The project that the processes share: each strategy on both types of tables, once for everybody and once for each process.

Most models count: a run adds one to what they read of themselves, so that a lost update, a doubled row and a failed run that left
something all show in the numbers. Which rows a run changes it takes from dbt's `invocation_id`, as the ledger does.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import yaml

SCHEMA = "s"
KINDS = ("cow", "mor")
PROCESSES = ("a", "b")
OWNERS = ("shared", *PROCESSES)
PARTS, IDS = 4, 20
PREPARED = ("events", "states")
"""Models that only the first run builds; after it the session changes them."""

_COUNTERS = {
    "merge": "materialized='incremental', incremental_strategy='merge', unique_key='id'",
    "table": "materialized='table', unique_key='id'",
    "delete_insert": "materialized='incremental', incremental_strategy='delete+insert', unique_key='part'",
    "overwrite": "materialized='incremental', incremental_strategy='insert_overwrite'",
    "replace_where": "materialized='incremental', incremental_strategy='replace_where', incremental_predicates=['part = 1']",
}
WHOLE = ("merge", "table")
"""Strategies whose tables have a record key, and whose runs change each row; the other counters' runs change one part."""
COUNTERS = tuple(_COUNTERS)
_PART = "{{ (invocation_id[0] | int(base=16)) % 4 }}"
_SERVICES = (
    "partition_by='part', table_type='{kind}', cleaning={{'automatic': true, 'commits_retained': 3}}, "
    "archiving={{'automatic': true, 'min_commits': 4, 'max_commits': 6}}"
)
_COUNTER = """
{{{{ config({strategy}, {services}) }}}}
{{% if {again} %}}
select id, part, n + 1 as n from {{{{ this }}}} {where}
{{% else %}}
select cast(id as int) as id, cast(id % 4 as int) as part, 0 as n from range(20)
{{% endif %}}
"""
_APPEND = """
{{{{ config(materialized='incremental', incremental_strategy='append', {services}) }}}}
select '{{{{ invocation_id }}}}' as step, cast(id as int) as id, cast(id % 2 as int) as part from range(5)
{{% if not is_incremental() %}}where id < 0{{% endif %}}
"""
_MICROBATCH = """
{{{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day', begin='2026-01-01',
    table_type='{kind}') }}}}
select id, at from {{{{ ref('events') }}}}
"""
_EVENTS = """
{{ config(materialized='incremental', incremental_strategy='append', event_time='at') }}
select cast(id as int) as id, timestamp'2026-01-01 12:00:00' + make_interval(0, 0, 0, cast(id % 3 as int)) as at from range(9)
"""
_STATES = "{{ config(materialized='table', unique_key='id') }} select cast(id as int) as id, 0 as n from range(6)"
_HISTORY = """
{{% snapshot {name} %}}
{{{{ config(unique_key='id', strategy='check', check_cols=['n'], table_type='{kind}') }}}}
select * from {{{{ ref('states') }}}}
{{% endsnapshot %}}
"""


def part_of(strategy: str, invocation: str) -> int | None:
    """What a run of a counter changes, as the models say it; None: all rows. Predicates are fixed when dbt parses."""
    if strategy in WHOLE:
        return None
    return 1 if strategy == "replace_where" else int(invocation[0], 16) % PARTS


def tables(*strategies: str, owner: str | None = None) -> list[str]:
    return [f"{one}_{kind}_{strategy}" for one in ((owner,) if owner else OWNERS) for kind in KINDS for strategy in strategies]


def warehouse(folder: Path) -> str:
    return str(folder / "lakehouse")


def make(folder: Path) -> None:
    """The project's files in `folder`."""
    for name, text in _files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    spark = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "1", "spark.master": "local[2]"}
    spark |= {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    target = {"type": "lakehouse", "schema": SCHEMA, "warehouse": warehouse(folder), "threads": 2, "spark_config": spark}
    (folder / "profiles.yml").write_text(yaml.safe_dump({"shop": {"target": "dev", "outputs": {"dev": target}}}))
    project = {"name": "shop", "version": "1.0", "config-version": 2, "profile": "shop"}
    (folder / "dbt_project.yml").write_text(yaml.safe_dump({**project, "snapshots": {"shop": {"target_schema": SCHEMA}}}))


def command(folder: Path, name: str) -> list[str]:
    """How process `name` ("first": builds everything once; "a", "b": dbt; "session") is started.

    The others go on until there is a file `stop` in the folder.
    """
    return [sys.executable, "-m", f"{__package__}.{'session' if name == 'session' else 'builds'}", str(folder), name]


def environment(root: Path) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "DO_NOT_TRACK": "1"}


def _files() -> dict[str, str]:
    found = {"models/events.sql": _EVENTS, "models/states.sql": _STATES}
    for owner in OWNERS:
        for kind in KINDS:
            begin, services = f"{owner}_{kind}", _SERVICES.format(kind=kind)
            for strategy, config in _COUNTERS.items():
                again = "is_incremental()" if strategy != "table" else "load_relation(this) is not none"
                where = "" if strategy in WHOLE else f"where part = {'1' if strategy == 'replace_where' else _PART}"
                text = _COUNTER.format(strategy=config, services=services, again=again, where=where)
                found[f"models/{begin}_{strategy}.sql"] = text
            found[f"models/{begin}_append.sql"] = _APPEND.format(services=services)
            found[f"models/{begin}_microbatch.sql"] = _MICROBATCH.format(kind=kind)
            found[f"snapshots/{begin}_history.sql"] = _HISTORY.format(name=f"{begin}_history", kind=kind)
    return found
