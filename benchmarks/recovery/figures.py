"""What is reported: one figure for each thing timed, goals over them, and both as Markdown. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.goals import Goal
from benchmarks.render import table


@dataclass(frozen=True)
class Figure:
    """`seconds` by the clock and `cpu` seconds of this process (0 where it was another one), one each a run; `detail` is what was done.

    `error` says why there is no time.
    """

    name: str
    seconds: tuple[float, ...] = ()
    cpu: tuple[float, ...] = ()
    detail: str = ""
    error: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


@dataclass(frozen=True)
class Limit:
    """A figure that is to stay under so many seconds."""

    figure: str
    seconds: float


@dataclass(frozen=True)
class Ratio:
    """Figure `top` over figure `bottom` is to be at most, or at least, `limit`."""

    text: str
    top: str
    bottom: str
    limit: float
    at_most: bool


def judge(figures: Sequence[Figure], limits: Sequence[Limit], ratios: Sequence[Ratio]) -> list[Goal]:
    """Every goal whose figures were measured."""
    found = {figure.name: figure for figure in figures if figure.seconds}
    goals = [_under(found[limit.figure], limit.seconds) for limit in limits if limit.figure in found]
    return goals + [_ratio(found, one) for one in ratios if one.top in found and one.bottom in found]


def _under(figure: Figure, seconds: float) -> Goal:
    return Goal(f"{figure.name}: under {seconds:g} s", f"{figure.median:.3f} s", figure.median < seconds)


def _ratio(found: Mapping[str, Figure], one: Ratio) -> Goal:
    value = found[one.top].median / found[one.bottom].median
    return Goal(one.text, f"{value:.2f}x", value <= one.limit if one.at_most else value >= one.limit)


def markdown(head: Mapping[str, str], figures: Sequence[Figure], goals: Sequence[Goal]) -> str:
    """The whole report."""
    lines = ["# Recovery", "", *(f"- {key}: {value}" for key, value in head.items()), ""]
    measured = [["", "seconds", "CPU seconds", "runs", "what"], *(_row(figure) for figure in figures)]
    lines += ["Medians.", "", *table(measured), ""]
    if goals:
        judged = [[goal.text, goal.measured, "met" if goal.met else "**missed**"] for goal in goals]
        lines += ["Goals.", "", *table([["goal", "measured", ""], *judged]), ""]
    return "\n".join(lines)


def _row(figure: Figure) -> list[str]:
    if figure.error:
        return [figure.name, "**error**", "", "", " ".join(figure.error.split())[:300]]
    cpu = f"{statistics.median(figure.cpu):.3f}" if any(figure.cpu) else "-"
    return [figure.name, f"{figure.median:.3f}", cpu, " ".join(f"{one:.3f}" for one in figure.seconds), figure.detail]


def as_json(head: Mapping[str, str], figures: Sequence[Figure], goals: Sequence[Goal]) -> dict[str, Any]:
    return {"circumstances": dict(head), "figures": [asdict(one) for one in figures], "goals": [asdict(one) for one in goals]}
