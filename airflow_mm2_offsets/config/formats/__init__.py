"""The formats of settings files: ``.properties``, ``.toml``, ``.yaml`` and ``.json``.

``read_documents`` is called by ``sources``; what the documents mean is not decided here.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

from airflow_mm2_offsets.config.formats.document import Document
from airflow_mm2_offsets.config.formats.properties import parse_properties
from airflow_mm2_offsets.config.formats.yaml import parse_yaml
from airflow_mm2_offsets.errors import ConfigurationError

_TOML_PLACE = re.compile(r"\((at [^()]+)\)$")
YAML_SUFFIXES = (".yaml", ".yml")


def read_documents(file: Path) -> list[Document]:
    """Return the documents of a settings file; only YAML and properties may have several.

    Raises:
        ConfigurationError: The file can't be read or parsed. The message quotes nothing of it: any
            part of it may be a secret.
    """
    try:
        return _PARSERS.get(file.suffix.lower(), parse_properties)(_read(file))
    except ConfigurationError as error:
        raise ConfigurationError(str(error), file=str(file)) from None


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigurationError(
            f"can't be read: {error.strerror}; check the path of the settings file and its "
            f"permissions"
        ) from error
    except UnicodeDecodeError:
        raise ConfigurationError(
            "is not text in UTF-8; name a .properties, .toml, .yaml or .json file"
        ) from None


def _parse_toml(text: str) -> list[Document]:
    try:
        return [Document(content=tomllib.loads(text))]
    except tomllib.TOMLDecodeError as error:
        # The library's message may quote a key.
        place = _TOML_PLACE.search(str(error))
        where = f" {place[1]}" if place else ""
        raise ConfigurationError(f"is not valid TOML{where}; correct it") from None


def _parse_json(text: str) -> list[Document]:
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigurationError(
            f"is not valid JSON at line {error.lineno}, column {error.colno}; correct it"
        ) from None
    if not isinstance(content, dict):
        raise ConfigurationError("is not a JSON object; correct it")
    return [Document(content=content)]


_PARSERS: Mapping[str, Callable[[str], list[Document]]] = {
    ".toml": _parse_toml,
    ".json": _parse_json,
    **dict.fromkeys(YAML_SUFFIXES, parse_yaml),
}
