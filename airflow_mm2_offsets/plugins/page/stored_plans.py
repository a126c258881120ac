"""Opens the files of long plans for the page: only below the folders that an administrator names.

Whoever may write an XCom chooses a plan's location, and the API server has more rights than they.
"""

from collections.abc import Mapping
from typing import Any

from airflow.providers.common.compat.sdk import conf

from airflow_mm2_offsets.core.brief import LOCATION, is_brief
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.planning.stored_plan import whole_plan

SECTION, OPTION = "mm2_offsets", "plan_folders"
FOLDERS = (OPTION, "xcom_folder")
"""The options that name folders of plans."""


def read_whole_plan(content: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Return the plan, whole if its file may be read, and why it is not whole.

    The reason names no digest and no error of the storage: they would tell what the file holds.

    Args:
        content: The XCom: a plan, or its brief.
    """
    if not is_brief(content):
        return content, ""
    location = str(content[LOCATION])
    if not _may_open(location):
        reason = (
            f"the API server reads plans only below the folders that [{SECTION}] {OPTION} names in "
            f"Airflow's configuration"
        )
        return content, f"{reason}, and this one is {location}"
    try:
        return whole_plan(content, storage_path), ""
    except Mm2OffsetsError:
        return content, f"{location} is gone, can't be read, or is not the file of this plan"


def _may_open(location: str) -> bool:
    """Tell whether a location lies in a folder of plans: as text, for the spelling is the plan's.

    ``::`` chains file systems in a URL of fsspec, ``..`` leaves the folder, and plans are JSON.
    """
    if "::" in location or ".." in location or not location.endswith(".json"):
        return False
    named = [each for name in FOLDERS for each in conf.get(SECTION, name, fallback="").split(",")]
    folders = [folder for each in named if (folder := each.strip().rstrip("/"))]
    return any(location.startswith(f"{folder}/") for folder in folders)
