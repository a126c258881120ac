"""The file of jobs that Airflow's configuration names."""

from airflow.providers.common.compat.sdk import conf

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.logins import without_login
from airflow_mm2_offsets.moves.jobs import SparkJob
from airflow_mm2_offsets.moves.jobs_file import read_jobs


def jobs_of_file() -> tuple[tuple[SparkJob, ...], str]:
    """Return the jobs of ``[mm2_offsets] jobs_file``, and what messages call that file.

    Raises:
        ConfigurationError: There is no file of jobs, or it is wrong.
    """
    file = conf.get("mm2_offsets", "jobs_file", fallback="")
    if not file:
        raise ConfigurationError(
            "there is no file of jobs, which a job's name is looked up in: set [mm2_offsets] "
            "jobs_file in Airflow's configuration, or give a SparkJob",
            setting="job",
        )
    return read_jobs(storage_path(file)), without_login(file)
