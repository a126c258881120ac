"""The JAAS text of ``sasl.jaas.config``: read by Kafka's own rules, and written so that it reads.

The grammar is that of Kafka's ``JaasConfig``, ``module flag (option=value)*;``, split into tokens
as Java's ``StreamTokenizer`` does: words, quoted strings with escapes, and comments. ``login``
reads with it, ``java`` writes.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

JAAS_CONFIG = "sasl.jaas.config"
"""Java's property of the text."""
_TOKEN = re.compile(
    r"""
    (?P<space>[\x00-\x20]+ | /\*.*?\*/ | /[^\n\r]*)
  | (?P<quoted>"(?:\\.|[^"\\\n\r])*" | '(?:\\.|[^'\\\n\r])*')
  | (?P<mark>[=;])
  | (?P<word>[^\x00-\x20"'/=;]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})


class JaasError(ValueError):
    """A JAAS text that Kafka refuses too; the message shows no value of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginEntry:
    """One login module and its options."""

    module: str
    """The full name of the Java class."""
    options: Mapping[str, str] = field(repr=False)


def parse_jaas(text: str) -> LoginEntry:
    """Return the login module of a JAAS text.

    Raises:
        JaasError: It does not have the form, or it has several login modules. Kafka's client
            allows one.
    """
    tokens = _tokens(text)
    kind, module = next(tokens, ("end", ""))
    flag = next(tokens, ("end", ""))[1]
    if kind == "mark" or not module or flag.lower() not in _FLAGS:
        raise JaasError("it begins with the login module's class and the word required")
    options = dict(_options(tokens))
    if next(tokens, None) is not None:
        raise JaasError("text follows the semicolon; give one login module")
    return LoginEntry(module=module, options=options)


def format_jaas(module: str, options: Mapping[str, str]) -> str:
    """Return the JAAS text of a login module."""
    listed = "".join(f" {name}={_quoted(value)}" for name, value in options.items())
    return f"{module} required{listed};"


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise JaasError("a quotation mark is not closed on its line")
        position = match.end()
        kind = match.lastgroup or ""
        if kind == "quoted":
            yield kind, _ESCAPE.sub(_unescape, match[0][1:-1])
        elif kind != "space":
            yield kind, match[0]


def _options(tokens: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield each option and its value, up to the semicolon."""
    for kind, name in tokens:
        if (kind, name) == ("mark", ";"):
            return
        equals, (value_kind, value) = next(tokens, None), next(tokens, ("mark", ""))
        if kind == "mark" or equals != ("mark", "=") or value_kind == "mark":
            raise JaasError(
                "each option has the form name=value; put a value that has a slash, a semicolon, "
                "a blank or an equals sign between double quotes"
            )
        yield name, value
    raise JaasError("the semicolon at the end is missing")


def _unescape(match: re.Match[str]) -> str:
    text = match[1]
    return chr(int(text, 8)) if text.isdecimal() and text < "8" else _ESCAPED.get(text, text)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    # A quoted string of StreamTokenizer ends at the end of a line.
    escaped = escaped.replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
