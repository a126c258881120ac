"""Variables that Kubernetes sets for services whose names are like the prefixes of settings."""

import pytest

from airflow_mm2_offsets.config import load_settings
from airflow_mm2_offsets.errors import ConfigurationError
from tests.unit.config.settings_files import SERVERS

ADDRESS = "tcp://10.0.171.239:8080"


@pytest.mark.parametrize(
    "service", ["MM2_OFFSET_MAP", "MM2_OFFSETS", "MM2_OFFSETS_SERVE", "MM2_OFFSET_MAP_TEST"]
)
def test_service_links_are_no_settings(service: str) -> None:
    """All seven, as in "Accessing the Service" of Kubernetes' docs, and one of a named port."""
    links = {
        f"{service}_SERVICE_HOST": "10.0.171.239",
        f"{service}_SERVICE_PORT": "8080",
        f"{service}_SERVICE_PORT_HTTP": "8080",
        f"{service}_PORT": ADDRESS,
        f"{service}_PORT_8080_TCP": ADDRESS,
        f"{service}_PORT_8080_TCP_PROTO": "tcp",
        f"{service}_PORT_8080_TCP_PORT": "8080",
        f"{service}_PORT_8080_TCP_ADDR": "10.0.171.239",
    }
    assert load_settings(None, SERVERS | links) == load_settings(None, SERVERS)


def test_a_port_that_is_a_number_is_a_setting() -> None:
    """Only Kubernetes writes an address there."""
    assert load_settings(None, SERVERS | {"MM2_OFFSETS_SERVE_PORT": "9"}).serve.port == 9
    with pytest.raises(ConfigurationError, match="variable MM2_OFFSETS_PORT is not a known"):
        load_settings(None, SERVERS | {"MM2_OFFSETS_PORT": "9"})
