"""Loads settings from a file in a temporary folder."""

from pathlib import Path

from airflow_mm2_offsets.config import Settings, load_settings

SECRET = "hunter2"  # noqa: S105 - what must not be seen
SERVERS = {"MM2_OFFSETS_KAFKA_BOOTSTRAP_SERVERS": "shared.invalid:1"}
"""Variables that are enough to name both clusters."""


def load(tmp_path: Path, text: str, name: str = "mm2.properties", **environ: str) -> Settings:
    file = tmp_path / name
    file.write_text(text)
    return load_settings(file, environ)
