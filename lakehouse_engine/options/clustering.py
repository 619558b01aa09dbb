"""Options of clustering: which files one takes, how their rows are sorted, and what becomes of writes to them meanwhile."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakehouse_engine.errors import OptionError
from lakehouse_engine.options.base import Option, boolean, natural, positive, positive_size

LAYOUTS = ("linear", "z-order", "hilbert")
SIZE_BASED = "SparkSizeBasedClusteringPlanStrategy"
RECENT_DAYS = "SparkRecentDaysClusteringPlanStrategy"
SELECTED_PARTITIONS = "SparkSelectedPartitionsClusteringPlanStrategy"
SINGLE_FILE = "SparkSingleFileSortPlanStrategy"
PLAN_STRATEGIES = (SIZE_BASED, RECENT_DAYS, SELECTED_PARTITIONS, SINGLE_FILE)
EXECUTION_STRATEGY = "SparkSortAndSizeExecutionStrategy"
FILTER_MODES = ("NONE", "RECENT_DAYS", "SELECTED_PARTITIONS", "DAY_ROLLING")
REJECT = "SparkRejectUpdateStrategy"
ALLOW = "SparkAllowUpdateStrategy"
_CONSISTENT = "the buckets of consistent hashing are split and merged by Hudi's own jobs only"


def _class(*allowed: str) -> Any:
    """The last part of the name of one of Hudi's classes."""
    def parse(text: str) -> str:
        name = text.strip().rpartition(".")[2]
        if "ConsistentBucket" in name:
            raise ValueError(_CONSISTENT)
        if name not in allowed:
            raise ValueError(f"expected one of {', '.join(allowed)}")
        return name

    return parse


def layout_named(text: str) -> str:
    """A layout by Hudi's names of it: `linear`, `z-order` (also `zorder`, `z_order`) or `hilbert`, in any case."""
    name = text.strip().lower().replace("_", "-").replace("zorder", "z-order")
    if name not in LAYOUTS:
        raise ValueError("expected linear, z-order or hilbert")
    return name


