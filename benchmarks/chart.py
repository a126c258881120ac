"""Bar charts as SVG, on a scale where each line is ten times the one before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

_LEFT, _WIDTH, _RIGHT = 230, 480, 130
_BAR, _GAP, _TOP, _LINE = 14, 12, 64, 16
_COLOURS = ("#0b6e4f", "#5bb98c", "#b5651d", "#c1272d", "#7a7a7a")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar of a group."""

    series: str
    value: float
    label: str
    """What is written behind it."""


def chart(title: str, groups: Mapping[str, Sequence[Bar]], *, least: float) -> str:
    """Return a chart with one group of bars below the other.

    Args:
        title: Its heading, with the unit.
        groups: The bars by the name of their group.
        least: Where the scale begins; a smaller value has a bar of no length.
    """
    bars = [bar for group in groups.values() for bar in group]
    scale = _Scale(low=floor(log10(least)), high=ceil(log10(max(bar.value for bar in bars))))
    series = list(dict.fromkeys(bar.series for bar in bars))
    colours = dict(zip(series, _COLOURS, strict=False))
    body, y = _legend(colours), _TOP
    for name, group in groups.items():
        middle = y + len(group) * _BAR / 2 + 4
        body.append(_text(_LEFT - 8, middle, name, anchor="end"))
        for bar in group:
            body.append(_bar(y, scale.x(bar.value), bar, colours[bar.series]))
            y += _BAR
        y += _GAP
    return _document(title, [*scale.lines(_TOP - 6, y - _GAP + 6), *body], y + _LINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    low: int
    high: int

    def x(self, value: float) -> float:
        power = log10(value) if value > 0 else self.low
        return _LEFT + _WIDTH * max(0, power - self.low) / (self.high - self.low)

    def lines(self, top: float, bottom: float) -> list[str]:
        drawn = []
        for power in range(self.low, self.high + 1):
            x = self.x(10.0**power)
            drawn.append(
                f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}" stroke="#ddd"/>'
            )
            drawn.append(_text(x, bottom + _LINE, f"{10.0**power:,g}", anchor="middle"))
        return drawn


def _legend(colours: Mapping[str, str]) -> list[str]:
    drawn, x = [], _LEFT
    for series, colour in colours.items():
        drawn.append(f'<rect x="{x}" y="32" width="10" height="10" fill="{colour}"/>')
        drawn.append(_text(x + 15, 41, series))
        x += 40 + 7 * len(series)
    return drawn


def _bar(y: float, end: float, bar: Bar, colour: str) -> str:
    width = max(end - _LEFT, 1)
    rect = f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR - 2}" fill="{colour}"/>'
    return rect + _text(_LEFT + width + 5, y + _BAR - 4, bar.label)


def _text(x: float, y: float, text: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _document(title: str, body: Sequence[str], height: float) -> str:
    width = _LEFT + _WIDTH + _RIGHT
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height + 8:.0f}" '
        f'viewBox="0 0 {width} {height + 8:.0f}" font-family="sans-serif" font-size="11">'
    )
    background = '<rect width="100%" height="100%" fill="white"/>'
    heading = f'<text x="{_LEFT}" y="20" font-size="14">{escape(title)}</text>'
    return "\n".join([head, background, heading, *body, "</svg>"]) + "\n"
