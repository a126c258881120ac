"""Test a failover without Kafka: two clusters in memory, and a simulated MirrorMaker 2.

``simulated_mm2()`` yields a ``Mm2Simulation``. While it is open, every Kafka and Connect client
that this package makes in the same process reads the simulated clusters. Needs the extra
``kafka``; ``Mm2Simulation.use_connection`` needs no Airflow to be installed until a hook reads the
connection. Users' tests and this package's unit tests call it; no other room imports it.
"""

from airflow_mm2_offsets.testing.clients import in_memory_clients
from airflow_mm2_offsets.testing.clusters import InMemoryCluster, InMemoryTopic
from airflow_mm2_offsets.testing.connect import SimulatedConnect
from airflow_mm2_offsets.testing.logs import Record
from airflow_mm2_offsets.testing.mirror import MirrorSettings
from airflow_mm2_offsets.testing.simulation import Mm2Simulation, simulated_mm2

__all__ = [
    "InMemoryCluster",
    "InMemoryTopic",
    "MirrorSettings",
    "Mm2Simulation",
    "Record",
    "SimulatedConnect",
    "in_memory_clients",
    "simulated_mm2",
]
