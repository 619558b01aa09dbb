"""Options of table services: compaction, cleaning, archiving."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lakehouse_engine.errors import OptionError
from lakehouse_engine.options.base import Option, boolean, natural_size, one_of, positive, positive_size
from lakehouse_engine.options.clustering import ClusteringOptions
from lakehouse_engine.options.metadata_table import MetadataTableOptions

# Compaction

INLINE_COMPACT = Option("hoodie.compact.inline", boolean, False, "Whether a write compacts when it is done and the trigger says so.")
SCHEDULE_INLINE_COMPACT = Option(
    "hoodie.compact.schedule.inline", boolean, False, "Whether a write schedules a compaction for another process to run."
)
COMPACT_TRIGGER = Option(
    "hoodie.compact.inline.trigger.strategy",
    one_of("NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST", "TIME_ELAPSED", "NUM_AND_TIME", "NUM_OR_TIME"),
    "NUM_COMMITS",
    "When a compaction is due: after so many delta commits, so many seconds, both, or either.",
)
COMPACT_DELTA_COMMITS = Option("hoodie.compact.inline.max.delta.commits", positive, 5, "Delta commits after which a compaction is due.")
COMPACT_DELTA_SECONDS = Option("hoodie.compact.inline.max.delta.seconds", positive, 3600, "Seconds after which a compaction is due.")
COMPACTION_STRATEGIES = (
    "LogFileSizeBasedCompactionStrategy",
    "BoundedIOCompactionStrategy",
    "DayBasedCompactionStrategy",
    "BoundedPartitionAwareCompactionStrategy",
    "UnBoundedCompactionStrategy",
)


def _strategy(text: str) -> str:
    """Last part of one of Hudi's class names."""
    name = text.strip().rpartition(".")[2]
    if name not in COMPACTION_STRATEGIES:
        raise ValueError(f"expected one of {', '.join(COMPACTION_STRATEGIES)}")
    return name


COMPACTION_STRATEGY = Option(
    "hoodie.compaction.strategy",
    _strategy,
    "LogFileSizeBasedCompactionStrategy",
    "Which slices a compaction takes: LogFileSizeBasedCompactionStrategy, BoundedIOCompactionStrategy, DayBasedCompactionStrategy,"
    " BoundedPartitionAwareCompactionStrategy or UnBoundedCompactionStrategy (a Java class name, of which the last part counts).",
)
COMPACTION_TARGET_IO = Option(
    "hoodie.compaction.target.io", positive_size, 500 * 1024, "Megabytes that one compaction reads and writes, for strategies with bounds."
)
COMPACTION_LOG_SIZE_THRESHOLD = Option(
    "hoodie.compaction.logfile.size.threshold",
    natural_size,
    0,
    "Bytes of logs from which on a slice is compacted, for strategies by log size.",
)
COMPACTION_DAY_PARTITIONS = Option(
    "hoodie.compaction.daybased.target.partitions", positive, 10, "Newest partitions that a day-based compaction takes."
)
COMPACTION_MEMORY = Option(
    "hoodie.memory.compaction.max.size",
    positive_size,
    1024 * 1024 * 1024,
    "Bytes of log records that a compaction keeps in memory; more spill.",
)
COMPACTION_TIMEOUT_SECONDS = Option(
    "compaction.timeout.seconds", positive, 1200, "Seconds after which a compaction that Hudi began and did not finish is taken over."
)
LOG_COMPACTION_INLINE = Option(
    "hoodie.log.compaction.inline", boolean, False, "Whether a write merges the small log blocks of slices when it is done."
)
LOG_COMPACTION_BLOCKS = Option(
    "hoodie.log.compaction.blocks.threshold", positive, 5, "Log blocks of a slice from which on a log compaction merges them."
)

# Cleaning

AUTO_CLEAN = Option("hoodie.clean.automatic", boolean, True, "Whether a write cleans when it is done.")
CLEAN_COMMITS = Option(
    "hoodie.clean.commits.retained", positive, 10, "Commits whose files a clean keeps.", ("hoodie.cleaner.commits.retained",)
)
CLEAN_VERSIONS = Option(
    "hoodie.clean.fileversions.retained",
    positive,
    3,
    "Versions of a file group that a clean keeps.",
    ("hoodie.cleaner.fileversions.retained",),
)
CLEAN_HOURS = Option(
    "hoodie.clean.hours.retained", positive, 24, "Hours whose commits' files a clean keeps.", ("hoodie.cleaner.hours.retained",)
)
CLEAN_RETENTION = {
    "KEEP_LATEST_COMMITS": CLEAN_COMMITS,
    "KEEP_LATEST_FILE_VERSIONS": CLEAN_VERSIONS,
    "KEEP_LATEST_BY_HOURS": CLEAN_HOURS,
}
"""Policies of a clean, each with the option that says how much it keeps; it looks at no other of them."""
CLEAN_POLICY = Option(
    "hoodie.clean.policy",
    one_of(*CLEAN_RETENTION),
    "KEEP_LATEST_COMMITS",
    "What a clean keeps: the files of the last commits, the last versions of every file group, or the files of the last hours.",
    ("hoodie.cleaner.policy",),
)
CLEAN_MAX_COMMITS = Option(
    "hoodie.clean.trigger.max.commits",
    positive,
    1,
    "Commits since the last clean after which a write cleans.",
    ("hoodie.clean.max.commits",),
)
CLEAN_INCREMENTAL = Option(
    "hoodie.clean.incremental.enabled",
    boolean,
    True,
    "Whether a clean looks only at partitions written to since the one before.",
    ("hoodie.cleaner.incremental.mode",),
)

