"""Lines and bars as numbers for SVG; the templates draw them."""

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 640, 160
"""The size of a plot's area, in its own units."""
BUCKETS = 200
"""A line has at most four points in each of so many stretches of its points: more can't be told
apart."""
BINS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePlot:
    """A line over time, scaled to a plot's area."""

    points: str
    """What an SVG ``polyline`` takes: ``x,y x,y``."""
    lowest: int
    highest: int
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
    seconds: float
    """The length of one stretch."""


def line_plot(times: Sequence[int], values: Sequence[int]) -> LinePlot | None:
    """Return values over time, thinned so that no peak is lost; None without any.

    Args:
        times: Milliseconds since 1970.
        values: One for each time.
    """
    if not times:
        return None
    lowest, highest = min(values), max(values)
    begin, end = min(times), max(times)
    points = [
        (
            _scaled(times[at], begin, end, WIDTH),
            HEIGHT - _scaled(values[at], lowest, highest, HEIGHT),
        )
        for at in _thinned(values)
    ]
    if begin == end:  # one moment is drawn across the plot: a point can't be seen
        points = [(0.0, points[0][1]), *points, (float(WIDTH), points[-1][1])]
    return LinePlot(
        points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points),
        lowest=lowest,
        highest=highest,
        begin=begin,
        end=end,
    )


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
    return Histogram(columns=columns, most=most, seconds=length / bins / 1000)


def _thinned(values: Sequence[int]) -> list[int]:
    """Return the places of each bucket's first, lowest, highest and last value."""
    size = max(1, -(-len(values) // BUCKETS))
    places: set[int] = set()
    for begin in range(0, len(values), size):
        bucket = range(begin, min(begin + size, len(values)))
        places |= {bucket[0], bucket[-1]}
        places |= {min(bucket, key=values.__getitem__), max(bucket, key=values.__getitem__)}
    return sorted(places)


def _scaled(value: float, lowest: float, highest: float, size: int) -> float:
    """Return where a value lies on an axis; in its middle if all values are equal."""
    return size / 2 if highest == lowest else (value - lowest) / (highest - lowest) * size
