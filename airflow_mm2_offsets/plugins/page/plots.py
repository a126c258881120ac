"""Lines and bars as numbers for SVG; the templates draw them."""

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 640, 160
"""The size of a plot's area, in its own units."""
MOST_POINTS = 400
"""More points can't be told apart."""
BINS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Points over time, scaled to a plot's area."""

    points: str
    """What an SVG ``polyline`` or, for bars, the template takes: ``x,y x,y``."""
    lowest: float
    highest: float
    begin: int
    """Milliseconds since 1970."""
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One bar of a histogram, in units of the plot."""

    x: float
    y: float
    width: float
    height: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """How many events each stretch of time has."""

    columns: Sequence[Column]
    most: int
    begin: int
    """Milliseconds since 1970."""
    end: int
    seconds: float
    """The length of one stretch."""


def line_plot(times: Sequence[int], values: Sequence[int]) -> Plot | None:
    """Return values over time, thinned; None without any.

    Args:
        times: Milliseconds since 1970.
        values: One for each time.
    """
    if not times:
        return None
    step = max(1, -(-len(times) // MOST_POINTS))
    kept = [*range(0, len(times) - 1, step), len(times) - 1]
    lowest, highest = min(values), max(values)
    begin, end = min(times), max(times)
    points = " ".join(
        f"{_scaled(times[at], begin, end, WIDTH):.1f},"
        f"{HEIGHT - _scaled(values[at], lowest, highest, HEIGHT):.1f}"
        for at in kept
    )
    return Plot(points=points, lowest=lowest, highest=highest, begin=begin, end=end)


def histogram(times: Sequence[int], bins: int = BINS) -> Histogram | None:
    """Return how many of the times fall into each of equal stretches; None without any.

    Args:
        times: Milliseconds since 1970.
        bins: How many stretches.
    """
    if not times:
        return None
    begin, end = min(times), max(times)
    length = max(1, end - begin + 1)
    counts = [0] * bins
    for time in times:
        counts[(time - begin) * bins // length] += 1
    most, width = max(counts), WIDTH / bins
    columns = [
        Column(
            x=round(at * width, 1),
            y=round(HEIGHT - HEIGHT * count / most, 1),
            width=round(width * 0.8, 1),
            height=round(HEIGHT * count / most, 1),
            count=count,
        )
        for at, count in enumerate(counts)
    ]
    return Histogram(columns=columns, most=most, begin=begin, end=end, seconds=length / bins / 1000)


def _scaled(value: float, lowest: float, highest: float, size: int) -> float:
    """Return where a value lies on an axis; in its middle if all values are equal."""
    return size / 2 if highest == lowest else (value - lowest) / (highest - lowest) * size
