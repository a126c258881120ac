"""Settings as texts, read from a file and from the environment, each with its origin.

``load_settings`` calls ``read_entries``; the reader makes typed values of the entries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from airflow_mm2_offsets.config.entries import Entries, Entry
from airflow_mm2_offsets.config.formats import YAML_SUFFIXES, read_documents
from airflow_mm2_offsets.config.keys import (
    CLIENT_PREFIXES,
    CONFIG_VARIABLE,
    ENV_PREFIX,
    KEYS,
    SOURCE_ALIAS,
    SYNCS_TOPIC,
    TARGET_ALIAS,
    key_of,
)
from airflow_mm2_offsets.config.kubernetes_links import is_service_link
from airflow_mm2_offsets.config.mirror_maker import read_mirror_maker
from airflow_mm2_offsets.config.mirror_maker.connector import connector_settings
from airflow_mm2_offsets.config.mirror_maker.flows import MirrorFlow, MirrorMakerFile, choose_flow
from airflow_mm2_offsets.config.mm2_offset_map_compat import (
    DEFAULT_TOPIC,
    looks_like_mm2_offset_map,
)
from airflow_mm2_offsets.config.replacing import require_values, without_replaced
from airflow_mm2_offsets.config.spring import SpringSettings, read_spring_json
from airflow_mm2_offsets.config.spring.documents import merge_active_documents
from airflow_mm2_offsets.errors import ConfigurationError

_ALIASES = (SOURCE_ALIAS, TARGET_ALIAS)
_CLIENT_PREFIXES = tuple(f"{prefix}." for prefix in CLIENT_PREFIXES)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileContent:
    """A settings file: a MirrorMaker 2's, or one of this package and mm2-offset-map."""

    mirror_maker: MirrorMakerFile | None = None
    ours: Entries = field(default_factory=dict, repr=False)
    """This package's keys, and unknown ones, which the reader refuses."""
    spring: Entries = field(default_factory=dict, repr=False)
    """All keys, which mm2-offset-map's may refer to."""


def read_entries(file: Path | None, environ: Mapping[str, str]) -> Entries:
    """Return every setting by its key; see ``load_settings``."""
    environ = _without_empty(environ)
    file = _settings_file(file, environ)
    spring_json = read_spring_json(environ)
    content = _read_file(file, environ, spring_json) if file else _FileContent()
    spring = SpringSettings(file=content.spring, environ=environ, json=spring_json)
    theirs = spring.of_environment()
    variables = theirs | _read_variables(environ)
    if file and content.mirror_maker:
        return _of_mirror_maker(content.mirror_maker, file, variables, environ)
    in_file = spring.of_file()
    return _with_default_topic(in_file | content.ours | variables, in_file | theirs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredFlows:
    """The flows of a file of MirrorMaker 2, with the settings of their connectors."""

    meant: Sequence[MirrorFlow]
    """The flow that is chosen; all that are enabled, if none is."""
    all: Sequence[MirrorFlow]


def read_mirror_flows(file: Path | None, environ: Mapping[str, str]) -> ConfiguredFlows | None:
    """Return the flows of the settings file; None if it is not one of MirrorMaker 2.

    Values that a config provider or Kubernetes holds are not asked for.

    Raises:
        ConfigurationError: The file can't be read, or a flow in it is incomplete.
    """
    environ = _without_empty(environ)
    file = _settings_file(file, environ)
    content = read_mirror_maker(read_documents(file), file) if file else None
    if content is None:
        return None
    try:
        meant = [_choose(content, _read_variables(environ))]
    except ConfigurationError:
        meant = [flow for flow in content.flows if flow.enabled]
    return ConfiguredFlows(meant=meant, all=content.flows)


def _without_empty(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables that are set: docker compose and Helm set one without a value to ``""``.

    An empty text switches off some protections of Kafka's clients, which nobody meant then.
    """
    return {variable: value for variable, value in environ.items() if value}


def _settings_file(file: Path | None, environ: Mapping[str, str]) -> Path | None:
    named = environ.get(CONFIG_VARIABLE)
    return Path(named) if file is None and named else file


def _choose(content: MirrorMakerFile, variables: Entries) -> MirrorFlow:
    settings = content.settings | variables
    return choose_flow(content.flows, *(settings.get(key) for key in _ALIASES))


def _read_file(file: Path, environ: Mapping[str, str], spring_json: Entries) -> _FileContent:
    documents = read_documents(file)
    if mirror_maker := read_mirror_maker(documents, file):
        return _FileContent(mirror_maker=mirror_maker)
    entries = [document.entries(file) for document in documents]
    spring = merge_active_documents(entries, environ, spring_json)
    return _FileContent(spring=spring, ours=_our_entries(spring, file))


def _our_entries(entries: Entries, file: Path) -> Entries:
    """Return what is left for this package once mm2-offset-map's keys are taken.

    The other keys of an application.yaml or application.properties configure Spring.
    """
    is_spring = any(map(looks_like_mm2_offset_map, entries))
    if file.suffix.lower() in YAML_SUFFIXES:
        if not is_spring and entries:
            raise ConfigurationError(
                "no key begins with mm2.offset-map, and it is not a KafkaMirrorMaker2; no other "
                "key is read from YAML: write other settings as .properties or .toml",
                file=str(file),
            )
        return {}
    return {
        key: entry
        for key, entry in entries.items()
        if not looks_like_mm2_offset_map(key)
        and (not is_spring or key in KEYS or key.startswith(_CLIENT_PREFIXES))
    }


def _read_variables(environ: Mapping[str, str]) -> Entries:
    return {
        key_of(variable): Entry(value=value, origin=f"variable {variable}")
        for variable, value in environ.items()
        if variable.startswith(ENV_PREFIX)
        and variable != CONFIG_VARIABLE
        and not is_service_link(variable, value)
    }


def _of_mirror_maker(
    content: MirrorMakerFile, file: Path, variables: Entries, environ: Mapping[str, str]
) -> Entries:
    try:
        flow = _choose(content, variables)
    except ConfigurationError as error:
        raise ConfigurationError(str(error), file=str(file)) from None
    settings = connector_settings(flow.connector)
    settings |= {key: each for key, each in content.settings.items() if key not in _ALIASES}
    variables = {key: each for key, each in variables.items() if key not in _ALIASES}
    settings = without_replaced(content.providers.resolve(settings, environ), variables)
    require_values(settings)
    return settings | variables


def _with_default_topic(entries: Entries, theirs: Entries) -> Entries:
    """Add the topic that mm2-offset-map would read, where it alone names the source's alias."""
    alias = theirs.get(SOURCE_ALIAS)
    if alias is None or entries[SOURCE_ALIAS] != alias or SYNCS_TOPIC in entries:
        return entries
    return entries | {SYNCS_TOPIC: replace(alias, value=DEFAULT_TOPIC)}
