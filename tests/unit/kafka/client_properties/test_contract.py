"""Both clients' own words: what Kafka's classes define, and what the installed librdkafka takes."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.kafka.client_properties import names, to_librdkafka
from airflow_mm2_offsets.kafka.client_properties.acceptance import find_refused
from tests.unit.kafka.client_properties.material import SERVERS

JAVA = {
    name: default
    for name, _, default in (
        line.split("\t")
        for line in Path(__file__).with_name("java_properties.tsv").read_text().splitlines()
        if not line.startswith("#")
    )
}
"""Each property of Kafka's admin client, consumer and producer, and its default."""


def test_the_list_is_kafkas() -> None:
    """The list has what everybody sets, so an empty or cut file can't pass."""
    assert len(JAVA) > 140
    assert {"bootstrap.servers", "sasl.jaas.config", "ssl.engine.factory.class"} <= JAVA.keys()


@pytest.mark.parametrize("name", sorted(JAVA))
def test_each_java_property_has_its_place(name: str) -> None:
    """Each is the same in librdkafka, renamed, translated, ignored or refused: none is unknown."""
    places = [
        name in names.LIBRDKAFKA or not find_refused({name: JAVA[name] or "1"}),
        name in names.RENAMED,
        name in names.TRANSLATED,
        name in names.REFUSED,
        names.is_ignored(name),
        name in names.TUNING_OF_NEWER or name.startswith(names.NEEDS_NEWER),
    ]
    assert any(places)


def test_javas_defaults_are_accepted() -> None:
    """A file that spells out all of Java's defaults works."""
    spelled_out = {name: default for name, default in JAVA.items() if default} | SERVERS
    config = to_librdkafka("source", spelled_out)
    assert config["ssl.endpoint.identification.algorithm"] == "https"
    assert config["bootstrap.servers"] == SERVERS["bootstrap.servers"]


@pytest.mark.parametrize("name", sorted(names.LIBRDKAFKA | {*names.RENAMED.values()}))
def test_librdkafka_knows_each_name_that_we_give_it(name: str) -> None:
    """What is suggested, or renamed to, is a property of the installed librdkafka."""
    assert not [problem for problem in find_refused({name: "1"}) if "neither" in str(problem)]
