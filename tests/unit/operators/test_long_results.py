"""Where a long plan goes that is refused, or that no file can hold."""

import logging
from pathlib import Path

import pytest

from airflow_mm2_offsets.core.brief import is_brief
from airflow_mm2_offsets.errors import ConfigurationError, TranslationRefusedError
from airflow_mm2_offsets.operators.long_result_options import LongResultOptions
from airflow_mm2_offsets.planning.stored_plan import whole_plan
from tests.unit.operators.translate_task import plan_of, translate
from tests.unit.operators.worker import Worker

AT_4 = {"orders": {"0": 4}}
UNMAPPED = {"orders": {"0": 4, "1": 3}}
FOLDER = "AIRFLOW__MM2_OFFSETS__XCOM_FOLDER"
pytestmark = pytest.mark.usefixtures("clusters")


@pytest.fixture(autouse=True)
def one_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    for option in ("XCOM_MAX_BYTES", "ARGUMENT_MAX_BYTES"):
        monkeypatch.setenv(f"AIRFLOW__MM2_OFFSETS__{option}", "1")


def test_a_refused_plan_lies_beside_the_path_of_the_kept_one(
    worker: Worker, tmp_path: Path
) -> None:
    """XCom has its brief, and a retry that has an answer takes no notice of it."""
    path = tmp_path / "run.json"
    with pytest.raises(TranslationRefusedError):
        worker.run(translate(positions=UNMAPPED, plan_path=str(path)))
    brief = worker.xcoms["translate", "return_value"]
    assert brief["location"] == str(tmp_path / "run.refused.json")
    assert whole_plan(brief)["totals"]["refused"] == 1
    assert not path.exists()
    worker.run(translate(positions=AT_4, plan_path=str(path)))
    assert worker.xcoms["translate", "return_value"]["location"] == str(path)


@pytest.mark.parametrize("folder", ["", "/proc/xcom", "s3://user:word@lake/xcom"])
def test_a_plan_that_no_file_holds_stays_whole(
    worker: Worker,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    folder: str,
) -> None:
    """Without a folder, with one that can't be written, or whose location would show a login."""
    monkeypatch.setenv(FOLDER, folder)
    with caplog.at_level(logging.WARNING):
        worker.run(translate(positions=AT_4))
    assert not is_brief(worker.xcoms["translate", "return_value"])
    assert plan_of(worker).max_reread == 0
    assert worker.xcoms["translate", "starting_offsets"] == '{"orders":{"0":9}}'
    assert "The plan" in caplog.text
    assert "is in XCom whole" in caplog.text
    assert "stay a text, which a program may not take" in caplog.text
    assert "word" not in caplog.text


@pytest.mark.parametrize("folder", ["plans", "./plans"])
def test_a_folder_must_be_absolute(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    """Another process would look in its own: it is refused."""
    monkeypatch.setenv(FOLDER, folder)
    with pytest.raises(ConfigurationError, match=f"xcom_folder is '{folder}'.*an absolute path"):
        LongResultOptions.parse()


@pytest.mark.parametrize("folder", ["/mnt/plans", "s3://aws_default@lake/plans"])
def test_an_absolute_folder_is_taken(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    """A path or a URL."""
    monkeypatch.setenv(FOLDER, folder)
    assert LongResultOptions.parse().folder == folder
