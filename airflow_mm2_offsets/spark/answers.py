"""Compares what a job says when it has stopped with the checkpoint that is then read."""

from upath import UPath

from airflow_mm2_offsets.core.positions import by_topic_partition
from airflow_mm2_offsets.errors import CheckpointNotBegunError, StopError
from airflow_mm2_offsets.spark.checkpoint import read_checkpoint
from airflow_mm2_offsets.spark.control import Acknowledgement, Driver, QueryAnswer
from airflow_mm2_offsets.spark.logs import read_logs
from airflow_mm2_offsets.storage import open_location


def check_answer(answer: Acknowledgement, checkpoint: UPath | str) -> bool:
    """Compare what a job says it has committed with its checkpoint.

    Returns:
        Whether that shows the checkpoint to be the job's: it ends with the batch that the job has
        committed last, and the job began no other.

    Raises:
        StopError: They differ: the checkpoint is another job's, or was copied too early.
        CheckpointError: The checkpoint can't be read.
    """
    root = open_location(checkpoint, StopError)
    said = _said_of(answer, root)
    if said is None or said.batch_id is None:
        return False
    committed = read_logs(root).committed
    _same(f"{root}/commits: the last committed batch", said.batch_id, committed)
    positions = by_topic_partition(read_checkpoint(root).positions if said.offsets else {})
    for partition, offset in by_topic_partition(said.offsets or {}).items():
        _same(f"{root}: the position of {partition}", offset, positions.get(partition))
    return answer.clean


def check_ended(driver: Driver, checkpoint: UPath | str) -> None:
    """Raise where a checkpoint has gone on since its driver said that its queries have ended.

    Then the job runs with another control location, or without one.

    Raises:
        StopError: It has: both batches are named.
        CheckpointError: The checkpoint can't be read.
    """
    if not driver.ended or not driver.batches:
        return
    root = open_location(checkpoint, StopError)
    try:
        logs = read_logs(root)
    except CheckpointNotBegunError:  # nor was it begun then
        return
    if logs.query_id not in driver.batches:
        return
    said = driver.batches[logs.query_id]
    if said != logs.committed:
        raise StopError(
            f"{root}/commits: the last committed batch is {_text(logs.committed)}, and it was "
            f"{_text(said)} when the queries of the driver {driver.application_id} had ended: the "
            f"job runs with another control location, or without one. Give the one that it runs "
            f"with; if that job has ended too, run it once more with this control location"
        )


def _text(batch: int | None) -> str:
    return "none" if batch is None else str(batch)


def _same(what: str, said: int, found: int | None) -> None:
    if said != found:
        raise StopError(
            f"{what} is {_text(found)}, and the job that has stopped says "
            f"{said}: the checkpoint is another job's, or a copy from another time; give the one "
            f"that the job writes"
        )


def _said_of(answer: Acknowledgement, root: UPath) -> QueryAnswer | None:
    """Return what an answer says of a checkpoint's query."""
    if not answer.queries:  # of an older release: one query, which it does not name
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
