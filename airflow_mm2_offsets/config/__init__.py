"""What the server and the command line are told, by a file, the environment, or both."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.config.reader import VARIABLES, SettingsReader
from airflow_mm2_offsets.config.sources import read_entries
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import Naming, SyncsLocation
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.service.pair import ClusterPair

DEFAULT_PORT = 8080


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """How the standalone server listens, and whom it lets in."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    token: str | None = field(default=None, repr=False)
    """What a bearer must present."""
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    tls_certificate: Path | None = None
    """A PEM file, with the chain."""
    tls_key: Path | None = None
    without_auth: bool = False
    """The user's word that everybody who reaches an address beyond this machine may ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Two clusters, the MirrorMaker 2 between them, and how to serve what is known of them."""

    source: Mapping[str, str] = field(repr=False)
    """librdkafka properties, with their secrets."""
    target: Mapping[str, str] = field(repr=False)
    naming: Naming
    syncs_location: SyncsLocation = SyncsLocation.SOURCE
    connect_url: str | None = None
    connect_username: str | None = field(default=None, repr=False)
    connect_password: str | None = field(default=None, repr=False)
    archive_location: str | None = None
    """A folder on any storage that fsspec knows."""
    refresh_seconds: float = 30.0
    serve: ServeSettings = field(default_factory=ServeSettings)

    def pair(self, timeout: float = 30.0) -> ClusterPair:
        """Return the pair of clusters; nothing is asked of them.

        Args:
            timeout: Seconds until a broker or a Connect worker must have answered.

        Raises:
            ConfigurationError: The Connect URL is none, or ``timeout`` is not above 0.
        """
        return ClusterPair(
            source=KafkaCluster(name="source", config=self.source, timeout=timeout),
            target=KafkaCluster(name="target", config=self.target, timeout=timeout),
            naming=self.naming,
            syncs_location=self.syncs_location,
            connect=self._connect(timeout),
        )

    def archive(self) -> SyncArchive | None:
        """Return the archive of offset syncs, if one is named; nothing is read yet."""
        return SyncArchive(self.archive_location) if self.archive_location else None

    def _connect(self, timeout: float) -> ConnectClient | None:
        if self.connect_url is None:
            return None
        return ConnectClient(
            url=self.connect_url,
            username=self.connect_username,
            password=self.connect_password,
            timeout=timeout,
        )


def load_settings(file: Path | None, environ: Mapping[str, str]) -> Settings:
    """Return the settings of a file and of the environment, whose variables count more.

    A key ``refresh.seconds`` is the variable ``MM2_OFFSETS_REFRESH_SECONDS``: of every other
    character it makes an underscore.

    Kafka client properties begin with ``source.``, ``target.``, or ``kafka.`` for both; the closer
    one counts, wherever it stands. The names of mm2-offset-map are read as well.

    Args:
        file: ``.properties``, ``.toml``, or mm2-offset-map's ``application.yaml``; None: what the
            variable ``MM2_OFFSETS_CONFIG`` names, if it is set.
        environ: The environment.

    Raises:
        ConfigurationError: A key is unknown, missing or wrong: it is named with its place.
    """
    given = SettingsReader(read_entries(file, environ, VARIABLES))
    location = given.choice("offset-syncs.topic.location", SyncsLocation.SOURCE)
    return Settings(
        source=given.client("source"),
        target=given.client("target"),
        naming=given.naming(location),
        syncs_location=location,
        connect_url=given.connect_url(),
        connect_username=given.text("connect.username"),
        connect_password=given.text("connect.password"),
        archive_location=given.text("archive"),
        refresh_seconds=given.number("refresh.seconds", 30.0, low=1.0),
        serve=_serve(given),
    )


def _serve(given: SettingsReader) -> ServeSettings:
    given.both("serve.tls.certificate", "serve.tls.key")
    given.both("serve.username", "serve.password")
    certificate, key = given.text("serve.tls.certificate"), given.text("serve.tls.key")
    return ServeSettings(
        host=given.text("serve.host") or "127.0.0.1",
        port=int(given.number("serve.port", DEFAULT_PORT, low=0, high=65_535)),
        token=given.secret("serve.token"),
        username=given.text("serve.username"),
        password=given.text("serve.password"),
        tls_certificate=Path(certificate) if certificate else None,
        tls_key=Path(key) if key else None,
        without_auth=given.flag("serve.without.auth", default=False),
    )
