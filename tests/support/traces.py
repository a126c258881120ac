"""What clusters and folders hold, to show that something has left no trace there."""

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from stack.waiting import wait_until

SECONDS = 30
ALWAYS_WRITTEN = re.compile(r"(^|\.)heartbeats$|\.internal$|^mm2-|^connect-|^__")
"""Topics of MirrorMaker 2, Connect and Kafka itself: their ends move by themselves."""

State = dict[str, str]
"""What there is, each by its name in one text: ``source: end of orders[0]`` is ``17``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """A snapshot of clusters and folders."""

    clusters: Mapping[str, str]
    """Bootstrap servers by what messages call the cluster."""
    folders: Iterable[Path]
    ignored: re.Pattern[str] = re.compile(r"(?!)")
    """Names in ``State`` that change by themselves."""

    def snapshot(self) -> State:
        """Read everything; two equal snapshots mean that nothing was changed in between."""
        state: State = {}
        for name, servers in self.clusters.items():
            parts = _read_cluster(AdminClient({"bootstrap.servers": servers}))
            state |= {f"{name}: {part}": to for part, to in parts.items()}
        for folder in self.folders:
            state |= _read_tree(folder)
        return {name: to for name, to in state.items() if not self.ignored.search(name)}

    def at_rest(self) -> State:
        """Return a snapshot that stays the same for a second: a batch may just be ending.

        Its files come one after the other, a check sum after what it is of.
        """
        seen: list[State] = [self.snapshot()]

        def is_same() -> bool:
            time.sleep(1)
            seen.append(self.snapshot())
            return seen[-1] == seen[-2]

        wait_until(is_same, "clusters and files at rest")
        return seen[-1]


def difference(before: State, after: State) -> list[str]:
    """Return every change, one a line; empty if there is no trace."""
    return [
        f"{name}: {before.get(name, 'absent')} -> {after.get(name, 'absent')}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def _read_cluster(admin: Any) -> State:  # noqa: ANN401 - its package has no types
    topics = admin.list_topics(timeout=SECONDS).topics
    described = admin.describe_topics(TopicCollection([*topics]))
    state = {
        f"id of topic {name}": str(future.result().topic_id) for name, future in described.items()
    }
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
    for resource, future in admin.describe_configs(resources).items():
        values = {key: entry.value for key, entry in future.result().items()}
        state[f"config of topic {resource.name}"] = str(sorted(values.items()))
    spec: Any = OffsetSpec
    ends = {
        TopicPartition(name, number): spec.latest()
        for name, topic in topics.items()
        if not ALWAYS_WRITTEN.search(name)
        for number in topic.partitions
    }
    for partition, future in admin.list_offsets(ends).items() if ends else ():
        state[f"end of {partition.topic}[{partition.partition}]"] = str(future.result().offset)
    groups = admin.list_consumer_groups(request_timeout=SECONDS).result()
    state |= {f"consumer group {group.group_id}": "present" for group in groups.valid}
    return state | _read_acls(admin)


def _read_acls(admin: Any) -> State:  # noqa: ANN401
    binding: Any = AclBindingFilter
    everything = binding(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    try:
        return {f"ACL {acl}": "present" for acl in admin.describe_acls(everything).result()}
    except KafkaException as error:
        if error.args[0].name() != "SECURITY_DISABLED":
            raise
        return {}


def _read_tree(root: Path) -> State:
    """Return each file with size, time and hash; folders and links by their names."""
    state = {}
    for path in [root, *root.rglob("*")]:
        try:
            state[str(path)] = _describe(path)
        except FileNotFoundError:  # a job that runs has just replaced it
            continue
    return state


def _describe(path: Path) -> str:
    if path.is_symlink():
        return f"link to {path.readlink()}"
    if path.is_dir():
        return "folder"
    stat, digest = path.stat(), sha256(path.read_bytes()).hexdigest()[:12]
    return f"{stat.st_size} bytes of {stat.st_mtime_ns}, {digest}"