def columns_named(text: str) -> tuple[str, ...]:
    """The columns of a list with commas between them. Raises `ValueError` for one that is named twice."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    twice = [name for name in names if [other.lower() for other in names].count(name.lower()) > 1]
    if twice:
        raise ValueError(f"the column {twice[0]!r} is there twice")
    return names


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"it is no regular expression ({error})") from error
    return text


def _mode(text: str) -> str:
    mode = text.strip().upper()
    if mode not in FILTER_MODES:
        raise ValueError(f"expected one of {', '.join(FILTER_MODES)}")
    return mode


_PLAN = "hoodie.clustering.plan.strategy"

INLINE_CLUSTERING = Option(
    "hoodie.clustering.inline", boolean, False, "Whether a write clusters when it is done and enough commits have been made since the last."
)
SCHEDULE_INLINE_CLUSTERING = Option(
    "hoodie.clustering.schedule.inline", boolean, False, "Whether a write schedules a clustering for another process to run."
)
CLUSTERING_COMMITS = Option("hoodie.clustering.inline.max.commits", positive, 4, "Commits after which a clustering is due.")
CLUSTERING_STRATEGY = Option(
    f"{_PLAN}.class",
    _class(*PLAN_STRATEGIES),
    SIZE_BASED,
    f"Which partitions a clustering looks at, and how it groups their files: {', '.join(PLAN_STRATEGIES)} (a Java class name, of which the"
    " last part counts).",
)
CLUSTERING_EXECUTION = Option(
    "hoodie.clustering.execution.strategy.class",
    _class(EXECUTION_STRATEGY, "SparkSingleFileSortExecutionStrategy"),
    EXECUTION_STRATEGY,
    "How a clustering is run by Hudi's jobs, which plans name; this engine sorts and sizes.",
)
_NO_COLUMNS: tuple[str, ...] = ()
SORT_COLUMNS = Option(
    f"{_PLAN}.sort.columns", columns_named, _NO_COLUMNS, "Columns, with commas between them, that a clustering sorts rows by."
)
CLUSTERING_LAYOUT = Option(
    "hoodie.layout.optimize.strategy",
    layout_named,
    "linear",
    "How a clustering sorts by several columns: linear, or along a z-order or hilbert curve.",
)
CLUSTERING_SMALL_FILE = Option(
    f"{_PLAN}.small.file.limit",
    positive_size,
    300 * 1024 * 1024,
    "Bytes of a base file below which a clustering takes it. Where rows are sorted and this is not given, files of any size are taken that"
    " are not in that order yet.",
)
CLUSTERING_TARGET_FILE = Option(
    f"{_PLAN}.target.file.max.bytes", positive_size, 1024 * 1024 * 1024, "Bytes of a base file that a clustering makes, about."
)
CLUSTERING_GROUP_BYTES = Option(
    f"{_PLAN}.max.bytes.per.group", positive_size, 2 * 1024 * 1024 * 1024, "Bytes of files that one task of a clustering sorts together."
)
CLUSTERING_GROUPS = Option(f"{_PLAN}.max.num.groups", positive, 30, "Such tasks that one clustering has at most.")
SINGLE_GROUP = Option(
    f"{_PLAN}.single.group.clustering.enabled", boolean, True, "Whether a file that is alone in its task is sorted, too."
)
LOOKBACK_PARTITIONS = Option(
    f"{_PLAN}.daybased.lookback.partitions", positive, 2, "Newest partitions that a clustering of recent days takes."
)
SKIPPED_PARTITIONS = Option(
    f"{_PLAN}.daybased.skipfromlatest.partitions", natural, 0, "Newest partitions that a clustering of recent days leaves out."
)
PARTITION_FILTER = Option(
    "hoodie.clustering.plan.partition.filter.mode",
    _mode,
    "NONE",
    "Partitions that a clustering takes: all (NONE), RECENT_DAYS, SELECTED_PARTITIONS, or a 24th of them each hour (DAY_ROLLING).",
)
SELECTED = Option(f"{_PLAN}.partition.selected", str, "", "Partition paths, with commas between them, that a clustering takes.")
PARTITION_PATTERN = Option(
    f"{_PLAN}.partition.regex.pattern", _pattern, "", "Regular expression of partition paths that a clustering takes."
)
BEGIN_PARTITION = Option(f"{_PLAN}.cluster.begin.partition", str, "", "First partition path that a clustering of selected ones takes.")
END_PARTITION = Option(f"{_PLAN}.cluster.end.partition", str, "", "Last partition path that a clustering of selected ones takes.")
UPDATES_STRATEGY = Option(
    "hoodie.clustering.updates.strategy",
    _class(REJECT, ALLOW),
    ALLOW,
    f"What becomes of a write to file groups of a clustering that is planned: it goes on, and they leave the plan ({ALLOW}), or it is"
    f" refused ({REJECT}, which is Hudi's default).",
)
ROLLBACK_ON_CONFLICT = Option(
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
    boolean,
    False,
    "Whether such a write takes the whole planned clustering back, and not only its own file groups out of it.",
)
CLUSTERING_MEMORY = Option(
    "lakehouse.clustering.memory.bytes",
    positive_size,
    1024 * 1024 * 1024,
    "Bytes of rows that a task of a clustering holds in memory before the next of them wait in files.",
)
CLUSTERING_TIMEOUT_SECONDS = Option(
    "lakehouse.clustering.timeout.seconds",
    positive,
    1200,
    "Seconds after which a clustering that Hudi began and did not finish is taken over.",
)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which partitions a clustering looks at: those `named` (all where empty) that `pattern` matches, then as `mode` says."""

    mode: str = PARTITION_FILTER.default
    named: tuple[str, ...] = ()
    pattern: str = PARTITION_PATTERN.default
    begin: str = BEGIN_PARTITION.default
    end: str = END_PARTITION.default
    lookback: int = LOOKBACK_PARTITIONS.default
    skipped: int = SKIPPED_PARTITIONS.default

    @classmethod
    def read(cls, raw: Mapping[str, Any], strategy: str) -> Selection:
        """The two strategies that are named after partitions filter as the mode of that name. Raises `OptionError`."""
        modes = {RECENT_DAYS: "RECENT_DAYS", SELECTED_PARTITIONS: "SELECTED_PARTITIONS"}
        mode = PARTITION_FILTER.read(raw)
        if strategy in modes and mode not in ("NONE", modes[strategy]):
            raise OptionError(f"{PARTITION_FILTER.key}={mode} contradicts {CLUSTERING_STRATEGY.key}={strategy}: keep one of the two")
        mode, begin, end = modes.get(strategy, mode), BEGIN_PARTITION.read(raw), END_PARTITION.read(raw)
        if mode == "SELECTED_PARTITIONS" and not (begin and end):
            raise OptionError(f"a clustering of selected partitions needs {BEGIN_PARTITION.key} and {END_PARTITION.key}")
        return cls(
            mode=mode,
            named=tuple(path.strip() for path in SELECTED.read(raw).split(",") if path.strip()),
            pattern=PARTITION_PATTERN.read(raw),
            begin=begin,
            end=end,
            lookback=LOOKBACK_PARTITIONS.read(raw),
            skipped=SKIPPED_PARTITIONS.read(raw),
        )


