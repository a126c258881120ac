"""Manifests for tests."""

from airflow_mm2_offsets.fleet.job import FleetJob
from airflow_mm2_offsets.fleet.manifest import parse_manifest

DEFAULTS = """
defaults:
  stream_dag_id: stream
  source_folder: /eu/{name}
  target_folder: /us/{name}
jobs:
"""
FILE = "fleet.yaml"


def parse(jobs: str, *, waves: int | None = 3) -> tuple[FleetJob, ...]:
    """Parse jobs, written as lines of YAML, with defaults."""
    return parse_manifest(f"{DEFAULTS}{jobs}", FILE, waves=waves)


def job(name: str, **fields: object) -> FleetJob:
    values = {
        "name": name,
        "stream_dag_id": "stream",
        **{f"{side}_folder": f"/{side}/{name}" for side in ("source", "target")},
        **{f"{side}_output": f"/{side}/{name}/output" for side in ("source", "target")},
    }
    return FleetJob.from_json({**values, **fields})
