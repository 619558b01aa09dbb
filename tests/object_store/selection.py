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
_REPLACED = "another table would take the name of one, which is refused by name: a store has no rename"
_SHARED = "what Hudi wrote is unpacked once for all tests of the module, in a directory"
_COPIED = "a savepoint has no copy there: it could come after it was deleted"
LEFT_OUT: dict[str, str] = {
    "tests/unit/commit/test_hudi_fairness.py": "it sets the age of files, which a store does",
    "tests/unit/commit/test_heartbeat.py": "it sets the age of files, which a store does, and forks",
    "tests/unit/commit/test_table_clock.py": "it sets the age of files, which a store does",
    "tests/unit/commit/test_late_attempts.py": "it stops tasks at `head`, and in a bucket they look with `has_object`",
    "tests/unit/read/test_unsettled.py": "it sets the age of files, which a store does",
    "tests/unit/services/compact/test_run.py::test_a_compaction_that_another_program_began_is_left_alone": "it sets the age of a file",
    "tests/unit/services/compact/test_run.py::test_how_old_it_is_the_storage_tells": "it sets the age of a file",
    "tests/unit/services/compact/test_beside_writers.py::test_in_two_processes": "other processes have no address for the folder",
    "tests/unit/write/test_stage.py": "files that are staged are looked for in the directory of the table, and it kills processes",
    "tests/unit/write/test_writes.py::test_markers_announce_every_file": "a directory is asked what it is for before it is there",
    "tests/unit/services/compact/test_run.py::test_a_second_executor_waits_or_gives_up": "it makes the lock's file itself, empty",
    "tests/unit/commit/test_lost_lock.py::test_a_commit_that_another_built_upon": "it copies tables by the text of their paths",
    "tests/unit/commit/test_lost_lock.py::test_a_write_whose_lock_file_somebody_removed": "the lock is another object there",
    "tests/unit/repair/test_lost_savepoints.py::test_a_clean_puts_it_back": _COPIED,
    "tests/unit/repair/test_lost_savepoints.py::test_repair_says_so_and_puts_it_back": _COPIED,
    "tests/unit/repair/test_lost_savepoints.py::test_a_damaged_savepoint_is_made_anew": _COPIED,
    "tests/unit/commit/test_participants.py::test_what_a_dead_write_left": "a write that may come yet is ruled out, and not rolled back",
    "tests/unit/commit/test_unseen_files.py": "disks of executors' own are directories, and it compares the lock's object, too",
    "tests/unit/commit/test_writers.py::test_writers_of_hudi_the_dead": "it sets the age of a file, which a store does",
    "tests/unit/undo/test_rollback_request.py::test_a_running_compaction_is_not_taken_back": "it makes the lock's file itself, empty",
    "tests/unit/undo/test_restore.py::test_a_running_compaction_keeps_a_restore_away": "it makes the lock's file itself, empty",
    "tests/unit/undo/test_rollback_request.py::test_a_dead_write_is_taken_back_by_its_markers_or_by_listing": "a write that may come yet is"
    " ruled out, and then found by its markers alone, which the test removes",
    "tests/unit/undo/test_rollback_request.py::test_asked_by_name_for_a_dead_write": "a write that may come yet is ruled out, by recovery",
    "tests/dbt/functional/test_first_builds.py": "it looks into the directory; test_dbt_new_tables.py kills in a bucket",
    "tests/dbt/functional/test_killed_batches.py": "it looks into the directory; test_dbt_new_tables.py kills in a bucket",
    "tests/dbt/functional/test_unfinished_builds.py": "it looks into the directory; test_dbt_new_tables.py kills in a bucket",
    "tests/dbt/functional/test_materialized_views.py::TestMaterializedViews::test_materialized_view_replaces_view": _REPLACED,
    "tests/dbt/functional/test_materialized_views.py::TestChangesApplied::test_change_is_applied_via_replace": _REPLACED,
    "tests/dbt/functional/test_materialized_views.py::TestChangesApplied::test_full_refresh": _REPLACED,
    "tests/dbt/functional/test_materialized_views.py::TestChangesLeft::test_full_refresh": _REPLACED,
    "tests/dbt/functional/test_materialized_views.py::TestChangesRefused::test_full_refresh": _REPLACED,
    "tests/dbt/functional/test_catalogs.py::TestProductionIsAttached::test_clone_makes_tables_here": _REPLACED,
    "tests/dbt/functional/test_clone.py::TestClonePossible::test_can_clone_true": _REPLACED,
    "tests/conformance/test_continue_fixtures.py::test_the_dead_write_of_hudi": "it looks for directories after their files went",
    "tests/conformance/test_metadata_table_fixtures.py": _SHARED,
    "tests/conformance/test_mor_fixtures.py": _SHARED,
    "tests/conformance/test_read_fixtures.py": _SHARED,
    "tests/conformance/test_read_v8_fixtures.py": _SHARED,
    "tests/conformance/test_view_fixtures.py": _SHARED,
    "tests/unit/undo/test_unfinished.py::test_what_cannot_finish_a_restore_says_so_too": "it counts calls from the last one, which is here"
    " the lock's",
    "tests/unit/undo/test_savepoint.py::test_ten_thousand_files_are_pinned_in_a_second": "it asks of a dictionary how fast it is",
    "tests/model_based/test_kept_listings.py::test_the_histories_find_listings": "mutants of what a process"
    " keeps, in which no store has a part: histories until one is found make some ten thousand requests",
    "tests/unit/read/test_listed.py": "it has a store of its own, in every lane",
    "tests/unit/read/test_query.py::test_a_timeline_that_never_stands_still": "of memory alone commits are read each time",
    "tests/unit/read/test_query.py::test_history_is_whole_while_instants_leave": "of memory alone commits are read each time",
}
"""What names of tests begin with -> why they are not run."""


def selected(name: str) -> bool:
    """Whether the test of that name (pytest's node) is run over a bucket."""
    return name.startswith(MODULES) and not name.startswith(tuple(LEFT_OUT))


def left_out() -> int:
    return len(LEFT_OUT)
