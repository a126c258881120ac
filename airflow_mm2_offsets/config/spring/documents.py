"""The documents of an application.yaml or application.properties that Spring Boot would use.

"Working With Multi-Document Files" and "Activation Properties" in Spring Boot's reference.
"""

import re
from collections.abc import Iterable, Mapping

from airflow_mm2_offsets.config.entries import Entries
from airflow_mm2_offsets.errors import ConfigurationError

_ON_PROFILE = ("spring.config.activate.on-profile", "spring.profiles")
"""The second is Spring Boot's name before 2.4."""
_ON_PLATFORM = "spring.config.activate.on-cloud-platform"
_ACTIVE = "spring.profiles.active"
_ACTIVE_VARIABLE = "SPRING_PROFILES_ACTIVE"
_DEFAULT_PROFILE = "default"
_TOKEN = re.compile(r"\s*([()&|!]|[^()&|!\s]+)")


def merge_active_documents(
    documents: Iterable[Entries], environ: Mapping[str, str], spring_json: Entries
) -> Entries:
    """Return the keys of all active documents; a later document takes precedence.

    Profiles are active by ``spring.profiles.active``: in ``SPRING_APPLICATION_JSON``, the variable
    ``SPRING_PROFILES_ACTIVE``, or the file.

    Raises:
        ConfigurationError: A profile expression is malformed, or a document's condition can't be
            decided here.
    """
    documents = [*documents]
    profiles = _active_profiles(documents, environ, spring_json)
    merged: Entries = {}
    for document in documents:
        if _is_active(document, profiles):
            merged |= document
    return merged


def _active_profiles(
    documents: list[Entries], environ: Mapping[str, str], spring_json: Entries
) -> frozenset[str]:
    in_file = [document[_ACTIVE].value for document in documents if _ACTIVE in document]
    in_json = [spring_json[_ACTIVE].value] if _ACTIVE in spring_json else []
    candidates = [*in_json, environ.get(_ACTIVE_VARIABLE, ""), *in_file[-1:], _DEFAULT_PROFILE]
    chosen = next(text for text in candidates if text.strip())
    return frozenset(name.strip() for name in chosen.split(",") if name.strip())


def _is_active(document: Entries, profiles: frozenset[str]) -> bool:
    if platform := document.get(_ON_PLATFORM):
        raise ConfigurationError(
            "makes a document depend on a cloud platform, which is not known here; move its "
            "settings to a file of their own, and name that",
            setting=platform.origin,
        )
    for key in _ON_PROFILE:
        if entry := document.get(key):
            try:
                return any(_matches(each, profiles) for each in entry.value.split(","))
            except ValueError:
                raise ConfigurationError(
                    "is not a profile expression; write one like: production & (eu | us)",
                    setting=entry.origin,
                ) from None
    return True


def _matches(expression: str, profiles: frozenset[str]) -> bool:
    """Evaluate a profile expression, as Spring's ``ProfilesParser``.

    Raises:
        ValueError: It is malformed, or mixes ``&`` and ``|`` without parentheses.
    """
    tokens = _TOKEN.findall(expression)
    value = _operation(tokens, profiles)
    if tokens:
        raise ValueError(expression)
    return value


def _operation(tokens: list[str], profiles: frozenset[str]) -> bool:
    values = [_operand(tokens, profiles)]
    operators = set()
    while tokens and tokens[0] in {"&", "|"}:
        operators.add(tokens.pop(0))
        values.append(_operand(tokens, profiles))
    if len(operators) > 1:
        raise ValueError(operators)
    return any(values) if operators == {"|"} else all(values)


def _operand(parts: list[str], profiles: frozenset[str]) -> bool:
    part = parts.pop(0) if parts else ""
    if part == "!":
        return not _operand(parts, profiles)
    if part == "(":
        value = _operation(parts, profiles)
        if not parts or parts.pop(0) != ")":
            raise ValueError(part)
        return value
    if part in {"", ")", "&", "|"}:
        raise ValueError(part)
    return part in profiles
