"""A table with everything that the engine keeps in `.hoodie/.aux`, for readers and writers that know nothing of it."""

from __future__ import annotations

from lakehouse_engine.repair import repair
from tests.model_based.restore_scenarios import Cell

AUX = (".hoodie/.aux/live", ".hoodie/.aux/live-savepointed", ".hoodie/.aux/savepointed", ".hoodie/.aux/damaged")


def keep_everything_aside(cell: Cell) -> None:
    """Commits archived behind a savepoint, with checkpoints of live files, and a file that a repair set aside; all metadata sealed."""
    cell.begin()
    cell.savepoint()
    for seed in (3, 4, 5):
        cell.upsert(seed)
        if cell.merge_on_read:
            cell.table.compact()
    assert cell.table.clean(1).instant is not None
    for seed in (6, 7):
        cell.upsert(seed)
    assert cell.table.archive(2, 3).archived
    inflight = [path for path in (cell.path / ".hoodie").glob("*.inflight") if "savepoint" not in path.name]
    torn = min(path for path in inflight if path.stat().st_size)
    torn.write_bytes(b"{torn")
    assert len(repair(cell.storage, lock_timeout_ms=5000).repaired) == 1
    missing = [folder for folder in AUX if not any((cell.path / folder).iterdir())]
    assert not missing
