"""MirrorMaker 2 without Connect's REST API, in any version, beside brokers that run."""

from collections.abc import Mapping
from pathlib import Path

from stack.local import JVM
from stack.process import Program

_SETTINGS: Mapping[str, str | int] = {
    "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
    "emit.heartbeats.enabled": "false",
    "emit.checkpoints.enabled": "false",
    "refresh.topics.interval.seconds": 1,
    # There is one broker on each side.
    "replication.factor": 1,
    "offset-syncs.topic.replication.factor": 1,
    "heartbeats.topic.replication.factor": 1,
    "checkpoints.topic.replication.factor": 1,
    "config.storage.replication.factor": 1,
    "offset.storage.replication.factor": 1,
    "status.storage.replication.factor": 1,
}


def dedicated_mirror(
    folder: Path,
    jars: Path,
    *,
    clusters: tuple[tuple[str, str], tuple[str, str]],
    settings: Mapping[str, str | int],
) -> Program:
    """Return MirrorMaker 2 in dedicated mode (KIP-382: ``MirrorMaker.java``), not yet started.

    Args:
        folder: Holds its configuration and its log.
        jars: The folder of its jars (see stack.jars).
        clusters: Alias and bootstrap servers of the source, and of the target.
        settings: Further lines of its configuration; those of one flow start with
            ``SOURCE->TARGET.``, those of one cluster with ``ALIAS.``.
    """
    source, target = (alias for alias, _ in clusters)
    lines = {
        "clusters": f"{source}, {target}",
        **{f"{alias}.bootstrap.servers": servers for alias, servers in clusters},
        f"{source}->{target}.enabled": "true",
        f"{target}->{source}.enabled": "false",
        **_SETTINGS,
        **settings,
    }
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "mm2.properties"
    file.write_text("".join(f"{key} = {to}\n" for key, to in lines.items()))
    main = "org.apache.kafka.connect.mirror.MirrorMaker"
    command = [*JVM, "-cp", f"{jars}/*", main, str(file)]
    return Program("MirrorMaker 2", command, log=folder / "mm2.log")