# Archiving

AUTO_ARCHIVE = Option("hoodie.archive.automatic", boolean, True, "Whether a write archives when it is done.")
KEEP_MIN_COMMITS = Option(
    "hoodie.keep.min.commits",
    positive,
    20,
    "Commits that archiving leaves on the active timeline; by default at least 10 more than a clean keeps readable.",
)
KEEP_MAX_COMMITS = Option(
    "hoodie.keep.max.commits",
    positive,
    30,
    "Commits on the active timeline above which a write archives; by default at least 20 more than a clean keeps readable.",
)
_MORE_THAN_READABLE = 10
ARCHIVAL_BATCH = Option("hoodie.commits.archival.batch", positive, 10, "Records in a block of the archived timeline.")
MERGE_ARCHIVES = Option(
    "hoodie.archive.merge.enable",
    boolean,
    True,
    "Whether archiving merges small files of the archive, whose folder is listed with each look at a table. Hudi's default is `false`.",
)
MERGE_ARCHIVES_OF = Option(
    "hoodie.archive.merge.files.batch.size", positive, 10, "How many small files of the archive, at least 2, are merged, or more."
)
MERGE_ARCHIVES_BELOW = Option(
    "hoodie.archive.merge.small.file.limit.bytes",
    positive_size,
    20 * 1024 * 1024,
    "A file of the archive above it is not merged with others.",
)
ARCHIVE_BEYOND_SAVEPOINT = Option(
    "hoodie.archive.beyond.savepoint",
    boolean,
    True,
    "Whether commits after a savepoint are archived. Unlike in Hudi, the table can still be restored to it.",
)


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """When and how slices are compacted. `target_io_mb` in megabytes, `memory_bytes` and `log_size_threshold` in bytes."""

    inline: bool = INLINE_COMPACT.default
    schedule_inline: bool = SCHEDULE_INLINE_COMPACT.default
    trigger: str = COMPACT_TRIGGER.default
    delta_commits: int = COMPACT_DELTA_COMMITS.default
    delta_seconds: int = COMPACT_DELTA_SECONDS.default
    strategy: str = COMPACTION_STRATEGY.default
    target_io_mb: int = COMPACTION_TARGET_IO.default
    log_size_threshold: int = COMPACTION_LOG_SIZE_THRESHOLD.default
    day_partitions: int = COMPACTION_DAY_PARTITIONS.default
    memory_bytes: int = COMPACTION_MEMORY.default
    timeout_seconds: int = COMPACTION_TIMEOUT_SECONDS.default
    log_inline: bool = LOG_COMPACTION_INLINE.default
    log_blocks: int = LOG_COMPACTION_BLOCKS.default

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> CompactionOptions:
        return cls(
            inline=INLINE_COMPACT.read(raw),
            schedule_inline=SCHEDULE_INLINE_COMPACT.read(raw),
            trigger=COMPACT_TRIGGER.read(raw),
            delta_commits=COMPACT_DELTA_COMMITS.read(raw),
            delta_seconds=COMPACT_DELTA_SECONDS.read(raw),
            strategy=COMPACTION_STRATEGY.read(raw),
            target_io_mb=COMPACTION_TARGET_IO.read(raw),
            log_size_threshold=COMPACTION_LOG_SIZE_THRESHOLD.read(raw),
            day_partitions=COMPACTION_DAY_PARTITIONS.read(raw),
            memory_bytes=COMPACTION_MEMORY.read(raw),
            timeout_seconds=COMPACTION_TIMEOUT_SECONDS.read(raw),
            log_inline=LOG_COMPACTION_INLINE.read(raw),
            log_blocks=LOG_COMPACTION_BLOCKS.read(raw),
        )


@dataclass(frozen=True, slots=True)
class CleanOptions:
    """What a clean keeps. `max_commits`: commits since the last clean that trigger an automatic one."""

    automatic: bool = AUTO_CLEAN.default
    policy: str = CLEAN_POLICY.default
    commits_retained: int = CLEAN_COMMITS.default
    versions_retained: int = CLEAN_VERSIONS.default
    hours_retained: int = CLEAN_HOURS.default
    max_commits: int = CLEAN_MAX_COMMITS.default
    incremental: bool = CLEAN_INCREMENTAL.default

    @property
    def commits_readable(self) -> int:
        """Commits that must stay active for a clean by commit count."""
        return self.commits_retained if self.policy == CLEAN_POLICY.default else 0

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> CleanOptions:
        return cls(
            automatic=AUTO_CLEAN.read(raw),
            policy=CLEAN_POLICY.read(raw),
            commits_retained=CLEAN_COMMITS.read(raw),
            versions_retained=CLEAN_VERSIONS.read(raw),
            hours_retained=CLEAN_HOURS.read(raw),
            max_commits=CLEAN_MAX_COMMITS.read(raw),
            incremental=CLEAN_INCREMENTAL.read(raw),
        )


