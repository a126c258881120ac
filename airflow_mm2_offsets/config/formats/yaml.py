"""YAML, of which only mm2-offset-map's settings and Strimzi's resources are read."""

import json
from importlib import import_module
from typing import Any

from airflow_mm2_offsets.config.formats.document import Document
from airflow_mm2_offsets.errors import ConfigurationError


def parse_yaml(text: str) -> list[Document]:
    """Parse a file of one or several documents.

    Raises:
        ConfigurationError: It is not YAML, or PyYAML is not installed. The message has line and
            column; PyYAML's own message would quote the line, which may be a secret.
    """
    yaml = _pyyaml()
    try:
        documents = [content for content in yaml.safe_load_all(text) if content is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigurationError(
            f"is not valid YAML{place}; correct it (quote texts with special characters)"
        ) from None
    except ValueError:
        # PyYAML raises it for a number or a date that can't be, such as 2024-13-01.
        raise ConfigurationError("is not valid YAML: quote dates and numbers") from None
    _refuse_cycles(documents)
    if not all(isinstance(content, dict) for content in documents):
        raise ConfigurationError("is not valid YAML of settings: a document is not a table")
    return [Document(content=content) for content in documents]


def _refuse_cycles(documents: list[Any]) -> None:
    try:
        json.dumps(documents, default=str, skipkeys=True)
    except (ValueError, RecursionError):
        raise ConfigurationError(
            "is not valid YAML of settings: an anchor (&name) contains itself (*name), or tables "
            "are too deep; write the values out"
        ) from None


def _pyyaml() -> Any:  # noqa: ANN401 - a module
    # Loaded here: a settings file in another format needs no PyYAML.
    try:
        return import_module("yaml")
    except ImportError as error:
        raise ConfigurationError(
            "settings in YAML need PyYAML; install airflow-mm2-offsets[cli] or "
            "airflow-mm2-offsets[api], or write them as .properties or .toml"
        ) from error