@dataclass(frozen=True, slots=True)
class ClusteringOptions:
    """When and how files are clustered. `small_file_limit` None: the size of a file does not matter. Sizes in bytes."""

    inline: bool = INLINE_CLUSTERING.default
    schedule_inline: bool = SCHEDULE_INLINE_CLUSTERING.default
    commits: int = CLUSTERING_COMMITS.default
    strategy: str = CLUSTERING_STRATEGY.default
    selection: Selection = Selection()
    sort_columns: tuple[str, ...] = ()
    layout: str = CLUSTERING_LAYOUT.default
    small_file_limit: int | None = CLUSTERING_SMALL_FILE.default
    target_file_bytes: int = CLUSTERING_TARGET_FILE.default
    group_bytes: int = CLUSTERING_GROUP_BYTES.default
    groups: int = CLUSTERING_GROUPS.default
    single_group: bool = SINGLE_GROUP.default
    memory_bytes: int = CLUSTERING_MEMORY.default
    timeout_seconds: int = CLUSTERING_TIMEOUT_SECONDS.default

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> ClusteringOptions:
        """Raises `OptionError`, also for a curve through no columns."""
        strategy, columns, layout = CLUSTERING_STRATEGY.read(raw), SORT_COLUMNS.read(raw), CLUSTERING_LAYOUT.read(raw)
        CLUSTERING_EXECUTION.read(raw)
        if layout != CLUSTERING_LAYOUT.default and not columns:
            raise OptionError(f"{CLUSTERING_LAYOUT.key}={layout} needs columns to sort by: {SORT_COLUMNS.key} (order_by)")
        return cls(
            inline=INLINE_CLUSTERING.read(raw),
            schedule_inline=SCHEDULE_INLINE_CLUSTERING.read(raw),
            commits=CLUSTERING_COMMITS.read(raw),
            strategy=strategy,
            selection=Selection.read(raw, strategy),
            sort_columns=columns,
            layout=layout,
            small_file_limit=None if columns and CLUSTERING_SMALL_FILE.key not in raw else CLUSTERING_SMALL_FILE.read(raw),
            target_file_bytes=CLUSTERING_TARGET_FILE.read(raw),
            group_bytes=CLUSTERING_GROUP_BYTES.read(raw),
            groups=CLUSTERING_GROUPS.read(raw),
            single_group=SINGLE_GROUP.read(raw),
            memory_bytes=CLUSTERING_MEMORY.read(raw),
            timeout_seconds=CLUSTERING_TIMEOUT_SECONDS.read(raw),
        )
