"""Airflow's storage, as the rooms below take it."""

from typing import cast

from airflow.providers.common.compat.sdk import ObjectStoragePath
from upath import UPath

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.storage import open_location, storage_errors


def storage_path(location: str) -> UPath:
    """Return a location such as ``s3://conn_id@bucket/path`` as a path with its credentials.

    ``ObjectStoragePath`` wraps a UPath and does all that one does, but is no subclass of it.

    Raises:
        ConfigurationError: No library for its storage is installed, or it lacks a connection.
    """
    with storage_errors(location, ConfigurationError):
        path = cast("UPath", ObjectStoragePath(location))
    return open_location(path, ConfigurationError)
