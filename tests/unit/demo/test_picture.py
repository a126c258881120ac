"""The picture of a failover, and what it is drawn of."""

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demo.picture import HEIGHT, LEFT, RIGHT, WIDTH, draw, write_picture
from demo.svg import Scale
from demo.switch import Batch, Switch, read_batches
from demo.timeline import AIRFLOW, KAFKA, OURS, SPARK, Timeline

BEGIN = datetime(2026, 11, 26, tzinfo=UTC)
SVG = "{http://www.w3.org/2000/svg}"


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def batches(first: float, count: int, position: int, rows: int) -> tuple[Batch, ...]:
    """Return batches of every five seconds."""
    return tuple(
        Batch(at=at(first + 5 * number), rows=rows, position=position + 560 * number)
        for number in range(count)
    )


def sample() -> Switch:
    """Return a failover with numbers as those of a real run."""
    steps = {
        "check": {AIRFLOW: 2.2, OURS: 2.9},
        "stop_source": {AIRFLOW: 1.6, OURS: 0.4, SPARK: 6.3},
        "wait_replicated": {AIRFLOW: 2.5, OURS: 0.5, KAFKA: 3.1},
        "translate": {AIRFLOW: 1.4, OURS: 1.7},
        "submit_target": {AIRFLOW: 1.5, OURS: 0.6},
        "first record": {SPARK: 14.5},
    }
    return Switch(
        partition="orders[0]",
        source=batches(-46, 11, 1781, 1500),
        target=batches(39.2, 12, 6650, 1400),
        stopped_at=7381,
        started_at=6170,
        triggered=BEGIN,
        timeline=Timeline(steps=steps),
        verdict="33120 records produced, 33120 of them in the sink: 0 lost, 0 duplicated "
        "(the plan announced at most 0). PROVEN",
    )


def drawn(switch: Switch) -> ET.Element:
    return ET.fromstring(draw(switch))  # noqa: S314 - our own


def texts(root: ET.Element) -> list[str]:
    return [each.text or "" for each in root.iter(f"{SVG}text")]


def numbers_of(path: str) -> list[float]:
    return [
        float(part) for part in path.replace("M", " ").replace("H", " ").replace("V", " ").split()
    ]


def test_the_picture_names_both_offsets_and_the_gap() -> None:
    """What was asked, where the job stopped and started, and the seconds without output."""
    shown = texts(drawn(sample()))
    assert "7381 → 6170 (-1211)" in shown
    assert "35.2 s without output" in shown
    assert "From the request to the first record on the target: 39.2 s" in shown
    assert any("0 lost, 0 duplicated" in each and "PROVEN" in each for each in shown)
    assert {"source", "target", "Spark 20.8 s", "Kafka 3.1 s"} <= set(shown)
    assert not [each for each in shown if each.startswith("people")]


def test_a_screen_reader_gets_title_and_description() -> None:
    """Both are elements that the picture refers to."""
    root = drawn(sample())
    named = {each.attrib.get("id"): each.text or "" for each in root}
    assert root.attrib["aria-labelledby"].split() == ["title", "desc"]
    assert "35.2 s without output" in named["title"]
    assert "position 7381 of the source" in named["desc"]


def test_it_is_drawn_for_light_and_dark() -> None:
    """Each colour of a line or a text has another one for dark pages."""
    light, _, dark = draw(sample()).partition("prefers-color-scheme: dark")
    for css in ("text {", ".dim {", ".grid {", ".source {", ".target {", "text.target {"):
        assert css in light
        assert css in dark


def test_everything_is_on_the_page() -> None:
    """No point of a line lies beyond the panels, and the lines go forward in time."""
    for path in drawn(sample()).iter(f"{SVG}path"):
        x, y = numbers_of(path.attrib["d"])[::2], numbers_of(path.attrib["d"])[1::2]
        assert x == sorted(x)
        assert LEFT <= x[0] < x[-1] <= RIGHT
        assert all(0 < each < HEIGHT for each in y)
    for each in drawn(sample()).iter(f"{SVG}rect"):
        assert float(each.attrib["x"]) + float(each.attrib["width"]) <= WIDTH


def test_the_sink_stands_still_in_the_gap() -> None:
    """The target's line begins at the count that the source's line ends with."""
    source, target = (
        numbers_of(path.attrib["d"]) for path in list(drawn(sample()).iter(f"{SVG}path"))[2:]
    )
    assert source[-1] == target[1]
    assert target[-1] < target[1]


def test_one_batch_on_each_side_is_enough(tmp_path: Path) -> None:
    """A short run has its picture, too, and a sentence with signs of XML is only text."""
    short = replace(
        sample(), source=batches(-1, 1, 7381, 5), target=batches(3, 1, 6175, 5), verdict="a < b & c"
    )
    file = tmp_path / "switch.svg"
    write_picture(short, file)
    assert "a < b & c" in texts(ET.parse(file).getroot())  # noqa: S314 - our own


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 100, [0, 50, 100]),
        (-7, 12, [-5, 0, 5, 10]),
        (0, 1, [0, 0.5, 1]),
        (6170, 7381, [6500, 7000]),
    ],
)
def test_ticks_are_round_numbers_within_the_scale(
    low: float, high: float, ticks: list[float]
) -> None:
    """At most about as many as were asked for."""
    assert list(Scale(low=low, high=high, begin=0, end=1).ticks(4)) == ticks


def test_a_scale_may_be_drawn_upwards() -> None:
    """The highest number is drawn where the scale ends."""
    scale = Scale(low=10, high=20, begin=300, end=100)
    assert [scale(10), scale(15), scale(20)] == [300, 200, 100]


def write(output: Path, batch: int, part: int, time: float, *rows: tuple[int, int]) -> None:
    file = output / f"batch_id={batch}" / f"part-{part}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    names = ("partition", "offset")
    columns = {
        name: pa.array([row[number] for row in rows], pa.int64())
        for number, name in enumerate(names)
    }
    pq.write_table(pa.table(columns), file)
    os.utime(file, (at(time).timestamp(),) * 2)


def test_batches_are_read_from_the_sink(tmp_path: Path) -> None:
    """In order of time, with the position after the last row of the partition that is shown."""
    write(tmp_path, 1, 0, 7, (0, 12), (0, 10))
    write(tmp_path, 1, 1, 8, (1, 99))
    write(tmp_path, 0, 0, 2, (0, 5), (1, 6))
    write(tmp_path, 2, 0, 9, (1, 100))
    write(tmp_path, 3, 0, 10)
    assert read_batches(tmp_path, 0) == (
        Batch(at=at(2), rows=2, position=6),
        Batch(at=at(8), rows=3, position=13),
        Batch(at=at(9), rows=1, position=None),
    )
