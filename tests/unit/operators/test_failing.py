"""Which errors are tried again: those that may be gone by then."""

from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_mm2_offsets.errors import (
    CheckpointError,
    ClusterUnreachableError,
    ConfigurationError,
    ConnectError,
    HandoverError,
    Mm2OffsetsError,
    NotReadyError,
    PositionError,
    StopError,
    TranslationRefusedError,
)
from airflow_mm2_offsets.logins import without_login
from airflow_mm2_offsets.operators.failing import fails_at_once, final
from airflow_mm2_offsets.operators.links import PROBLEM
from airflow_mm2_offsets.storage import storage_errors
from tests.support.pairs import STOPPED
from tests.unit.operators.clusters import Clusters, define, impatient
from tests.unit.operators.translate_task import translate
from tests.unit.operators.worker import Worker


@pytest.mark.parametrize(
    "kind",
    [
        CheckpointError,
        ConfigurationError,
        HandoverError,
        NotReadyError,
        PositionError,
        TranslationRefusedError,
    ],
)
def test_an_error_that_a_user_must_mend_is_not_retried(kind: type[Mm2OffsetsError]) -> None:
    """Airflow takes it for final, and whoever catches it knows it by its class."""
    with pytest.raises(kind, match=r"^no$") as caught, fails_at_once():
        raise kind("no")
    assert isinstance(caught.value, AirflowFailException)
    assert type(caught.value).__name__ == kind.__name__


@pytest.mark.parametrize("kind", [ClusterUnreachableError, ConnectError, StopError])
def test_what_may_pass_is_tried_again(kind: type[Mm2OffsetsError]) -> None:
    """It stays as it is."""
    error = kind("not now")
    with pytest.raises(kind) as caught, fails_at_once():
        raise error
    assert caught.value is error


def test_a_storage_comes_back() -> None:
    """A storage that is out of reach does not make its files damaged: the task is retried."""
    with (
        pytest.raises(CheckpointError) as caught,
        fails_at_once(),
        storage_errors("s3://bucket", CheckpointError),
    ):
        raise OSError("503")
    assert not isinstance(caught.value, AirflowFailException)


def test_what_is_final_already_stays() -> None:
    """A wait that has run out is final though its error might pass."""
    error = final(StopError("waited 600 s"))
    with pytest.raises(StopError) as caught, fails_at_once():
        raise error
    assert caught.value is error


def test_a_task_with_wrong_settings_fails_at_once(worker: Worker, tmp_path: Path) -> None:
    """No retry makes positions of a word, or a folder of a file."""
    for settings in ({"positions": "latest"}, {"checkpoint": "nosuch://bucket/checkpoint"}):
        with pytest.raises(Mm2OffsetsError) as caught:
            worker.run(translate(**settings))
        assert isinstance(caught.value, AirflowFailException)
    assert not [*tmp_path.iterdir()]


def test_a_failed_task_keeps_its_message_for_the_page(worker: Worker) -> None:
    """Airflow has it in the log alone; a login in it stays hidden."""
    with pytest.raises(Mm2OffsetsError) as caught:
        worker.run(translate(checkpoint="nosuch://anna:word@bucket/checkpoint"))
    ((kept, _),) = [(each, key) for (_, key), each in worker.xcoms.items() if key == PROBLEM]
    assert "word@" not in kept
    assert kept == without_login(str(caught.value))


def test_a_task_whose_cluster_is_down_is_tried_again(
    worker: Worker, clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker may come back before the next try."""
    assert clusters
    impatient(monkeypatch)
    down = {"bootstrap.servers": STOPPED.bootstrap_servers}
    define(monkeypatch, "kafka_source", conn_type="kafka", extra=down)
    with pytest.raises(ClusterUnreachableError) as caught:
        worker.run(translate(positions={"orders": {"0": 4}}))
    assert not isinstance(caught.value, AirflowFailException)
