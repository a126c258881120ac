"""What a reconciliation's report says of a job that failed."""

import pytest

from airflow_mm2_offsets.job.reconcile.main import summary
from airflow_mm2_offsets.kafka.client_properties import to_java
from tests.unit.kafka.client_properties.material import SECRET, SERVERS


@pytest.mark.parametrize("quoted", ["{jaas}", "{password}"])
def test_no_login_is_shown(quoted: str) -> None:
    """An error may quote the whole JAAS text, or the password in it."""
    login = {"sasl.mechanism": "PLAIN", "sasl.username": "ann", "sasl.password": SECRET}
    properties = to_java("source", SERVERS | {"security.protocol": "SASL_SSL"} | login)
    text = quoted.format(jaas=properties["sasl.jaas.config"], password=SECRET)
    shown = summary(ValueError(f"refused {text} here"), [properties])
    assert shown == "ValueError: refused *** here"
