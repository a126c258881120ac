"""The clusters that a MirrorMaker 2 is configured for, under this package's keys.

Each format (``properties``, ``connector``, ``strimzi``) is turned into flows with the settings of
their MirrorSourceConnector, which ``connector_settings`` reads. ``sources`` calls both.
"""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from airflow_mm2_offsets.config.formats import YAML_SUFFIXES
from airflow_mm2_offsets.config.formats.document import Document
from airflow_mm2_offsets.config.mirror_maker.connector import is_connector, read_connector
from airflow_mm2_offsets.config.mirror_maker.flows import MirrorMakerFile
from airflow_mm2_offsets.config.mirror_maker.properties import is_mirror_maker, read_properties
from airflow_mm2_offsets.config.mirror_maker.strimzi import is_strimzi, read_strimzi
from airflow_mm2_offsets.errors import ConfigurationError


def read_mirror_maker(documents: Sequence[Document], file: Path) -> MirrorMakerFile | None:
    """Return the flows of a file; None if it does not configure a MirrorMaker 2.

    Raises:
        ConfigurationError: It does, and lacks what a flow needs.
    """
    resources = [document.content for document in documents if is_strimzi(document.content)]
    if resources:
        return read_strimzi(resources, file)
    if file.suffix.lower() in YAML_SUFFIXES:
        return None
    entries = dict(chain.from_iterable(each.entries(file).items() for each in documents))
    # First: connectors of Amazon's samples have a key ``clusters``, too, which Kafka ignores.
    if is_connector(entries):
        return read_connector(entries)
    if is_mirror_maker(entries):
        return read_properties(entries)
    if file.suffix.lower() == ".json":
        raise ConfigurationError(
            "is not the configuration of a MirrorSourceConnector: connector.class is missing; "
            "write other settings as .properties or .toml",
            file=str(file),
        )
    return None
