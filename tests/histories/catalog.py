"""Several processes make, fill, write, read, rename, replace and drop the tables of one schema, and the schema; some of them are killed.

What they were told must be what one could have been told that did all of it in some order, with the tables that are there at the end.
"""

from __future__ import annotations

import random
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from lakehouse_engine.catalog import dropping, schema_drop
from lakehouse_engine.catalog.catalog import Catalog
from lakehouse_engine.errors import LakehouseError, TableExistsError, TableNotFoundError
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.timeline.lock import TableLock
from tests.crash.timeline import Violation
from tests.histories.log import Log, entries
from tests.support.catalog_acts import NAMES, carry_out, relations
from tests.support.catalog_model import Relations, spread, step
from tests.support.forking import forkserver
from tests.support.linear import Op, is_linear

_WEIGHTS = {"upsert": 5.0, "read": 3.0, "create": 2.0, "fill": 2.0, "replace": 1.0, "drop": 1.5, "rename": 1.5, "drop_schema": 1.0}
_NOTHING = {("fill", "StorageError"), ("replace", "StorageError"), ("rename", "RelationNotFoundError")}
"""What may be told where the schema was dropped meanwhile: nothing has happened."""
_HANGS_AFTER = 120
START: Relations = frozenset((name, frozenset({("a", "0")})) for name in NAMES[:2])


@dataclass(frozen=True)
class CatalogPlan:
    """`operations` are those of each process; `kills` are of all together. `mutant` is what is broken in them."""

    processes: int = 3
    operations: int = 10
    kills: int = 1
    mutant: str = ""
    seed: int = 0


def _no_lock() -> None:
    TableLock.__enter__ = lambda self: self  # type: ignore[method-assign]
    TableLock.__exit__ = lambda self, *error: None  # type: ignore[method-assign]
    dropping.check_held = lambda lock, name: None  # type: ignore[assignment]


def _the_folder_goes() -> None:
    def remove(self: schema_drop.SchemaDrop) -> bool:
        self.storage.delete_tree(self.schema)
        return True

    schema_drop.SchemaDrop._remove = remove  # type: ignore[method-assign]


MUTANTS: dict[str, Callable[[], None]] = {"": lambda: None, "lock": _no_lock, "folder": _the_folder_goes}


def run_process(plan: CatalogPlan, path: str, folder: str, name: str) -> None:
    """One of the processes: each call is told before and after it is made."""
    log, chance = Log(Path(folder) / f"{name}.log"), random.Random(f"{plan.seed} {name}")
    MUTANTS[plan.mutant]()
    catalog = Catalog(LocalStorage(path))
    try:
        for number in range(plan.operations):
            what, *given = _chosen(chance, f"{name}.{number}")
            log.tell(number=number, what=what, given=given, begin=time.monotonic())
            answer = _answer(catalog, what, given)
            log.tell(number=number, end=time.monotonic(), answer=answer)
        log.tell(done=True)
    except Exception:
        log.tell(failed=traceback.format_exc())
        raise


def _chosen(chance: random.Random, value: str) -> tuple[Any, ...]:
    what = chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
    name = chance.choice(NAMES)
    if what in ("upsert", "fill", "replace"):
        return what, name, [[chance.choice("abc"), value]]
    if what == "rename":
        return what, name, chance.choice([one for one in NAMES if one != name])
    return what, name


def _answer(catalog: Catalog, what: str, given: list[Any]) -> Any:
    """As JSON has it."""
    try:
        found = carry_out(catalog, what, given[0], *map(_hashable, given[1:]))
    except LakehouseError as error:
        known = isinstance(error, (TableNotFoundError, TableExistsError)) or (what, type(error).__name__) in _NOTHING
        return type(error).__name__ if known else f"{error!r}, of {error.__cause__!r}"
    return sorted(found) if isinstance(found, frozenset) else found


def _hashable(given: Any) -> Any:
    return tuple(map(tuple, given)) if isinstance(given, list) else given


def make_catalog_history(plan: CatalogPlan, folder: Path) -> list[str]:
    """What is wrong with it, a sentence each; nothing after a good history."""
    path, logs = folder / "warehouse", folder / "logs"
    logs.mkdir()
    catalog = Catalog(LocalStorage(str(path)))
    for name, rows in START:
        carry_out(catalog, "create", name)
        carry_out(catalog, "upsert", name, tuple(rows))
    _run(plan, str(path), logs)
    ops, failed = _told(logs)
    if failed:
        return failed
    try:
        end = relations(catalog, died=plan.kills > 0)
    except (Violation, LakehouseError) as error:
        return [f"the tables are not whole: {error!r}"]
    if not is_linear([one for op in ops for one in spread(op, NAMES)], START, step, end):
        return [f"no order leads to {sorted(map(str, end))}:", *map(str, sorted(ops, key=lambda op: op.begin))]
    return []


def _run(plan: CatalogPlan, path: str, logs: Path) -> None:
    context, chance = forkserver(), random.Random(f"{plan.seed} events")

    def start(name: str) -> BaseProcess:
        process = context.Process(target=run_process, args=(plan, path, str(logs), name))
        process.start()
        return process

    processes = [start(f"p{number}") for number in range(plan.processes)]
    try:
        for number in range(plan.kills):
            time.sleep(chance.uniform(0.1, 0.4))
            victim = chance.randrange(plan.processes)
            processes[victim].kill()
            processes[victim].join()
            if processes[victim].exitcode == -signal.SIGKILL:
                processes[victim] = start(f"q{number}")
        for process in processes:
            process.join(_HANGS_AFTER)
            assert process.exitcode is not None, f"a process hangs: {process}"
    finally:
        for process in processes:
            process.kill()
            process.join()


def _told(logs: Path) -> tuple[list[Op], list[str]]:
    ops, failed = [], []
    for file in sorted(logs.glob("*.log")):
        calls: dict[int, Op] = {}
        for entry in entries(file):
            if "failed" in entry:
                failed.append(entry["failed"])
            elif "what" in entry:
                calls[entry["number"]] = Op(entry["what"], tuple(map(_hashable, entry["given"])), entry["begin"])
            elif "end" in entry:
                call, answer = calls[entry["number"]], entry["answer"]
                answer = frozenset(map(tuple, answer)) if isinstance(answer, list) else answer
                calls[entry["number"]] = Op(call.what, call.given, call.begin, entry["end"], answer)
        ops += [op for op in calls.values() if (op.what, op.answer) not in _NOTHING]
    return ops, failed


