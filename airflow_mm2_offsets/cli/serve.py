"""``serve``: the REST API, standalone."""

import logging
import os
import sys
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from airflow_mm2_offsets.cli.clusters import ConfigFile, load
from airflow_mm2_offsets.cli.command import Debug, failures, grouped, say
from airflow_mm2_offsets.cli.numbers import Number
from airflow_mm2_offsets.cli.params import Option
from airflow_mm2_offsets.errors import ConfigurationError

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
"""Each line of the server's log begins with the local time and the level."""
EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets serve --config mm2.toml --port 8080 --token-file token.txt"""


def _file(name: str, text: str) -> Option:
    return Option(name, metavar="FILE", exists=True, dir_okay=False, help=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenOptions:
    """The address, the login and TLS; each is a setting as well."""

    host: Annotated[
        str | None,
        Option("--host", metavar="ADDRESS", help="Where to listen; this machine alone unless set."),
    ] = None
    port: Annotated[
        int | None,
        Option(
            "--port",
            metavar="NUMBER",
            type=Number(int, 0, 65_535),
            help="8080 unless set; 0: any free.",
        ),
    ] = None
    token_file: Annotated[
        Path | None,
        _file("--token-file", "Holds the token that clients must present."),
    ] = None
    tls_certificate: Annotated[
        Path | None,
        _file("--tls-certificate", "PEM, with its chain: serve by HTTPS."),
    ] = None
    tls_key: Annotated[
        Path | None,
        _file("--tls-key", "The certificate's key, PEM."),
    ] = None

    def variables(self) -> dict[str, str]:
        """Return the options as the environment variables of their settings."""
        from airflow_mm2_offsets.config.keys import ENV_PREFIX

        values = {field.name.upper(): getattr(self, field.name) for field in fields(self)}
        return {
            f"{ENV_PREFIX}SERVE_{name}": str(at) for name, at in values.items() if at is not None
        }


@grouped
def serve(*, config: ConfigFile = None, listen: ListenOptions, debug: Debug = False) -> None:
    """Serve the REST API until Ctrl-C.

    Every option is a setting as well: serve.host, serve.port, serve.token.file, ...; see
    docs/rest.md for the routes.
    """
    logging.basicConfig(
        level=logging.DEBUG if debug else logging.INFO, stream=sys.stderr, format=LOG_FORMAT
    )
    if not debug:
        # Uvicorn tells of its own start and end, which the command does itself.
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
    with failures(debug=debug):
        settings = load(config, os.environ | listen.variables())
        aliases = f"{settings.naming.source_alias} -> {settings.naming.target_alias}"
        try:
            _server().serve(settings, ready=lambda url: say(f"{aliases}: {url}; Ctrl-C ends it"))
        except KeyboardInterrupt:
            say("Ended")


def _server() -> Any:  # noqa: ANN401 - a module
    """Import the server here: it needs an extra, and the import is slow."""
    try:
        return import_module("airflow_mm2_offsets.api.server")
    except ImportError as error:
        raise ConfigurationError(
            f"serve needs {error.name}; install airflow-mm2-offsets[api]"
        ) from error
