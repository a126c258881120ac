"""Lines and bars for SVG: nothing leaves the plot's area, no event is lost."""

from hypothesis import given
from hypothesis import strategies as st

from airflow_mm2_offsets.plugins.page.plots import (
    BUCKETS,
    HEIGHT,
    WIDTH,
    histogram,
    line_plot,
)

TIMES = st.lists(st.integers(0, 2**42), min_size=1, max_size=1200)
OFFSETS = st.integers(-(2**62), 2**62)


@given(st.lists(st.tuples(st.integers(0, 2**42), OFFSETS), min_size=1, max_size=1000))
def test_a_line_stays_within_its_area(points: list[tuple[int, int]]) -> None:
    """Clocks may step back, shifts may be huge; the lowest and the highest are always drawn."""
    times, values = zip(*points, strict=True)
    plot = line_plot(times, values)
    assert plot is not None
    drawn = [tuple(map(float, each.split(","))) for each in plot.points.split()]
    assert len(drawn) <= 4 * BUCKETS
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in drawn)
    assert (plot.lowest, plot.highest) == (min(values), max(values))
    if plot.lowest < plot.highest:
        assert {0.0, float(HEIGHT)} <= {y for _, y in drawn}  # no peak is lost


@given(TIMES)
def test_a_histogram_counts_each_event_once(times: list[int]) -> None:
    """The greatest column is as high as the area."""
    made = histogram(times)
    assert made is not None
    assert sum(column.count for column in made.columns) == len(times)
    assert made.most == max(column.count for column in made.columns)
    assert all(0 <= column.y <= HEIGHT for column in made.columns)


def test_equal_values_are_a_line_in_the_middle() -> None:
    """A shift that never changes is no division by zero."""
    plot = line_plot([1, 2], [7, 7])
    assert plot is not None
    assert plot.points == f"0.0,{HEIGHT / 2:.1f} {WIDTH:.1f},{HEIGHT / 2:.1f}"


def test_one_moment_is_a_line() -> None:
    """A single point could not be seen."""
    plot = line_plot([5], [3])
    assert plot is not None
    assert plot.points.startswith("0.0,")
    assert plot.points.endswith(f"{WIDTH:.1f},{HEIGHT / 2:.1f}")


def test_nothing_is_no_plot() -> None:
    """A partition without a new sync has none."""
    assert line_plot([], []) is None
    assert histogram([]) is None
