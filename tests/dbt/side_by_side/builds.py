"""A process that runs `dbt build` of some of its models and of those that everybody has, again and again."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

from dbt.cli.main import dbtRunner

from tests.dbt.side_by_side import shop
from tests.dbt.side_by_side.ledger import Ledger, stopped

AT_ONCE = 6
TIMES = ("--event-time-start", "2026-01-01", "--event-time-end", "2026-01-04")
"""Of the batches that each microbatch model replaces in a run."""


def build(folder: Path, name: str, models: list[str]) -> tuple[str, dict[str, str]]:
    """dbt's name of the run, and of each model its error, or "" where it succeeded."""
    target = folder / f"target_{name}"
    paths = ("--project-dir", str(folder), "--profiles-dir", str(folder), "--target-path", str(target), "--log-path", str(target / "logs"))
    answer = dbtRunner().invoke(["--quiet", "build", "--select", *models, *TIMES, *paths])
    if answer.exception is not None:
        raise answer.exception
    done = {one.node.name: "" if one.status == "success" else str(one.message or one.status) for one in answer.result.results}
    return str(json.loads((target / "run_results.json").read_text())["metadata"]["invocation_id"]), done


def first(folder: Path) -> None:
    """Everything once; these runs count as nothing, since the tables begin with them."""
    _, done = build(folder, "first", ["*"])
    assert not any(done.values()), done


def main(folder: Path, name: str) -> None:
    dice, ledger = random.Random(name), Ledger(folder, name)
    strategies = (*shop.COUNTERS, "append", "microbatch", "history")
    models = [*shop.tables(*strategies, owner="shared"), *shop.tables(*strategies, owner=name)]
    while not stopped(folder):
        invocation, done = build(folder, name, dice.sample(models, AT_ONCE))
        for table, error in done.items():
            strategy = table.split("_", 2)[2]
            part = shop.part_of(strategy, invocation)
            ledger.write(table, **({"failed": error} if error else {"part": part, "step": invocation}))


if __name__ == "__main__":
    if sys.argv[2] == "first":
        first(Path(sys.argv[1]))
    else:
        main(Path(sys.argv[1]), sys.argv[2])
