"""Plans a failover from what is left of a pair: source, offset-syncs topic or Connect may be lost.

The operators of a disaster, the forecast and the command line call it.
"""

from dataclasses import replace

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import FailoverPlan, Positions
from airflow_mm2_offsets.errors import SyncsTopicError
from airflow_mm2_offsets.planning.lost_parts import LostParts, with_what_is_left
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS, PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover


def plan_from_what_is_left(
    pair: ClusterPair,
    positions: Positions,
    *,
    pending: Positions | None = None,
    options: PlanOptions = DEFAULT_OPTIONS,
) -> FailoverPlan:
    """Translate a job's positions with all evidence that can still be had.

    The plan names each part that it was made without. A part that is lost after it had answered is
    left out, too.

    Args:
        pair: The clusters; the target must answer.
        positions: The job's positions on the source.
        pending: The end of the batch that the job began and did not commit, if any.
        options: What the user decides. The archive replaces a syncs topic that is lost.

    Raises:
        ClusterUnreachableError: The target does not answer.
        SyncsTopicError: The offset-syncs topic is lost, and no archive is given.
        Mm2OffsetsError: See ``plan_failover``.
    """

    def plan(lost: LostParts) -> FailoverPlan:
        return plan_without(lost, pair, positions, pending=pending, options=options)

    return with_what_is_left(pair, positions, plan)


def plan_without(
    lost: LostParts,
    pair: ClusterPair,
    positions: Positions,
    *,
    pending: Positions | None = None,
    options: PlanOptions = DEFAULT_OPTIONS,
) -> FailoverPlan:
    """Translate a job's positions without the lost parts; the plan names them.

    Raises:
        SyncsTopicError: The offset-syncs topic is lost, and no archive is given.
        Mm2OffsetsError: See ``plan_failover``.
    """
    _check_possible(pair, lost, options)
    made = plan_failover(
        _pair_without(pair, lost),
        positions,
        pending=pending,
        options=options_without(options, lost),
    )
    return replace(made, left_out=lost.left_out())


def options_without(options: PlanOptions, lost: LostParts) -> PlanOptions:
    """Return the options of a plan that does without the lost parts."""
    # Whoever does not want the source asked does not want the topic read that lies there.
    reads_topic = None if not options.read_source else lost.syncs_topic is None
    return replace(
        options,
        read_source=options.read_source and lost.source is None,
        read_syncs_topic=False if lost.syncs_topic else reads_topic,
    )


def _check_possible(pair: ClusterPair, lost: LostParts, options: PlanOptions) -> None:
    if (syncs_gone := lost.syncs_topic) is not None and options.archive is None:
        raise SyncsTopicError(
            f"the offset syncs in topic {pair.syncs_topic} are lost, and no archive is given, so "
            f"nothing says where records were copied to: {syncs_gone}. Give the location of the "
            f"archive that ArchiveSyncsOperator keeps (archive); without one, start the job on the "
            f"target at offsets that you choose",
            setting="archive",
        ) from syncs_gone


def _pair_without(pair: ClusterPair, lost: LostParts) -> ClusterPair:
    return replace(pair, connect=None) if lost.connect else pair
