"""Keeps a plan in a file, so that a retry moves no position and an auditor finds it later."""

import json

from upath import UPath

from airflow_mm2_offsets.core import FailoverPlan, Positions
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.storage import read_text, write_text


def load_plan(path: UPath, positions: Positions) -> FailoverPlan | None:
    """Return the plan in a file; None when there is no such file.

    Args:
        path: The file.
        positions: Where the job stands on the source: the plan must be of these.

    Raises:
        ConfigurationError: The file can't be read, is no plan, or one of other positions.
    """
    text = read_text(path, ConfigurationError)
    if text is None:
        return None
    try:
        plan = FailoverPlan.from_json(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"{path} is not a plan that this release reads ({error!r}); give another plan path"
        ) from error
    if plan.source_positions() != positions:
        raise ConfigurationError(
            f"{path} holds a plan of {plan.created_at} for other positions "
            f"({plan.source_positions()}) than these ({positions}); a plan that was made is never "
            f"changed: give another plan path, or delete the file if no job was started from it"
        )
    return plan


def save_plan(path: UPath, plan: FailoverPlan) -> None:
    """Write the plan to a file, whole or not at all.

    Raises:
        ConfigurationError: The file can't be written.
    """
    write_text(path, json.dumps(plan.to_json(), indent=1), ConfigurationError)
