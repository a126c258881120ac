"""Paths on any storage, with the credentials of Airflow's connections."""

from typing import cast

from airflow.providers.common.compat.sdk import ObjectStoragePath
from airflow.sdk.io import has_fs
from upath import UPath

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.locations import spark_location
from airflow_mm2_offsets.storage import storage_errors


def storage_path(location: str) -> UPath:
    """Return a location such as ``s3://conn_id@bucket/path`` as a path with its credentials.

    A storage that no Airflow provider registers (``hdfs://``) is fsspec's own, with the
    credentials of the process. Spark's spelling of a location is understood, too.

    Raises:
        ConfigurationError: No library for its storage is installed, or it lacks a connection.
    """
    with storage_errors(location, ConfigurationError):
        path = spark_location(location)
        if path is None:
            path = UPath(location)
            if has_fs(path.protocol or "file"):
                # It wraps a UPath and has all of its methods, but is not a subclass.
                path = cast("UPath", ObjectStoragePath(location))
        path.fs.invalidate_cache()  # file systems of object stores cache their listings
    return path
