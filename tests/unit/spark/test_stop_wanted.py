"""Whether a job that stops is still wanted to, once its batch comes to its commit."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from airflow_mm2_offsets.spark.job.mm2_stop_control import StopControl

FENCE = {"request_id": "first", "state": "stopping"}


class _Files:
    """A control location that is one dict."""

    def __init__(self, files: dict[str, Any]) -> None:
        self.files = files

    def read(self, name: str) -> Any:  # noqa: ANN401 - as JSON has it
        return self.files.get(name)


class _Stream:
    """A query whose batch comes to its commit once the failover has gone on."""

    def stop(
        self, _deadline: float, is_wanted: Callable[[], bool], _ended: threading.Event
    ) -> bool:
        return is_wanted()


@pytest.mark.parametrize(
    ("files", "goes_on"),
    [
        ({"stop-request.json": {"request_id": "first"}, "fence.json": FENCE}, False),
        ({"stop-request.json": {"request_id": None}}, True),
        # It was taken for gone, and answered for: the job may be running elsewhere.
        (
            {
                "stop-request.json": {"request_id": "first"},
                "fence.json": FENCE,
                "stopped.json": {"request_id": "first", "proof": "silent"},
            },
            False,
        ),
        (
            {
                "stop-request.json": {"request_id": "first"},
                "fence.json": {**FENCE, "state": "moved"},
                "stopped.json": {"request_id": "first", "proof": "silent"},
            },
            False,
        ),
        # Another run has taken the fence over.
        (
            {
                "stop-request.json": {"request_id": "second"},
                "fence.json": {**FENCE, "request_id": "second"},
                "stopped.json": {"request_id": "first", "proof": "silent"},
            },
            False,
        ),
    ],
)
def test_a_job_goes_on_where_its_stop_was_withdrawn_alone(
    files: dict[str, Any], *, goes_on: bool
) -> None:
    """One that goes on begins its next batch: the records would be read on both clusters."""
    control = StopControl.__new__(StopControl)
    vars(control).update(_files=_Files(files), _batch_timeout=1.0)
    streams: Any = [_Stream()]
    assert control._stop(streams, "first") is not goes_on  # noqa: SLF001 - the job's side
