"""Files beside a checkpoint, each of which says that its positions are of a certain cluster."""

import json
from collections.abc import Callable
from pathlib import Path

from upath import UPath

from airflow_mm2_offsets.core.ids import ClusterIds, PairIds
from airflow_mm2_offsets.spark.checkpoint import read_checkpoint
from airflow_mm2_offsets.spark.position_ids import note_ids
from airflow_mm2_offsets.testing import InMemoryCluster

Noting = Callable[[Path, InMemoryCluster], str]
"""Notes beside a checkpoint that its job reads a cluster; returns the file."""


def note_cluster(checkpoint: Path, cluster: InMemoryCluster) -> str:
    """As a check of the way from that cluster notes it."""
    place = UPath(checkpoint)
    ids = PairIds(source=ClusterIds(cluster_id=cluster.cluster_id))
    note_ids(place, read_checkpoint(place), "an earlier run", ids)
    return f"{checkpoint}.clusters.json"


def note_old_cluster(checkpoint: Path, cluster: InMemoryCluster) -> str:
    """The same long ago: the job has read on in each topic since."""
    file = note_cluster(checkpoint, cluster)
    note = json.loads(Path(file).read_text())
    note["read_until"] = {"another": {"0": 1}}
    Path(file).write_text(json.dumps(note))
    return file


def note_driver(checkpoint: Path, cluster: InMemoryCluster) -> str:
    """As a job under StopControl notes its control location, and its brokers there."""
    control = checkpoint.parent / "its-control"
    control.mkdir(exist_ok=True)
    query = {"query_id": read_checkpoint(UPath(checkpoint)).query_id, "run_id": "r"}
    driver = {
        "schema_version": 1,
        "application_id": "app-9",
        "host": "h",
        "pid": 7,
        "heartbeat": 3,
        **query,
        "queries": [query],
        "bootstrap_servers": [cluster.bootstrap_servers],
    }
    (control / "driver.json").write_text(json.dumps(driver))
    note = {"schema_version": 1, "control": f"file:{control}", "application_id": "app-9"}
    checkpoint.with_name(f"{checkpoint.name}.control.json").write_text(json.dumps(note))
    return str(control / "driver.json")


NOTINGS: tuple[Noting, ...] = (note_cluster, note_old_cluster, note_driver)
