"""Progress of long commands, on standard error, if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from lakehouse_engine.engine import LocalRunner

Task = TypeVar("Task")
Result = TypeVar("Result")


@contextmanager
def working(what: str) -> Iterator[None]:
    """A moving line until the block ends."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


@contextmanager
def counting(title: str, *, silent: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """A progress line; call it with the subject, the number done, and the total."""
    if silent or not sys.stderr.isatty():
        yield lambda _what, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        shown = progress.add_task(title, total=None)
        yield lambda what, done, total: progress.update(shown, description=f"{title}: {what}", completed=done, total=total)


class ProgressRunner(LocalRunner):
    """Runs tasks in threads, and shows how many are done."""

    def run(self, function: Callable[[Task], Result], tasks: Sequence[Task], *, name: str) -> list[Result]:
        if not sys.stderr.isatty() or len(tasks) < 2:
            return super().run(function, tasks, name=name)
        # Imported here: commands without progress start faster.
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            shown = progress.add_task(name, total=len(tasks))

            def counted(task: Task) -> Result:
                result = function(task)
                progress.advance(shown)
                return result

            return super().run(counted, tasks, name=name)
