"""Which suites run over a bucket as they are, and what of them does not, each with its reason."""

from __future__ import annotations

MODULES = (
    "tests/unit/write/",
    "tests/unit/read/",
    "tests/unit/undo/",
    "tests/unit/services/",
    "tests/unit/commit/",
    "tests/unit/repair/",
    "tests/model_based/",
    "tests/conformance/",
    "tests/dbt/functional/",
)
"""What names of tests begin with."""
LEFT_OUT: dict[str, str] = {
    "tests/unit/undo/test_rollback_request.py::test_a_running_compaction_is_not_taken_back": "it makes the lock's file itself, empty",
    "tests/unit/undo/test_restore.py::test_a_running_compaction_keeps_a_restore_away": "it makes the lock's file itself, empty",
    "tests/unit/undo/test_savepoint.py::test_ten_thousand_files_are_pinned_in_a_second": "it measures the file system",
}
"""What names of tests begin with -> why they are not run."""


def selected(name: str) -> bool:
    """Whether the test of that name (pytest's node) is run over a bucket."""
    return name.startswith(MODULES) and not name.startswith(tuple(LEFT_OUT))


def left_out() -> int:
    return len(LEFT_OUT)
