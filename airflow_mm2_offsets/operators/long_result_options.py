"""The options of ``[mm2_offsets]`` in Airflow's configuration that say which results are long.

``check`` parses them before anything is stopped; the tasks that use them read them again.
"""

from dataclasses import dataclass

from airflow.providers.common.compat.sdk import conf

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.operators.settings import given
from airflow_mm2_offsets.spark.offsets_file import MAX_ARGUMENT_BYTES

SECTION, FOLDER = "mm2_offsets", "xcom_folder"
XCOM_MAX_BYTES = 65_536
"""About 140 partitions of a plan. A run of a failover holds a plan about three times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LongResultOptions:
    """Which results are long, and where they go."""

    xcom_max_bytes: int = XCOM_MAX_BYTES
    """The longest JSON that XCom gets whole."""
    argument_max_bytes: int = MAX_ARGUMENT_BYTES
    """The longest offsets, and the longest list of topics, that a job gets as text."""
    folder: str | None = None
    """Where the results of drills and dry runs go, and of tasks without a path; None: to XCom."""

    @classmethod
    def parse(cls) -> "LongResultOptions":
        """Return what Airflow's configuration says.

        Raises:
            ConfigurationError: A size is no whole number from 1, or the folder is not absolute.
        """
        return cls(
            xcom_max_bytes=_size("xcom_max_bytes", XCOM_MAX_BYTES),
            argument_max_bytes=_size("argument_max_bytes", MAX_ARGUMENT_BYTES),
            folder=_folder(),
        )


def _size(option: str, default: int) -> int:
    value = conf.get(SECTION, option, fallback=str(default))
    try:
        size = int(str(value))
    except ValueError:
        size = 0
    if size < 1:
        raise _problem(option, value, "a whole number of bytes, from 1")
    return size


def _folder() -> str | None:
    folder = given(conf.get(SECTION, FOLDER, fallback=""))
    # A relative one would be another folder for each process.
    if folder is None or folder.startswith("/") or "://" in folder:
        return folder
    raise _problem(FOLDER, folder, "an absolute path, or a URL such as s3://bucket/folder")


def _problem(option: str, value: object, what: str) -> ConfigurationError:
    return ConfigurationError(
        f"[{SECTION}] {option} is {value!r} in Airflow's configuration; give {what}"
    )
