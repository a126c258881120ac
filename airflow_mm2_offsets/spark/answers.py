"""Compares a job's answer to a stop with its checkpoint; the stop trigger and the check call it."""

from upath import UPath

from airflow_mm2_offsets.core.positions import by_topic_partition
from airflow_mm2_offsets.errors import CheckpointNotBegunError, StopError
from airflow_mm2_offsets.spark.checkpoint import read_checkpoint
from airflow_mm2_offsets.spark.control import Acknowledgement, Driver, QueryAnswer
from airflow_mm2_offsets.spark.logs import read_logs
from airflow_mm2_offsets.storage import open_location


def check_answer(answer: Acknowledgement, checkpoint: UPath | str) -> bool:
    """Compare the last batch in a job's answer with a checkpoint.

    Returns:
        Whether the checkpoint is proved to be the job's: it ends with the batch that the job has
        committed last, and the job began no later batch.

    Raises:
        StopError: They differ: the checkpoint is another job's, or was copied too early.
        CheckpointError: The checkpoint can't be read.
    """
    root = open_location(checkpoint, StopError)
    query = _answer_of_query(answer, root)
    if query is None or query.batch_id is None:
        return False
    committed = read_logs(root).committed
    _check_equal(f"{root}/commits: the last committed batch", query.batch_id, committed)
    positions = by_topic_partition(read_checkpoint(root).positions if query.offsets else {})
    for partition, offset in by_topic_partition(query.offsets or {}).items():
        _check_equal(f"{root}: the position of {partition}", offset, positions.get(partition))
    return answer.clean


def check_ended(driver: Driver, checkpoint: UPath | str) -> None:
    """Raise if a checkpoint has new batches since its driver's queries have ended.

    Then the job runs with another control location, or without one.

    Raises:
        StopError: The last batch is another one; both are named.
        CheckpointError: The checkpoint can't be read.
    """
    if not driver.ended or not driver.batches:
        return
    root = open_location(checkpoint, StopError)
    try:
        logs = read_logs(root)
    except CheckpointNotBegunError:
        return
    last = driver.batches.get(logs.query_id, logs.committed)
    if last != logs.committed:
        raise StopError(
            f"{root}/commits: the last committed batch is {_text(logs.committed)}, and it was "
            f"{_text(last)} when the queries of the driver {driver.application_id} had ended: the "
            f"job runs with another control location, or without one. Give the one that it runs "
            f"with; if that job has ended too, run it once more with this control location"
        )


def _text(batch: int | None) -> str:
    return "none" if batch is None else str(batch)


def _check_equal(name: str, answered: int, actual: int | None) -> None:
    if answered != actual:
        raise StopError(
            f"{name} is {_text(actual)}, and {answered} in the answer of the job that has stopped: "
            f"the checkpoint is another job's, or a copy from another time; give the one that the "
            f"job writes"
        )


def _answer_of_query(answer: Acknowledgement, root: UPath) -> QueryAnswer | None:
    """Return the part of an answer that is about a checkpoint's query."""
    if not answer.queries:  # an older release has one query, and does not name it
        return QueryAnswer(query_id="", run_id="", batch_id=answer.batch_id, offsets=answer.offsets)
    if all(query.batch_id is None for query in answer.queries):
        return None
    query_id = read_logs(root).query_id
    for query in answer.queries:
        if query.query_id == query_id:
            return query
    raise StopError(
        f"{root}: the checkpoint is of the query {query_id}, and the job that has stopped ran "
        f"{', '.join(query.query_id for query in answer.queries)}; give the checkpoint of that job"
    )
