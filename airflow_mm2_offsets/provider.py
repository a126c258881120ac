"""The provider's description: its name, its connection type and that type's form.

Airflow calls ``get_provider_info`` through the entry point ``apache_airflow_provider``.
"""

from collections.abc import Mapping
from typing import Any

from airflow_mm2_offsets import __version__

_TEXT = ["string", "null"]


def get_provider_info() -> dict[str, Any]:
    """Return the provider's description (``provider_info.schema.json`` of Airflow)."""
    return {
        "package-name": "airflow-mm2-offsets",
        "name": "MirrorMaker 2 offsets",
        "description": "Translates the offsets of Spark streaming jobs between Kafka clusters "
        "kept by MirrorMaker 2, with proof.",
        "versions": [__version__],
        "integrations": [_INTEGRATION],
        "connection-types": [_CONNECTION_TYPE],
        "config": {"mm2_offsets": _CONFIG_SECTION},
    }


def _field(label: str, description: str, **schema: object) -> dict[str, Any]:
    return {"label": label, "description": description, "schema": {"type": _TEXT, **schema}}


CONNECTION_FIELDS: Mapping[str, dict[str, Any]] = {
    "source_kafka_conn_id": _field(
        "Source Kafka connection",
        "Id of the kafka connection of the cluster that MirrorMaker 2 copies from.",
        default="kafka_source",
    ),
    "target_kafka_conn_id": _field(
        "Target Kafka connection",
        "Id of the kafka connection of the cluster that MirrorMaker 2 copies to.",
        default="kafka_target",
    ),
    "source_alias": _field(
        "Source alias", "source.cluster.alias of MirrorMaker 2.", default="source"
    ),
    "target_alias": _field(
        "Target alias", "target.cluster.alias of MirrorMaker 2.", default="target"
    ),
    "replication_policy": _field(
        "Replication policy",
        "identity: topics keep their names; default: the source's alias and the separator "
        "precede them.",
        default="default",
        enum=["default", "identity"],
    ),
    "replication_policy_separator": _field(
        "Separator", "replication.policy.separator.", default="."
    ),
    "replication_policy_internal_topic_separator_enabled": _field(
        "Separator in internal topics",
        "replication.policy.internal.topic.separator.enabled.",
        default="true",
        enum=["true", "false"],
    ),
    "offset_syncs_topic_location": _field(
        "Offset-syncs topic is on",
        "offset-syncs.topic.location.",
        default="source",
        enum=["source", "target"],
    ),
    "mapping": _field(
        "Offset mapping",
        "offset_syncs: MirrorMaker 2 copies, and its offset syncs say where records lie; identity: "
        "the copies keep their offsets (cluster mirroring of KIP-1279, Cluster Linking), and each "
        "plan proves it.",
        default="offset_syncs",
        enum=["offset_syncs", "identity"],
    ),
    "connect_url": _field(
        "Kafka Connect URL",
        "REST address of a worker that runs the connectors, such as http://connect:8083; leave "
        "it empty if MirrorMaker 2 runs without Connect (dedicated mode).",
    ),
}
"""The fields that a connection of type ``mm2`` has beside Airflow's own."""
FORM_BEHAVIOUR: Mapping[str, Any] = {
    "hidden-fields": ["schema", "port", "host"],
    "relabeling": {"login": "Kafka Connect user", "password": "Kafka Connect password"},
    "placeholders": {
        "login": "only if Kafka Connect asks for a login",
        "password": "only if Kafka Connect asks for a login",
    },
}
"""What becomes of Airflow's own fields."""
_CONNECTION_TYPE = {
    "connection-type": "mm2",
    "hook-class-name": "airflow_mm2_offsets.hooks.mm2.Mm2OffsetHook",
    "hook-name": "Kafka MirrorMaker 2",
    "ui-field-behaviour": FORM_BEHAVIOUR,
    "conn-fields": CONNECTION_FIELDS,
}
_INTEGRATION = {
    "integration-name": "Kafka MirrorMaker 2",
    "external-doc-url": "https://kafka.apache.org/documentation/#georeplication",
    "how-to-guide": ["/docs/start.md", "/docs/failover.md", "/docs/runbook.md"],
    "tags": ["software"],
}


def _option(description: str, kind: str, default: str) -> dict[str, Any]:
    return {
        "description": description,
        "version_added": "0.1.0",
        "type": kind,
        "example": None,
        "default": default,
    }


_CONFIG_SECTION = {
    "description": "Settings of the REST API and the page in Airflow's API server, and of what "
    "tasks leave in Airflow's database.",
    "options": {
        "refresh_seconds": _option(
            "Seconds between two reads of an offset-syncs topic.", "float", "30"
        ),
        "xcom_max_bytes": _option(
            "The longest plan or forecast, in bytes of JSON, that XCom holds whole. Of a longer "
            "one XCom holds totals, the worst partitions and the location of the file with all.",
            "integer",
            "65536",
        ),
        "xcom_folder": _option(
            "A folder on any storage for the long plans and forecasts of drills, dry runs and "
            "tasks without a path of their own. Empty: those stay whole in XCom.",
            "string",
            "",
        ),
        "argument_max_bytes": _option(
            "The longest starting offsets, in bytes, that a job gets as text. Longer ones lie in a "
            "file, and the job gets @ and its location. "
            "Linux lets an argument of a program have 131072 bytes, and YARN makes one argument of "
            "all that a driver is started with; Databricks and EMR take about 10000.",
            "integer",
            "100000",
        ),
        "plan_folders": _option(
            "Folders, separated by commas, below which the page may read the files of long plans, "
            "such as s3://aws_default@lake/jobs. Whoever may write an XCom chooses which file.",
            "string",
            "",
        ),
        "run_tab": _option(
            "Whether each DAG run, of any DAG, has the tab Failover.", "boolean", "True"
        ),
    },
}
