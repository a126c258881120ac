"""Options that name the pair of clusters: settings, or an Airflow connection."""

import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Final

from airflow_mm2_offsets.cli.numbers import MOST_SECONDS, Number
from airflow_mm2_offsets.cli.params import Option
from airflow_mm2_offsets.errors import ArchiveError, ConfigurationError, as_class

if TYPE_CHECKING:
    from upath import UPath

    from airflow_mm2_offsets.archive import SyncArchive
    from airflow_mm2_offsets.clusters import ClusterPair
    from airflow_mm2_offsets.config import Settings

_WITH_CONNECTION: Final = re.compile(r"[a-z][\w+.-]*://[^/@:]+@")
"""A location that names an Airflow connection: ``s3://conn_id@bucket/folder``."""

ConfigFile = Annotated[
    Path | None,
    Option(
        "--config",
        metavar="FILE",
        help="Settings of both clusters (.properties, .toml), or MirrorMaker 2's own file: "
        "mm2.properties, a connector's .json, Strimzi's .yaml. Variables MM2_OFFSETS_* take "
        "precedence; see docs/settings.md.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """Which pair of clusters to use."""

    config: ConfigFile = None
    conn_id: Annotated[
        str | None,
        Option("--conn-id", metavar="ID", help="Take an Airflow connection of type mm2 instead."),
    ] = None
    timeout: Annotated[
        float,
        Option(
            "--timeout",
            metavar="SECONDS",
            type=Number(float, 0.1, MOST_SECONDS),
            help="How long a broker may be silent.",
        ),
    ] = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """The pair that the options name, its archive, and its storage."""

    pair: "ClusterPair"
    archive_location: str | None
    """The archive of the settings."""
    open: "Callable[[str], UPath]"
    """Makes a path of a location on any storage."""

    def archive(self, location: str | None, *, skip_damaged: bool = False) -> "SyncArchive | None":
        """Return the archive at a location, or the one of the settings, if there is one."""
        from airflow_mm2_offsets.archive import SyncArchive

        chosen = location or self.archive_location
        return SyncArchive(self.open(chosen), skip_damaged=skip_damaged) if chosen else None


def find_clusters(options: ClusterOptions) -> Clusters:
    """Return the pair of clusters that the options name; no request is sent.

    Raises:
        ConfigurationError: They name none, or two, or a setting is wrong.
    """
    if options.conn_id is None:
        settings = load(options.config, os.environ)
        return Clusters(
            pair=settings.pair(options.timeout),
            archive_location=settings.archive_location,
            open=open_path,
        )
    if options.config is not None:
        raise ConfigurationError("--config and --conn-id are both given; give one of them")
    return _of_airflow(options.conn_id, options.timeout)


def open_path(location: str) -> "UPath":
    """Return a path on any storage that fsspec knows; one with a connection needs Airflow."""
    from airflow_mm2_offsets.locations import spark_location
    from airflow_mm2_offsets.storage import open_location

    if _WITH_CONNECTION.match(location) and spark_location(location) is None:
        return _import_hook("storage", location).storage_path(location)  # type: ignore[no-any-return]
    return open_location(location, ArchiveError)


def load(config: Path | None, environ: Mapping[str, str]) -> "Settings":
    """Return the settings of a file and of the environment; see ``load_settings``."""
    from airflow_mm2_offsets.config import load_settings
    from airflow_mm2_offsets.config.keys import CONFIG_VARIABLE

    try:
        return load_settings(config, environ)
    except ConfigurationError as error:
        if config or environ.get(CONFIG_VARIABLE):
            raise
        message = f"{error}. Name the settings file by --config FILE"
        raise as_class(ConfigurationError, error, message) from error


def _of_airflow(conn_id: str, timeout: float) -> Clusters:
    hook = _import_hook("mm2", "--conn-id").Mm2OffsetHook
    with redirect_stdout(sys.stderr):
        pair = hook(conn_id, timeout=timeout).get_conn()
    storage_path = _import_hook("storage", "--conn-id").storage_path
    return Clusters(pair=pair, archive_location=None, open=storage_path)


def _import_hook(name: str, asked_by: str) -> ModuleType:
    """Return a module of Airflow's side.

    Raises:
        ConfigurationError: Airflow is not installed.
    """
    # As Airflow's `connections test` does: this reads its database as well as secrets backends.
    os.environ.setdefault("_AIRFLOW_PROCESS_CONTEXT", "server")
    try:
        # Airflow logs to stdout, which must hold only the answer.
        with redirect_stdout(sys.stderr):
            return import_module(f"airflow_mm2_offsets.hooks.{name}")
    except ImportError as error:
        raise ConfigurationError(
            f"{asked_by} needs Airflow ({error}); install airflow-mm2-offsets[airflow], or name "
            f"what it stands for: clusters by --config, a location without a connection"
        ) from error
