"""Wrong set-ups of a connection: the error names cause, property and next step, in finite time."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_mm2_offsets.connection_check import check_connection
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from tests.integration.explained import WrongSetup, assert_explained, documented
from tests.integration.secured import Secured, scram
from tests.integration.wrong_kerberos import WRONG_KERBEROS
from tests.integration.wrong_setup_ground import Ground
from tests.integration.wrong_setups import KEY_PASSWORD, WRONG_SETUPS


@pytest.fixture
def ground(secured: Secured, tmp_path: Path) -> Iterator[Ground]:
    with ExitStack() as undo:
        yield Ground(stack=secured.stack, folder=tmp_path, undo=undo)


def _secrets(ground: Ground) -> list[str]:
    cluster = ground.cluster
    keys = [path.read_text() for path in cluster.folder.glob("*.pem")]
    lines = [line for text in keys for line in text.splitlines() if not line.startswith("-----")]
    return [cluster.password, cluster.secret, KEY_PASSWORD, "wr0ng", "s3cret", *lines]


@pytest.mark.parametrize("wrong", WRONG_SETUPS, ids=[each.name for each in WRONG_SETUPS])
def test_a_wrong_setup_is_explained(
    ground: Ground, secured: Secured, wrong: WrongSetup[Ground]
) -> None:
    """Cause, property and next step are named; no secret is, not even in a traceback."""
    assert_explained(wrong, ground, secured.mirrored.topic, _secrets(ground))


def test_one_broker_of_two_is_enough(ground: Ground, secured: Secured) -> None:
    """A list of bootstrap servers works while one of them answers."""
    servers = f"127.0.0.1:1,{secured.stack.clusters['source'].sasl}"
    config = ground.scram(bootstrap_servers=servers)
    assert KafkaCluster(name="source", config=config, timeout=10).describe().cluster_id


def test_a_cluster_given_twice_is_found(secured: Secured) -> None:
    """Both connections lead to one cluster, by whatever addresses."""
    pair = secured.pair(scram)
    twice = replace(pair, target=replace(pair.source, name="target"))
    errors = [str(part.error) for part in check_connection(twice) if part.error]
    assert any("source and target are the same cluster, c291cmNl" in each for each in errors)


def test_exchanged_clusters_are_found(secured: Secured) -> None:
    """The offset-syncs topic is looked for on the other cluster, and its setting named."""
    pair = secured.open_pair
    exchanged = replace(pair, source=pair.target, target=pair.source, connect=None)
    errors = [str(part.error) for part in check_connection(exchanged) if part.error]
    assert any("offset-syncs.topic.location" in each for each in errors)


def test_the_page_has_the_same_tables() -> None:
    """docs/security.md lists these set-ups, with what is said of each."""
    heading = "## What is wrong, and what is said"
    assert documented(heading) == [each.row for each in WRONG_SETUPS]
    assert documented("### By Kerberos") == [each.row for each in WRONG_KERBEROS]
