"""Whether the names of the job's topics on the target fit into an argument of the job."""

from collections.abc import Collection

from airflow_mm2_offsets.core.readiness import ReadinessCheck
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.planning.topic_list import find_long_list
from airflow_mm2_offsets.readiness.answers import failed, not_asked, ok
from airflow_mm2_offsets.readiness.pair_request import PairRequest


def check_topic_list(request: PairRequest, topics: Collection[str]) -> ReadinessCheck:
    """Compare the list with the longest argument; a job with a pattern needs no list.

    Args:
        request: The question.
        topics: The topics in the checkpoint, by their names on the source.
    """
    if request.patterns.are_used:
        return not_asked(CheckName.TOPIC_LIST, "the job subscribes by a pattern")
    if request.argument_max_bytes is None:
        return not_asked(CheckName.TOPIC_LIST, "no argument_max_bytes is given")
    listed = ",".join(map(request.pair.naming.target_topic, topics))
    if problem := find_long_list(listed, request.argument_max_bytes):
        return failed(CheckName.TOPIC_LIST, problem)
    return ok(CheckName.TOPIC_LIST, f"the list of topics has {len(listed.encode())} bytes")
