"""Java's properties files, and what people paste into them by mistake."""

import re
from collections.abc import Iterator

import javaproperties

from airflow_mm2_offsets.config.formats.document import Document
from airflow_mm2_offsets.errors import ConfigurationError

_LINE_END = re.compile(r"\r\n|\r|\n")
_MARK = re.compile(r"[=:]")
_SEPARATORS = ("#---", "!---")
_PEM_MARK = re.compile(r"-----(BEGIN|END)")
_BASE64 = re.compile(r"(?=.*[0-9A-Z+/])[A-Za-z0-9+/]{24,}")


def parse_properties(text: str) -> list[Document]:
    """Parse a file as ``java.util.Properties`` reads it.

    A line ``#---`` begins a new document, as in Spring Boot ("Working With Multi-Document Files");
    to others it is a comment.

    Raises:
        ConfigurationError: An escape is broken, or lines look like a PEM text that was pasted
            without continuations: Java would read each as a key of its own.
    """
    documents: list[tuple[dict[str, str], dict[str, int]]] = [({}, {})]
    pasted: list[int] = []
    lone_words: set[str] = set()
    for line, element in _elements(text):
        if isinstance(element, javaproperties.KeyValue):
            values, lines = documents[-1]
            values[element.key], lines[element.key] = element.value, line
            if _is_lone_word(element):
                lone_words.add(element.key)
            if _looks_pasted(element.key):
                pasted.append(line)
        elif element.source.strip() in _SEPARATORS:
            documents.append(({}, {}))
    if pasted:
        raise ConfigurationError(
            f"{_lines(pasted)} like a part of a PEM text or a key, not like a setting; end each "
            f"line of the text but the last with \\n\\ , or name a file (ssl.ca.location, "
            f"ssl.certificate.location, ssl.key.location)"
        )
    return [
        Document(content=values, lines=lines, lone_words=lone_words) for values, lines in documents
    ]


def _elements(text: str) -> Iterator[tuple[int, javaproperties.PropertiesElement]]:
    line = 1
    try:
        for element in javaproperties.parse(text):
            yield line, element
            line += len(_LINE_END.findall(element.source))
    except javaproperties.InvalidUEscapeError:
        # The library's message quotes the value, which may be a secret.
        raise ConfigurationError(
            f"line {line} has \\u without four hexadecimal digits; write a backslash as \\\\"
        ) from None


def _is_lone_word(element: javaproperties.KeyValue) -> bool:
    """Tell whether a key is a word without a dot, and without an equals sign or a value."""
    has_value = _MARK.search(element.source) and element.value
    return "." not in element.key and not has_value


def _looks_pasted(key: str) -> bool:
    return bool(_PEM_MARK.match(key) or _BASE64.fullmatch(key))


def _lines(numbers: list[int]) -> str:
    first, last = numbers[0], numbers[-1]
    return f"line {first} looks" if first == last else f"lines {first} to {last} look"
