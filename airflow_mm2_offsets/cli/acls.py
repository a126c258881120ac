"""``acls``: the rights that a task needs, as commands for an administrator."""

import re
from typing import TYPE_CHECKING, Annotated

from airflow_mm2_offsets.cli.clusters import ClusterOptions, find_clusters
from airflow_mm2_offsets.cli.command import answering, grouped
from airflow_mm2_offsets.cli.output import Answer
from airflow_mm2_offsets.cli.params import Option
from airflow_mm2_offsets.core.acls import TASK_RIGHTS
from airflow_mm2_offsets.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from airflow_mm2_offsets.kafka.cluster import KafkaCluster
    from airflow_mm2_offsets.planning.acls import ClusterAcl

EXAMPLE = """\
\b
Examples:
  airflow-mm2-offsets acls --principal User:airflow --topic orders --config mm2.toml
  airflow-mm2-offsets acls --principal User:airflow --operator archive --topic 'orders*'"""

_EXAMPLE = "User:airflow"
_PRINCIPAL = re.compile(r"\w+:.+")
"""As ``org.apache.kafka.common.utils.SecurityUtils.parseKafkaPrincipal`` takes it."""
_TASKS = ", ".join(each.task for each in TASK_RIGHTS)


@grouped
@answering
def acls(
    *,
    principal: Annotated[
        str, Option("--principal", metavar="User:NAME", help="Who needs them, on both clusters.")
    ],
    target_principal: Annotated[
        str | None,
        Option("--target-principal", metavar="User:NAME", help="Who it is on the target, if else."),
    ] = None,
    operator: Annotated[
        str,
        Option("--operator", metavar="TASK", help=f"What for: {_TASKS}, or an operator's class."),
    ] = "failover",
    topic: Annotated[
        list[str],
        Option(
            "--topic",
            metavar="NAME",
            help="The job's topics, by the source's names; NAME* stands for all that begin so.",
        ),
    ],
    pair_options: ClusterOptions,
) -> Answer:
    """Print the kafka-acls commands for what a task needs.

    Nothing is asked or changed. An administrator runs the commands with a file admin.properties.
    """
    from airflow_mm2_offsets.planning.acls import acls_of

    principals = {"source": principal, "target": target_principal or principal}
    _check(principals.values())
    pair = find_clusters(pair_options).pair
    rights = acls_of(pair, operator, topic)
    rows = [_row(each, getattr(pair, each.side), principals[each.side]) for each in rights]
    text = "\n".join(line for side in principals for line in _commands(side, rows))
    return Answer(text=text, data={"task": operator, "acls": rows}, has_advice=False)


def _check(principals: "Iterable[str]") -> None:
    for each in principals:
        if not _PRINCIPAL.fullmatch(each):
            raise ConfigurationError(f"{each!r} is no principal; give TYPE:NAME, as in {_EXAMPLE}")


def _commands(side: str, rows: "Iterable[Mapping[str, str]]") -> "Iterator[str]":
    """Yield what an administrator runs on one cluster, below its name."""
    yield f"# {side}"
    yield from (row["command"] for row in rows if row["cluster"] == side)


def _row(right: "ClusterAcl", cluster: "KafkaCluster", principal: str) -> dict[str, str]:
    from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS

    acl = right.acl
    return {
        "cluster": right.side,
        "principal": principal,
        "operation": acl.operation.value,
        "resource": acl.resource.value,
        "name": acl.name,
        "pattern": "prefixed" if acl.is_prefix else "literal",
        "command": acl.command(principal, str(cluster.config[BOOTSTRAP_SERVERS])),
    }
