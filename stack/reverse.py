"""MirrorMaker 2 the other way: the target's records copied to the source, for the way home.

With the identity policy both ways at once would copy in a circle. So the forward connector is
stopped first, and the reverse one begins where the forward one ended.
"""

import json
from collections.abc import Mapping

import httpx

from stack.connect import connect_client
from stack.mirror import CONFIG, SOURCE_CONNECTOR, Stack
from stack.waiting import wait_until

REVERSE_CONNECTOR = "mm2-reverse"
# The offset syncs lie on the cluster that is copied to: on the other, their topic would have the
# name of the forward connector's.
_EXCHANGED = {
    "source.cluster.alias": "target",
    "target.cluster.alias": "source",
    "source.cluster.bootstrap.servers": "${env:TARGET_BOOTSTRAP}",
    "target.cluster.bootstrap.servers": "${env:SOURCE_BOOTSTRAP}",
    "producer.override.bootstrap.servers": "${env:SOURCE_BOOTSTRAP}",
    "offset-syncs.topic.location": "target",
    "heartbeats.replication.enabled": "false",
}


def turn_round(stack: Stack, topics: str, ends: Mapping[str, Mapping[int, int]]) -> None:
    """Stop copying to the target, and copy what is written there from now on to the source.

    Args:
        stack: A stack whose mirror runs, and has copied everything.
        topics: The regular expression of the topics to copy.
        ends: The target's end offset of each partition: what lies before came from the source.

    Raises:
        httpx.HTTPError: Connect did not answer, or refused.
        WaitTimeoutError: The connector did not run within two minutes.
    """
    config = json.loads((CONFIG / f"{SOURCE_CONNECTOR}.json").read_text())
    copied = [
        {
            "partition": {"cluster": "target", "partition": partition, "topic": topic},
            "offset": {"offset": end - 1},
        }
        for topic, partitions in ends.items()
        for partition, end in partitions.items()
        if end
    ]
    with connect_client(f"{stack.connect_url}/connectors", stack.connect_login) as client:
        _stop(client, SOURCE_CONNECTOR)
        made = {
            "name": REVERSE_CONNECTOR,
            "config": {**config, **_EXCHANGED, "topics": topics},
            "initial_state": "STOPPED",
        }
        client.post("", json=made).raise_for_status()
        wait_until(lambda: _state(client, REVERSE_CONNECTOR) == "STOPPED", REVERSE_CONNECTOR)
        offsets = client.patch(f"/{REVERSE_CONNECTOR}/offsets", json={"offsets": copied})
        offsets.raise_for_status()
        client.put(f"/{REVERSE_CONNECTOR}/resume").raise_for_status()
        wait_until(lambda: _runs(client, REVERSE_CONNECTOR), REVERSE_CONNECTOR)


def _stop(client: httpx.Client, name: str) -> None:
    client.put(f"/{name}/stop").raise_for_status()
    wait_until(lambda: _state(client, name) == "STOPPED", f"{name} to stop")


def _state(client: httpx.Client, name: str) -> str | None:
    answer = client.get(f"/{name}/status")
    return answer.json()["connector"]["state"] if answer.is_success else None


def _runs(client: httpx.Client, name: str) -> bool:
    status = client.get(f"/{name}/status").raise_for_status().json()
    states = [part["state"] for part in (status["connector"], *status["tasks"])]
    return len(states) > 1 and set(states) == {"RUNNING"}
