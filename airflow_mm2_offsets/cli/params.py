"""Declares options and arguments, as annotations of a function's parameters, for ``command``.

Click reads no annotations. Typer does, and takes 0.15 s of a processor to begin.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from inspect import Parameter
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args

import click

from airflow_mm2_offsets.cli.numbers import AnyParamType, Number
from airflow_mm2_offsets.core.times import parse_zoned
from airflow_mm2_offsets.planning.options import EXAMPLE_TIME

if TYPE_CHECKING:
    _Choice = click.Choice[Any]
else:
    _Choice = click.Choice


class Option:
    """An option: its flags, and what Click is to know of it beside its type and its default."""

    def __init__(self, *flags: str, **attributes: Any) -> None:
        """Keep them; see ``click.Option`` for the attributes."""
        self.flags = flags
        self.attributes = attributes


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An argument, with its explanation."""

    metavar: str
    help: str


class ExplainedArgument(click.Argument):
    """An argument whose explanation the help and the man page show."""

    shown_name: str = ""
    explanation: str = ""


class OneOf(_Choice):
    """A member of an enumeration, by its value."""

    def __init__(self, kind: type[Enum]) -> None:
        """Offer the values."""
        super().__init__([str(each.value) for each in kind])
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - Click's
        """Return the member of a value."""
        if isinstance(value, self.kind):
            return value
        return self.kind(super().convert(value, param, ctx))


class ZonedTime(AnyParamType):
    """A time with its zone."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - Click's
        """Return the time of a text."""
        time = value if isinstance(value, datetime) else parse_zoned(value)
        if time is None:
            self.fail(f"{value!r} is not a time with its zone, such as {EXAMPLE_TIME}", param, ctx)
        return time


def parameter_of(parameter: Parameter) -> click.Parameter:
    """Return Click's parameter of a function's parameter, which an ``Option`` or so annotates."""
    kind, declared = get_args(parameter.annotation)[:2]
    required = parameter.default is Parameter.empty
    attributes: dict[str, Any] = {"required": required}
    if not required and parameter.default is not None:
        attributes["default"] = _text(parameter.default)
    if isinstance(declared, Argument):
        return _argument(parameter.name, kind, declared, attributes)
    return _option(parameter.name, kind, declared, attributes)


def _argument(
    name: str,
    kind: Any,  # noqa: ANN401 - a type
    declared: Argument,
    attributes: dict[str, Any],
) -> ExplainedArgument:
    usage = declared.metavar
    if _is_list(kind):
        attributes |= {"nargs": -1, "callback": _as_list}
        usage += "..."
    if not attributes["required"]:
        usage = f"[{usage}]"
    attributes["type"] = _type(name, kind, {})
    made = ExplainedArgument([name], metavar=usage, **attributes)
    made.shown_name, made.explanation = declared.metavar, declared.help
    return made


def _option(
    name: str,
    kind: Any,  # noqa: ANN401 - a type
    declared: Option,
    attributes: dict[str, Any],
) -> click.Option:
    attributes = {"type": _type(name, kind, declared.attributes), **attributes}
    attributes |= {key: at for key, at in declared.attributes.items() if key not in _OF_PATHS}
    if _is_list(kind):
        attributes |= {"multiple": True, "callback": _as_list}
    if isinstance(attributes["type"], Number):
        attributes["help"] = attributes["type"].explain(attributes["help"])
    if kind is bool:
        attributes |= {"is_flag": True, "type": None}
        if "/" not in declared.flags[0]:
            attributes.pop("default", None)
    return click.Option([name, *declared.flags], show_default=True, **attributes)


_OF_PATHS = ("exists", "dir_okay")


def _type(name: str, kind: Any, attributes: Mapping[str, Any]) -> AnyParamType:  # noqa: ANN401
    """Return what parses an option's text; ``None`` beside its type is left out."""
    if "type" in attributes:
        return attributes["type"]  # type: ignore[no-any-return]
    kinds = [each for each in get_args(kind) or [kind] if each is not NoneType]
    plain = kinds[0]
    if plain in {int, float}:
        raise TypeError(f"{name}: give the limits of the number, by type=Number(...)")
    if plain is Path:
        checks = {key: attributes[key] for key in _OF_PATHS if key in attributes}
        return click.Path(path_type=Path, **checks)
    if plain is datetime:
        return ZonedTime()
    if isinstance(plain, type) and issubclass(plain, Enum):
        return OneOf(plain)
    return click.STRING


def _text(default: Any) -> Any:  # noqa: ANN401 - of any type
    """Return a default as a user would write it: the help shows it."""
    return str(default.value) if isinstance(default, Enum) else default


def _is_list(kind: Any) -> bool:  # noqa: ANN401 - a type
    return list[str] in {kind, *get_args(kind)}


def _as_list(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> list[str]:
    return [*values]
