"""Renders the page's templates: every value is escaped, and shown without logins.

No script or style stands in a page.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

from fastapi.responses import HTMLResponse, Response
from jinja2 import ChainableUndefined, Environment, PackageLoader
from markupsafe import Markup

from airflow_mm2_offsets.logins import without_login
from airflow_mm2_offsets.moves.status import MoveStatus
from airflow_mm2_offsets.operators.links import airflow_address, run_address
from airflow_mm2_offsets.plugins.page import plots
from airflow_mm2_offsets.plugins.page.overview import label_of, log_of
from airflow_mm2_offsets.plugins.page.plan_table import kind_of, name_of

HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
        "form-action 'self'; frame-ancestors 'self'; base-uri 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
)
"""Of every answer: nothing is loaded from elsewhere, framed elsewhere, or kept."""
ASSETS: Mapping[str, str] = {"page.css": "text/css", "page.js": "text/javascript"}
AIRFLOW = "../../"
"""Airflow's own address, as each page sees it."""
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def render(template: str, status: int = HTTPStatus.OK, **values: Any) -> HTMLResponse:
    """Return a page.

    Args:
        template: The name of a file in ``templates``, without ``.html``.
        status: The HTTP status.
        values: What the template shows.
    """
    text = _environment().get_template(f"{template}.html").render(values)
    return HTMLResponse(text, status, HEADERS)


def asset(name: str) -> Response:
    """Return one of ``ASSETS``."""
    content = files(__package__).joinpath("static", name).read_bytes()
    return Response(content, headers=HEADERS, media_type=ASSETS[name])


def duration(seconds: float | None) -> str:
    """Return a number of seconds as people say it, such as ``2 min 5 s``."""
    if seconds is None:
        return "unknown"
    if seconds < _MINUTE:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"  # noqa: PLR2004
    if seconds < _HOUR:
        return f"{seconds // _MINUTE:.0f} min {seconds % _MINUTE:.0f} s"
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR:.0f} h {seconds % _HOUR // _MINUTE:.0f} min"
    return f"{seconds / _DAY:.0f} days"


def ago(time: datetime | str | None) -> str:
    """Return how long ago a time was; a text is ISO 8601."""
    if isinstance(time, str):
        try:
            return ago(datetime.fromisoformat(time))
        except ValueError:
            return time
    if not isinstance(time, datetime) or time.tzinfo is None:
        return "unknown"
    return f"{duration(max(0.0, (datetime.now(UTC) - time).total_seconds()))} ago"


def clock(time: datetime | int | None) -> str:
    """Return a time in UTC; a number is milliseconds since 1970, and may be a producer's."""
    if isinstance(time, int):
        time = _moment(time)
    return "unknown" if time is None else f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def span(begin: int, end: int) -> tuple[str, str]:
    """Return both ends of an axis in UTC, given in milliseconds since 1970.

    Within a day they are times alone.
    """
    form = "%H:%M:%S" if end - begin < _DAY * 1000 else "%Y-%m-%d"
    times = [_moment(each) for each in (begin, end)]
    first, last = (f"{each:{form}}" if each else "unknown" for each in times)
    return first, last


def _moment(milliseconds: int) -> datetime | None:
    """Return a time; None where the calendar has none."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def words(name: object) -> str:
    """Return a name such as ``failed_before_stop`` as words."""
    return str(name).replace("_", " ")


def downtime(status: MoveStatus) -> float | None:
    """Return for how many seconds a move's job has not run, so far or in all."""
    return status.downtime(datetime.now(UTC))


def without_secrets(value: object) -> object:
    """Return what a template shows, with the login of each location in it hidden."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return without_login(value)
    return value


def reread(count: int | None) -> str:
    """Return the most records that are read again."""
    return f"at most {count}" if isinstance(count, int) else "unknown"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        finalize=without_secrets,
        # Plans of other releases may lack a field.
        undefined=ChainableUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "ago": ago,
        "airflow": lambda address: f"{AIRFLOW}{address}",
        "clock": clock,
        "downtime": downtime,
        "duration": duration,
        "kind": kind_of,
        "label": label_of,
        "log": log_of,
        "name": name_of,
        "query": lambda values: urlencode(dict(values)),
        "reread": reread,
        "span": span,
        "words": words,
    }
    environment.globals |= {
        "WIDTH": plots.WIDTH,
        "HEIGHT": plots.HEIGHT,
        "airflow_address": airflow_address,
        "run_address": run_address,
    }
    return environment
