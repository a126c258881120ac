"""Makes our errors of what brokers and librdkafka report; ``kafka.session`` raises them."""

from collections.abc import Mapping
from typing import Unpack

from confluent_kafka import KafkaError

from airflow_mm2_offsets.core.acls import Operation
from airflow_mm2_offsets.errors import (
    ClusterRefusedError,
    ClusterSecurityError,
    ClusterUnreachableError,
    ConfigurationError,
    ErrorFields,
    MissingRightError,
    Mm2OffsetsError,
    TopicNotFoundError,
)
from airflow_mm2_offsets.kafka.acls import describe_missing, missing_acl
from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS, Setting
from airflow_mm2_offsets.kafka.error_codes import NOT_FOUND
from airflow_mm2_offsets.kafka.explain import explain
from airflow_mm2_offsets.kafka.redaction import Redactor


class ReportedErrors:
    """The errors of one cluster's client; they name the cluster, and show no secret."""

    def __init__(self, cluster: str, config: Mapping[str, Setting], redactor: Redactor) -> None:
        """Keep whose errors they are.

        Args:
            cluster: The cluster's name in error messages.
            config: librdkafka properties.
            redactor: Hides the secrets among them.
        """
        self._cluster: ErrorFields = {"cluster": cluster, "servers": str(config[BOOTSTRAP_SERVERS])}
        self._config = config
        self._hide = redactor.hide

    def refusal(
        self,
        error: KafkaError,
        *,
        operation: Operation,
        group: str | None,
        **subject: Unpack[ErrorFields],
    ) -> Mm2OffsetsError:
        """Return the error of a broker's answer; see ``ClientSession.failure``."""
        fields: ErrorFields = {**self._cluster, **subject}
        report = self._hide(error.str())
        if error.code() in NOT_FOUND:
            problem = f"does not exist: {report}; check the name and that it is this cluster"
            return TopicNotFoundError(problem, **fields)
        acl = missing_acl(error.code(), operation, group or subject.get("topic"))
        kind = MissingRightError if acl else ClusterRefusedError
        step = describe_missing(acl, self._config) if acl else "see the broker's log for the reason"
        return kind(f"refused: {report}; {step}", **fields)

    def unreachable(
        self, report: str, *, seconds: float, login_failed: bool
    ) -> ClusterUnreachableError:
        """Return the error that names the brokers, how long they were tried, and the reason.

        Args:
            report: librdkafka's text; may be empty.
            seconds: How long they were tried.
            login_failed: Whether librdkafka says so.
        """
        advice = explain(report, self._config)
        reason = f"{advice.cause} ({report})" if advice.cause and report else advice.cause or report
        problem = "authentication failed" if login_failed else "did not answer"
        kind = ClusterSecurityError if advice.blames_settings else ClusterUnreachableError
        error = kind(
            f"{problem}, tried for {seconds:.1f} s: "
            f"{self._hide(reason) or 'librdkafka gave no reason'}; {advice.step}",
            **self._cluster,
        )
        if advice.settings:
            error.fields["setting"] = advice.settings[0]  # the message names them all
        return error

    def misconfigured(self, report: str) -> ConfigurationError:
        """Return the error of a configuration of which librdkafka makes no client."""
        advice = explain(report, self._config)
        shown = self._hide(report)
        problem = f"{shown}; correct its settings (in Airflow: the extra of its kafka connection)"
        if advice.cause:
            problem = f"{advice.cause} ({shown}); {advice.step}"
        error = ConfigurationError(problem, cluster=self._cluster["cluster"])
        if advice.settings:
            error.fields["setting"] = advice.settings[0]
        return error
