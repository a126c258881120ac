"""The settings of the server and the command line, from a file, the environment, or both.

``load_settings`` makes a ``Settings``, which makes the pair of clusters and the archive.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.clusters import ClusterPair, checked_logins
from airflow_mm2_offsets.config.keys import SYNCS_LOCATION
from airflow_mm2_offsets.config.reader import SettingsReader
from airflow_mm2_offsets.config.sources import read_entries
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import Naming, OffsetMapping, SyncsLocation
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.config import Setting

DEFAULT_PORT = 8080


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """The address of the standalone server, its TLS files and its login."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    token: str | None = field(default=None, repr=False)
    """A bearer token. Clients send it in the header ``Authorization``."""
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    tls_certificate: Path | None = None
    """A PEM file with the whole chain."""
    tls_key: Path | None = None
    without_auth: bool = False
    """Whether other machines may use the API without a login."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Two clusters, the MirrorMaker 2 between them, the archive and the server."""

    source: Mapping[str, Setting] = field(repr=False)
    """librdkafka properties. They contain secrets."""
    target: Mapping[str, Setting] = field(repr=False)
    naming: Naming
    syncs_location: SyncsLocation = SyncsLocation.SOURCE
    mapping: OffsetMapping = OffsetMapping.OFFSET_SYNCS
    connect_url: str | None = None
    connect_username: str | None = field(default=None, repr=False)
    connect_password: str | None = field(default=None, repr=False)
    archive_location: str | None = field(default=None, repr=False)
    """A folder on any storage that fsspec supports. It may contain a login."""
    refresh_seconds: float = 30.0
    """Between two reads of the offset-syncs topic."""
    serve: ServeSettings = field(default_factory=ServeSettings)

    def pair(self, timeout: float = 30.0) -> ClusterPair:
        """Return the pair of clusters, without connecting to them.

        Args:
            timeout: Seconds that a broker or a Connect worker has to answer.

        Raises:
            ConfigurationError: The Connect URL is invalid, ``timeout`` is not above 0, or the
                clusters' logins exclude each other.
        """
        pair = ClusterPair(
            source=KafkaCluster(name="source", config=self.source, timeout=timeout),
            target=KafkaCluster(name="target", config=self.target, timeout=timeout),
            naming=self.naming,
            syncs_location=self.syncs_location,
            connect=ConnectClient(
                url=self.connect_url,
                username=self.connect_username,
                password=self.connect_password,
                timeout=timeout,
            )
            if self.connect_url is not None
            else None,
            mapping=self.mapping,
        )
        return checked_logins(pair)

    def archive(self) -> SyncArchive | None:
        """Return the archive of offset syncs, if one is set, without reading it."""
        return SyncArchive(self.archive_location) if self.archive_location else None


def load_settings(file: Path | None, environ: Mapping[str, str]) -> Settings:
    """Return the settings of a file and of the environment.

    A variable takes precedence over the same key in the file. The variable of the key
    ``refresh.seconds`` is ``MM2_OFFSETS_REFRESH_SECONDS``; dots and dashes become underscores.

    Kafka client properties begin with ``source.``, ``target.``, or ``kafka.`` for both clusters.
    A cluster's own property takes precedence over the shared one, even if the shared one is a
    variable. The names of mm2-offset-map are read too.

    A file of MirrorMaker 2 describes both clusters; see ``config.mirror_maker``.

    Args:
        file: ``.properties`` or ``.toml``, MirrorMaker 2's ``mm2.properties``, the JSON of a
            MirrorSourceConnector, Strimzi's KafkaMirrorMaker2 or mm2-offset-map's
            ``application.yaml``; None: the file that the variable ``MM2_OFFSETS_CONFIG`` names, if
            it is set.
        environ: The environment.

    Raises:
        ConfigurationError: A key is unknown or missing, or its value is wrong. The message names
            its origin.
    """
    reader = SettingsReader(read_entries(file, environ))
    location = reader.choice(SYNCS_LOCATION, SyncsLocation.SOURCE)
    return Settings(
        source=reader.client_properties("source"),
        target=reader.client_properties("target"),
        naming=reader.naming(location),
        syncs_location=location,
        mapping=reader.mapping(),
        connect_url=reader.connect_url(),
        connect_username=reader.text("connect.username"),
        connect_password=reader.text("connect.password"),
        archive_location=reader.text("archive"),
        refresh_seconds=reader.number("refresh.seconds", 30.0, low=1.0),
        serve=_serve(reader),
    )


def _serve(reader: SettingsReader) -> ServeSettings:
    reader.require_together("serve.tls.certificate", "serve.tls.key")
    reader.require_together("serve.username", "serve.password")
    certificate, key = reader.text("serve.tls.certificate"), reader.text("serve.tls.key")
    return ServeSettings(
        host=reader.text("serve.host") or "127.0.0.1",
        port=int(reader.number("serve.port", DEFAULT_PORT, low=0, high=65_535)),
        token=reader.secret("serve.token"),
        username=reader.text("serve.username"),
        password=reader.text("serve.password"),
        tls_certificate=Path(certificate) if certificate else None,
        tls_key=Path(key) if key else None,
        without_auth=reader.flag("serve.without.auth", default=False),
    )
