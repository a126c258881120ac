"""``doctor``: what is wrong or dangerous in the set-up of a MirrorMaker 2."""

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from airflow_mm2_offsets.cli.clusters import ClusterOptions, find_clusters
from airflow_mm2_offsets.cli.command import answering, grouped
from airflow_mm2_offsets.cli.exit_codes import ExitCode
from airflow_mm2_offsets.cli.output import Answer
from airflow_mm2_offsets.cli.params import Option
from airflow_mm2_offsets.cli.terminal import waiting
from airflow_mm2_offsets.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_mm2_offsets.config.mirror_maker.flows import MirrorFlow
    from airflow_mm2_offsets.doctor import DoctorRequest
    from airflow_mm2_offsets.planning.mirror_connector import MirrorConnector

EXAMPLE = """\
\b
Examples:
  airflow-mm2-offsets doctor --config mm2.properties --topic orders
  airflow-mm2-offsets doctor --config mirror.yaml --offline --json"""


@grouped
@answering
def doctor(
    *,
    topic: Annotated[
        list[str] | None,
        Option("--topic", metavar="NAME", help="A topic of the job; may be given several times."),
    ] = None,
    archive: Annotated[
        str | None,
        Option("--archive", metavar="URL", help="Where the offset syncs are archived, if so."),
    ] = None,
    offline: Annotated[
        bool, Option("--offline", help="Examine the settings alone; ask no cluster.")
    ] = False,
    pair_options: ClusterOptions,
) -> Answer:
    """Tell what is wrong or dangerous; nothing is changed.

    Examines the settings of MirrorMaker 2 (mm2.properties, a connector's JSON, Strimzi's YAML, or
    what Kafka Connect runs), the connections, and what the clusters say.
    """
    from airflow_mm2_offsets.doctor import diagnose

    request = replace(_request(pair_options), topics=topic or (), offline=offline)
    request = replace(request, has_archive=request.has_archive or archive is not None)
    with waiting("Examining"):
        diagnosis = diagnose(request)
    return Answer(
        text=diagnosis.to_text(),
        data=diagnosis.to_json(),
        exit_code=ExitCode.UNSOUND if diagnosis.has_errors else ExitCode.OK,
    )


def _request(options: ClusterOptions) -> "DoctorRequest":
    from airflow_mm2_offsets.config.sources import read_mirror_flows
    from airflow_mm2_offsets.doctor import DoctorRequest

    flows = read_mirror_flows(options.config, os.environ) if options.conn_id is None else None
    request = DoctorRequest()
    if flows is not None:
        request = DoctorRequest(
            connectors=_connectors(flows.meant),
            enabled=_connectors(each for each in flows.all if each.enabled),
            disabled=_connectors(each for each in flows.all if not each.enabled),
        )
    try:
        clusters = find_clusters(options)
    except ConfigurationError as error:
        if not request.connectors:
            raise
        return replace(request, pair_problem=str(error))
    return replace(request, pair=clusters.pair, has_archive=clusters.archive_location is not None)


def _connectors(flows: "Iterable[MirrorFlow]") -> "list[MirrorConnector]":
    from airflow_mm2_offsets.planning.mirror_connector import MirrorConnector

    return [
        MirrorConnector(
            name=str(flow), config={name: each.value for name, each in flow.connector.items()}
        )
        for flow in flows
    ]