def clean_policy_of(given: Mapping[str, Any], names: Mapping[str, str]) -> str | None:
    """The policy of a clean that looks at the options of `given`: the one that it states, else the one of what it keeps; None if it has
    neither.

    Keys of `given` are the options' own, not their older names (`layered`); `names` are what the caller calls them. Raises `OptionError`
    if they are of several policies and none of these is stated.
    """
    kept = {policy: option.key for policy, option in CLEAN_RETENTION.items() if given.get(option.key) is not None}
    stated = CLEAN_POLICY.read(given) if given.get(CLEAN_POLICY.key) is not None else None
    if stated in kept or not kept or (stated is None and len(kept) == 1):
        return stated or next(iter(kept), None)
    told = [f"{names.get(key, key)} ({policy})" for policy, key in kept.items()]
    told += [f"{names.get(CLEAN_POLICY.key, CLEAN_POLICY.key)} {stated}"] if stated else []
    raise OptionError(f"a clean keeps by one policy; given: {', '.join(told)}; keep one of them{'' if stated else ', or name the policy'}")


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    """How many commits stay active: at most `max_commits`, and `min_commits` after archiving.

    `merges`: `merged_files` or more small archive files (at most `merged_bytes` each) become one.
    """

    automatic: bool = AUTO_ARCHIVE.default
    min_commits: int = KEEP_MIN_COMMITS.default
    max_commits: int = KEEP_MAX_COMMITS.default
    batch: int = ARCHIVAL_BATCH.default
    beyond_savepoint: bool = ARCHIVE_BEYOND_SAVEPOINT.default
    merges: bool = MERGE_ARCHIVES.default
    merged_files: int = MERGE_ARCHIVES_OF.default
    merged_bytes: int = MERGE_ARCHIVES_BELOW.default

    def __post_init__(self) -> None:
        if self.min_commits > self.max_commits:
            raise OptionError(f"{KEEP_MIN_COMMITS.key}={self.min_commits} is more than {KEEP_MAX_COMMITS.key}={self.max_commits}")
        if self.merges and self.merged_files < 2:
            key = MERGE_ARCHIVES_OF.key
            raise OptionError(f"{key}={self.merged_files} is no number of files to merge: give 2 or more, or {MERGE_ARCHIVES.key}=false")

    def check_keeps_enough(self, clean: CleanOptions) -> None:
        """Raise `OptionError` unless more commits stay active than a clean keeps, because it plans from those."""
        if self.min_commits <= clean.commits_readable:
            raise OptionError(
                f"{KEEP_MIN_COMMITS.key}={self.min_commits} is not more than {CLEAN_COMMITS.key}={clean.commits_retained}:"
                " cleaning needs the commits that it keeps readable on the active timeline; raise the first, or lower the second"
            )

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> ArchiveOptions:
        """If not set, the numbers of commits follow what a clean keeps readable."""
        readable = CleanOptions.read(raw).commits_readable
        least = replace(KEEP_MIN_COMMITS, default=max(KEEP_MIN_COMMITS.default, readable + _MORE_THAN_READABLE))
        most = replace(KEEP_MAX_COMMITS, default=max(KEEP_MAX_COMMITS.default, readable + 2 * _MORE_THAN_READABLE))
        return cls(
            automatic=AUTO_ARCHIVE.read(raw),
            min_commits=least.read(raw),
            max_commits=most.read(raw),
            batch=ARCHIVAL_BATCH.read(raw),
            beyond_savepoint=ARCHIVE_BEYOND_SAVEPOINT.read(raw),
            merges=MERGE_ARCHIVES.read(raw),
            merged_files=MERGE_ARCHIVES_OF.read(raw),
            merged_bytes=MERGE_ARCHIVES_BELOW.read(raw),
        )


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """Services after a commit. Read once from the same options as the write."""

    compaction: CompactionOptions = CompactionOptions()
    clean: CleanOptions = CleanOptions()
    archive: ArchiveOptions = ArchiveOptions()
    clustering: ClusteringOptions = field(default_factory=ClusteringOptions)
    metadata_table: MetadataTableOptions = field(default_factory=MetadataTableOptions)

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> ServiceOptions:
        """Raises `OptionError` for contradictory options, with which automatic archiving could never run."""
        clean, archive = CleanOptions.read(raw), ArchiveOptions.read(raw)
        if archive.automatic:
            archive.check_keeps_enough(clean)
        return cls(CompactionOptions.read(raw), clean, archive, ClusteringOptions.read(raw), MetadataTableOptions.read(raw))
