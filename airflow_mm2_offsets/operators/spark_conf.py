"""What a task that submits a Spark job says about where the driver runs and what its JVMs may do.

``ReconcileOperator`` calls it.
"""

from collections.abc import Mapping
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook

_ALLOWED_URLS = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls="
"""Kafka's client asks no other token endpoint, from 3.9.1 and 4.0 on."""
_JVM_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")


def is_cluster_mode(task: SparkSubmitOperator) -> bool:
    """Tell whether the driver runs elsewhere: by the argument, the connection or ``conf``."""
    mode = task._deploy_mode or _mode_of_connection(task._conn_id)  # noqa: SLF001 - it has no public name
    return (mode or (task.conf or {}).get("spark.submit.deployMode")) == "cluster"


def with_allowed_url(conf: Mapping[str, Any], url: str) -> dict[str, Any]:
    """Return a Spark configuration whose JVMs may ask a token endpoint, beside others."""
    return {**conf} | {name: _with_url(str(conf.get(name, "")), url) for name in _JVM_OPTIONS}


def _with_url(options: str, url: str) -> str:
    words = options.split()
    for index, word in enumerate(words):
        if word.startswith(_ALLOWED_URLS):
            urls = word.removeprefix(_ALLOWED_URLS).split(",")
            words[index] = _ALLOWED_URLS + ",".join(dict.fromkeys([*urls, url]))
            return " ".join(words)
    return f"{options} {_ALLOWED_URLS}{url}".strip()


def _mode_of_connection(conn_id: str | None) -> str | None:
    try:
        connection = BaseHook.get_connection(conn_id or "spark_default")
    except AirflowNotFoundException:
        return None  # Airflow's Spark hook does without it, too.
    mode: str | None = connection.extra_dejson.get("deploy-mode")
    return mode
