"""docs/client-properties.md: each example works, and its tables have what the code has."""

import json
import re
from pathlib import Path

import javaproperties
import pytest

from airflow_mm2_offsets.kafka.client_properties import kerberos, names, to_librdkafka
from tests.unit.kafka.client_properties.material import SERVERS, material

TEXT = (Path(__file__).parents[4] / "docs" / "client-properties.md").read_text(encoding="utf-8")
EXAMPLES = [
    *(
        javaproperties.loads(text)
        for text in re.findall(r"```properties\n(.*?)```", TEXT, re.DOTALL)
    ),
    *(json.loads(text) for text in re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)),
]


def test_the_examples_are_found() -> None:
    """An empty list would pass whatever the page says."""
    assert len(EXAMPLES) == 7


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.get("sasl.mechanism", "SSL"))
def test_each_example_works(
    example: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every property of it is understood; a login is complete."""
    monkeypatch.setattr(kerberos, "has_gssapi", lambda: True)
    (tmp_path / "trust.p12").write_bytes(material().truststore("..."))
    (tmp_path / "me.p12").write_bytes(material().keystore("..."))
    java = {name: text.replace("/etc/kafka", str(tmp_path)) for name, text in example.items()}
    config = to_librdkafka("source", SERVERS | java)
    assert config["security.protocol"] == example["security.protocol"]
    assert any(name.startswith(("sasl.", "oauth_cb", "ssl.key")) for name in config)


def test_the_build_is_that_of_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page and the error give the same commands, for some version."""
    monkeypatch.setattr(kerberos, "version", lambda _: "2.16.1")
    commands = re.findall(r"^\$ ([^#\n]+?) *(?:#.*)?$", TEXT, re.MULTILINE)
    assert len(commands) == 3
    assert all(command in kerberos.build_line() for command in commands)


@pytest.mark.parametrize("name", [*names.REFUSED, *names.RENAMED, *names.RENAMED.values()])
def test_each_renamed_and_refused_property_is_listed(name: str) -> None:
    """Whoever looks for a property finds it on the page."""
    assert f"`{name}`" in TEXT
