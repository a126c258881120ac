"""Draws a failover as SVG: the job's offsets on both clusters, its sink, and the seconds it took.

It is drawn for light and dark pages, and no colour stands alone: each line has its name.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

from demo.svg import Scale, document, element, line, stairs, text
from demo.switch import Batch, Switch
from demo.timeline import OWNERS

WIDTH, HEIGHT = 960, 700
LEFT, RIGHT = 84, 916
OFFSETS = (300.0, 112.0)
"""The panel of offsets, from its bottom to its top."""
SINK = (512.0, 356.0)
"""The panel of the sink."""
STRIP = (606.0, 28.0)
"""The strip of the seconds: its top and its height."""
CHARACTER = 6.4
"""The width of a character of the smallest size, at most."""
STYLE = """
  svg { color-scheme: light dark; background: #fff; font: 13px system-ui, sans-serif; }
  text { fill: #1f2933; } .title { font-size: 20px; font-weight: 600; } .head { font-weight: 600; }
  .small { font-size: 11px; } .dim { fill: #52606d; } .middle { text-anchor: middle; }
  .end { text-anchor: end; } path { fill: none; stroke-width: 2.5; }
  .grid { stroke: #d9dee3; } .axis { stroke: #7b8794; } .gap { fill: #f0b42933; }
  .source { stroke: #0b6bb3; } .target { stroke: #b8460a; }
  text.source, text.target { stroke: none; }
  text.source { fill: #0b6bb3; } text.target { fill: #b8460a; }
  .jump { stroke: #52606d; stroke-width: 1.5; stroke-dasharray: 5 4; }
  .owner0 { fill: #5f6b76; } .owner1 { fill: #0b6bb3; } .owner2 { fill: #b8460a; }
  .owner3 { fill: #0a7a57; } .owner4 { fill: #a0447a; } .on { fill: #fff; }
  .edge { stroke: #fff; stroke-width: 2; }
  @media (prefers-color-scheme: dark) {
    svg { background: #10171f; } text { fill: #e4e9ee; } .dim { fill: #a5b1bd; }
    .grid { stroke: #2b3641; } .axis { stroke: #8794a1; } .gap { fill: #f0b42940; }
    .source { stroke: #6cb6ff; } .target { stroke: #ff9e64; } .jump { stroke: #a5b1bd; }
    text.source { fill: #6cb6ff; } text.target { fill: #ff9e64; } .on { fill: #fff; }
    .edge { stroke: #10171f; }
  }
"""


def write_picture(switch: Switch, file: Path) -> None:
    """Write the picture of a failover.

    Args:
        switch: What happened; with at least one batch on each cluster.
        file: The SVG file; its folder is there.
    """
    file.write_text(draw(switch), encoding="utf-8")


def draw(switch: Switch) -> str:
    """Return the picture of a failover as SVG."""
    title = f"A streaming job moves from source to target: {switch.gap:.1f} s without output"
    time = Scale(
        low=switch.seconds(switch.source[0].at),
        high=max(1.0, switch.seconds(switch.target[-1].at)),
        begin=LEFT,
        end=RIGHT,
    )
    parts = [
        text(LEFT, 36, title, "title"),
        text(LEFT, 62, switch.verdict, "dim"),
        *_gap(switch, time),
        *_offsets(switch, time),
        *_sink(switch, time),
        *_seconds(switch),
    ]
    return document((WIDTH, HEIGHT), title, _described(switch), STYLE, "\n".join(parts))


def _described(switch: Switch) -> str:
    totals = ", ".join(
        f"{owner} {seconds:.1f} s" for owner, seconds in switch.timeline.totals.items() if seconds
    )
    return (
        f"On {switch.partition} the job stopped at position {switch.stopped_at} of the source and "
        f"was started at position {switch.started_at} of the target. From the request to the first "
        f"record on the target: {totals}. {switch.verdict}"
    )


def _gap(switch: Switch, time: Scale) -> Iterator[str]:
    begin, end = (time(switch.seconds(each.at)) for each in (switch.source[-1], switch.target[0]))
    for bottom, top in (OFFSETS, SINK):
        width = round(end - begin, 1)
        yield element("rect", x=begin, y=top, width=width, height=bottom - top, css="gap")
    label = f"{switch.gap:.1f} s without output"
    yield text(round((begin + end) / 2, 1), SINK[1] + 16, label, "small middle", "middle")


def _offsets(switch: Switch, time: Scale) -> Iterator[str]:
    """Draw the job's position on each cluster, and its jump from one to the other."""
    source, target = _positions(switch, switch.source), _positions(switch, switch.target)
    started = (switch.seconds(switch.target[0].at), float(switch.started_at))
    target = [started, *target]
    values = [position for _, position in (*source, *target)]
    offset = _upright(min(values), max(values), OFFSETS)
    yield from _panel(f"Position of the job in {switch.partition}", offset, time)
    for css, points in (("source", source), ("target", target)):
        yield stairs(((time(at), offset(position)) for at, position in points), css)
    stop = (time(source[-1][0]), offset(switch.stopped_at))
    start = (time(started[0]), offset(started[1]))
    yield line(*stop, *start, "jump")
    shift = switch.started_at - switch.stopped_at
    middle = round((stop[0] + start[0]) / 2, 1)
    label = f"{switch.stopped_at} → {switch.started_at} ({shift:+})"
    yield text(middle, OFFSETS[1] + 16, label, "small", "middle")
    yield text(stop[0] - 8, stop[1] - 8, "source", "source head", "end")
    yield text(RIGHT, offset(target[-1][1]) - 8, "target", "target head", "end")


def _positions(switch: Switch, batches: Sequence[Batch]) -> list[tuple[float, float]]:
    known = [(batch.at, batch.position) for batch in batches if batch.position is not None]
    return [(switch.seconds(at), float(position)) for at, position in known]


def _sink(switch: Switch, time: Scale) -> Iterator[str]:
    """Draw how many records the sink had at each time."""
    batches = (*switch.source, *switch.target)
    totals = list(accumulate(batch.rows for batch in batches))
    count = _upright(0, totals[-1], SINK)
    yield from _panel("Records in the sink", count, time)
    points = [
        (time(switch.seconds(batch.at)), count(total))
        for batch, total in zip(batches, totals, strict=True)
    ]
    last = len(switch.source) - 1
    yield stairs(points[: last + 1], "source")
    yield line(*points[last], points[last + 1][0], points[last][1], "jump")
    yield stairs([(points[last + 1][0], points[last][1]), *points[last + 1 :]], "target")
    for tick in time.ticks(8):
        yield text(time(tick), SINK[0] + 18, f"{tick:g}", "small dim", "middle")
    yield text(RIGHT, SINK[0] + 36, "seconds since the failover was asked for", "small dim", "end")


def _upright(low: float, high: float, panel: tuple[float, float]) -> Scale:
    return Scale(
        low=low, high=max(high, low + 1) + (high - low) * 0.1, begin=panel[0], end=panel[1]
    )


def _panel(heading: str, scale: Scale, time: Scale) -> Iterator[str]:
    yield text(LEFT, scale.end - 12, heading, "head")
    for tick in scale.ticks(4):
        height = scale(tick)
        yield line(LEFT, height, RIGHT, height, "grid")
        yield text(LEFT - 8, height + 4, f"{tick:g}", "small dim", "end")
    for tick in time.ticks(8):
        yield line(time(tick), scale.begin, time(tick), scale.begin + 4, "axis")
    yield line(LEFT, scale.begin, RIGHT, scale.begin, "axis")
    if time.low < 0 < time.high:
        yield line(time(0), scale.begin, time(0), scale.end, "axis")


def _seconds(switch: Switch) -> Iterator[str]:
    """Draw whose the seconds were until the first record on the target, step by step."""
    totals = switch.timeline.totals
    whole = sum(totals.values())
    heading = f"From the request to the first record on the target: {whole:.1f} s"
    yield text(LEFT, STRIP[0] - 12, heading, "head")
    scale = Scale(low=0, high=max(whole, 0.1), begin=LEFT, end=RIGHT)
    begin = 0.0
    for step, shares in switch.timeline.steps.items():
        yield from _step(step, shares, scale, begin)
        begin += sum(shares.values())
    x = float(LEFT)
    for number, owner in enumerate(OWNERS):
        if seconds := totals[owner]:
            label = f"{owner} {seconds:.1f} s"
            yield element("rect", x=x, y=STRIP[0] + 44, width=12, height=12, css=f"owner{number}")
            yield text(x + 18, STRIP[0] + 54, label)
            x += 18 + 9 * len(label)


def _step(step: str, shares: Mapping[str, float], scale: Scale, begin: float) -> Iterator[str]:
    """Draw a step of the strip, a piece for each owner; its name where there is room."""
    end = begin
    for number, owner in enumerate(OWNERS):
        if seconds := shares.get(owner, 0.0):
            x, end = scale(end), end + seconds
            size = {"width": round(scale(end) - x, 1), "height": STRIP[1]}
            hint = element("title", f"{step}: {owner}, {seconds:.1f} s")
            yield element("rect", hint, x=x, y=STRIP[0], css=f"owner{number}", **size)
    x = scale(begin)
    yield line(x, STRIP[0], x, STRIP[0] + STRIP[1], "edge")
    if len(step) * CHARACTER < scale(end) - x:
        yield text(x + 4, STRIP[0] + 18, step, "small on")
