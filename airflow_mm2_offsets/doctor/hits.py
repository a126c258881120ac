"""Shows the setting that a rule has found; the tables of rules call it."""

from airflow_mm2_offsets.doctor.finding import Hit
from airflow_mm2_offsets.planning.mirror_connector import MirrorConnector

CONNECTOR_CLASS = "connector.class"
"""A connector on a Connect worker has it; mm2.properties and Strimzi leave it to MirrorMaker 2."""


def hit_of(connector: MirrorConnector, setting: str, *, subject: str = "") -> Hit:
    """Return a setting with its value and its connector; a default is named as such."""
    shown = f"{setting} = {connector.text(setting)}"
    is_default = setting not in connector.config
    return Hit(f"{shown}{' (the default)' if is_default else ''} in {connector.name}", subject)
