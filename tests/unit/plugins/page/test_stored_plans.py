"""Which files of long plans the page opens: those below the folders that an administrator names."""

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_mm2_offsets.core.brief import brief_plan
from airflow_mm2_offsets.core.plan import digest_of
from airflow_mm2_offsets.plugins.page.stored_plans import read_whole_plan

ENV = "AIRFLOW__MM2_OFFSETS__PLAN_FOLDERS"


def stored(file: Path, rows: int = 30) -> tuple[dict[str, Any], dict[str, Any]]:
    """Write a plan, and return it with its brief."""
    plan: dict[str, Any] = {
        "partitions": [
            {
                "topic": "t",
                "partition": number,
                "target_topic": "t",
                "target": "1",
                "low": "1",
                "fallback": None,
                "max_reread": 0,
            }
            for number in range(rows)
        ],
        "clusters": {},
    }
    plan["digest"] = digest_of(plan)
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(plan))
    return plan, brief_plan(plan, str(file))


def test_a_plan_below_a_named_folder_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several folders, with or without a slash at the end."""
    monkeypatch.setenv(ENV, f"s3://elsewhere/, {tmp_path}/plans/")
    plan, brief = stored(tmp_path / "plans" / "run.json")
    assert read_whole_plan(brief) == (plan, "")
    assert read_whole_plan(plan) == (plan, "")


@pytest.mark.parametrize(
    "location",
    [
        "/etc/passwd",
        "/dev/zero",
        "http://127.0.0.1:1/plan.json",
        "{folder}/../secret/run.json",
        "{folder}2/run.json",
        "simplecache::{folder}/run.json",
        "{folder}/run.parquet",
    ],
)
def test_no_other_file_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, location: str
) -> None:
    """The brief is shown, and the reason tells nothing of the file."""
    folder = tmp_path / "plans"
    monkeypatch.setenv(ENV, str(folder))
    _, brief = stored(tmp_path / "secret" / "run.json")
    brief["location"] = location.format(folder=folder)
    shown, why = read_whole_plan(brief)
    assert shown == brief
    assert "plan_folders" in why


def test_without_folders_nothing_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is by default."""
    monkeypatch.delenv(ENV, raising=False)
    _, brief = stored(tmp_path / "plans" / "run.json")
    assert read_whole_plan(brief)[0] == brief


def test_another_plans_file_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its digest nor whether it is there: who knows the digest could read the plan."""
    monkeypatch.setenv(ENV, str(tmp_path))
    plan, brief = stored(tmp_path / "run.json")
    other = brief | {"digest": "0" * 64}
    shown, why = read_whole_plan(other)
    assert shown == other
    assert plan["digest"] not in why
    gone = other | {"location": str(tmp_path / "gone.json")}
    assert read_whole_plan(gone)[1] == why.replace("run.json", "gone.json")
