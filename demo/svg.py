"""The parts that a picture is drawn of: scales, elements and texts of SVG."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

NICE = (1, 2, 5)
"""What the distance of two ticks begins with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Maps numbers to a length on the page.

    Attributes:
        low: The lowest number.
        high: The highest number, above ``low``.
        begin: Where the lowest is drawn.
        end: Where the highest is drawn.
    """

    low: float
    high: float
    begin: float
    end: float

    def __call__(self, number: float) -> float:
        """Return where a number is drawn."""
        share = (number - self.low) / (self.high - self.low)
        return round(self.begin + share * (self.end - self.begin), 1)

    def ticks(self, count: int) -> Sequence[float]:
        """Return about ``count`` round numbers within the scale."""
        rough = (self.high - self.low) / count
        power = 10 ** math.floor(math.log10(rough))
        distance = next((nice * power for nice in NICE if nice * power >= rough), 10 * power)
        first = math.ceil(self.low / distance)
        last = math.floor(self.high / distance)
        return [number * distance for number in range(first, last + 1)]


def element(name: str, content: str = "", **attributes: object) -> str:
    """Return an element; ``css`` is its class, and ``_`` stands for ``-`` in attributes' names."""
    pairs = {
        "class" if key == "css" else key.replace("_", "-"): to for key, to in attributes.items()
    }
    inner = "".join(f' {key}="{escape(str(to))}"' for key, to in pairs.items())
    return f"<{name}{inner}>{content}</{name}>" if content else f"<{name}{inner}/>"


def text(x: float, y: float, words: str, css: str = "", anchor: str = "start") -> str:
    """Return a text whose base line begins, has its middle or ends at a point."""
    return element("text", escape(words), x=x, y=y, css=f"{css} {anchor}".strip())


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    """Return a straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, css=css)


def stairs(points: Iterable[tuple[float, float]], css: str) -> str:
    """Return a line that stays at each value until the next point."""
    path = ""
    for x, y in points:
        path += f"H{x}V{y}" if path else f"M{x} {y}"
    return element("path", d=path, css=css)


def document(size: tuple[int, int], title: str, described: str, style: str, body: str) -> str:
    """Return a whole picture, which a screen reader can read, too."""
    width, height = size
    head = element("title", escape(title), id="title")
    head += element("desc", escape(described), id="desc")
    picture = element(
        "svg",
        f"\n{head}\n{element('style', style)}\n{body}\n",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        aria_labelledby="title desc",
    )
    return f"{picture}\n"
