"""ReconcileOperator, with a Spark that is only played."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import javaproperties
import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import DAG

from airflow_mm2_offsets.errors import ConfigurationError, ReconciliationError
from airflow_mm2_offsets.job import py_files
from airflow_mm2_offsets.operators.reconcile import ReconcileOperator
from airflow_mm2_offsets.operators.reconcile_partitions import SIDES
from airflow_mm2_offsets.reconcile.request import JOB_FILE
from tests.unit.operators.clusters import Clusters, define
from tests.unit.operators.worker import Worker
from tests.unit.reconcile.test_reconcile import found, report

RANGES = {"source": {"orders": {"0": ["1", "2"]}}, "target": {"orders": {"0": ["6", "7"]}}}


class Spark:
    """Records what spark-submit gets, and writes the report of a job."""

    def __init__(self) -> None:
        self.report: dict[str, Any] = report()
        self.arguments: list[str] = []
        self.files: dict[str, str] = {}
        """What the driver reads."""
        self.sent: list[str] = []
        """What ``--files`` gives to executors, too."""
        self.conf: dict[str, str] = {}
        self.fails = False
        self.submitted: tuple[str | None, str | None] = (None, None)
        """The job's main file, and what came by ``--py-files``."""

    def run(self, task: SparkSubmitOperator, _context: object) -> None:
        self.arguments = list(task.application_args or ())
        self.submitted = (task.application, task.py_files)
        self.sent = [Path(each).name for each in (task.files or "").split(",")]
        self.conf = dict(task.conf or {})
        named = [Path(each) for each in self.arguments if each.endswith(".properties")]
        paths = [Path(each) for each in (task.files or "").split(",")]
        paths += [path for path in named if path.exists() and path not in paths]
        assert {path.stat().st_mode & 0o077 for path in {each.parent for each in paths}} == {0}
        self.files = {path.name: path.read_text() for path in paths}
        place = Path(self.arguments[self.arguments.index("--report") + 1])
        if self.report:
            place.mkdir()
            (place / "report.json").write_text(json.dumps(self.report))
        if self.fails:
            raise RuntimeError("Cannot execute: spark-submit. Error code is: 1.")

    def file_of(self, name: str) -> str:
        """Return the text of the file that an argument names."""
        path = Path(self.arguments[self.arguments.index(name) + 1])
        assert not path.exists()
        return self.files[path.name]


@pytest.fixture
def spark(clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> Spark:
    assert clusters
    played = Spark()

    def execute(task: SparkSubmitOperator, context: object) -> None:
        played.run(task, context)

    monkeypatch.setattr(SparkSubmitOperator, "execute", execute)
    return played


@pytest.fixture
def reconcile(worker: Worker, tmp_path: Path) -> Callable[..., ReconcileOperator]:
    def run(**settings: Any) -> ReconcileOperator:
        with DAG("dag", schedule=None):
            task = ReconcileOperator(
                task_id="verify", **{"report": str(tmp_path / "report"), **settings}
            )
        worker.run(task)
        return task

    return run


Run = Callable[..., ReconcileOperator]


def test_the_job_is_given_files_and_no_secrets(
    spark: Spark, reconcile: Run, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request and each cluster's login are files of the task's own, gone afterwards."""
    login = {
        "bootstrap.servers": "broker:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ann",
        "sasl.password": "hidden",
    }
    define(monkeypatch, "kafka_source", conn_type="kafka", extra=login)
    task = reconcile(scope={"ranges": RANGES}, sinks=[{"path": "/lake"}], py_files="own.py")
    request = json.loads(spark.file_of("--request"))
    assert request["partitions"][0]["source"] == ["1", "2"]
    assert request["sinks"][0]["path"] == "/lake"
    assert 'password=\\"hidden\\"' not in spark.file_of("--request")
    properties = javaproperties.loads(spark.file_of("--source-properties"))
    assert 'password="hidden"' in properties["sasl.jaas.config"]
    assert "bootstrap.servers=in-memory-" in spark.file_of("--target-properties")
    assert "hidden" not in " ".join(spark.arguments) + json.dumps(list(worker.xcoms.values()))
    assert spark.submitted == (JOB_FILE, f"{py_files()},own.py")
    assert task.files is None
    assert spark.sent == ["mm2-reconcile-request.json"]


SENT = ["mm2-reconcile-request.json", *(f"mm2-reconcile-{side}.properties" for side in SIDES)]


@pytest.mark.parametrize(
    ("connection", "settings", "sent"),
    [
        ({}, {}, SENT[:1]),
        ({"deploy-mode": "client"}, {}, SENT[:1]),
        ({"deploy-mode": "cluster"}, {}, SENT),
        ({"deploy-mode": "cluster"}, {"deploy_mode": "client"}, SENT[:1]),
        ({}, {"deploy_mode": "cluster"}, SENT),
        ({}, {"conf": {"spark.submit.deployMode": "cluster"}}, SENT),
    ],
)
def test_logins_are_sent_only_to_a_driver_elsewhere(
    spark: Spark,
    reconcile: Run,
    monkeypatch: pytest.MonkeyPatch,
    *,
    connection: dict[str, str],
    settings: dict[str, Any],
    sent: list[str],
) -> None:
    """A driver on this machine reads them here: no staging area and no executor has a copy."""
    define(monkeypatch, "spark_default", conn_type="spark", extra=connection, host="yarn")
    reconcile(scope={"ranges": RANGES}, **settings)
    assert spark.sent == sent


def test_a_token_endpoint_is_allowed(
    spark: Spark, reconcile: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka's newer clients ask only endpoints that a system property of their JVM lists."""
    oauth = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    for side in SIDES:
        login = {
            "bootstrap.servers": "broker:9092",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{oauth} required clientId=me clientSecret=hidden;",
            "sasl.oauthbearer.token.endpoint.url": f"https://{side}.invalid/token",
        }
        define(monkeypatch, f"kafka_{side}", conn_type="kafka", extra=login)
    conf = {"spark.driver.extraJavaOptions": "-Dx=y"}
    task = reconcile(scope={"ranges": RANGES}, conf=conf)
    urls = "https://source.invalid/token,https://target.invalid/token"
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={urls}"
    assert spark.conf["spark.driver.extraJavaOptions"] == f"-Dx=y {allowed}"
    assert spark.conf["spark.executor.extraJavaOptions"] == allowed
    assert task.conf == conf
    properties = javaproperties.loads(spark.file_of("--source-properties"))
    assert 'clientSecret="hidden"' in properties["sasl.jaas.config"]


@pytest.mark.parametrize("show_keys", [False, True])
def test_record_keys_stay_out_of_the_xcom(
    spark: Spark, reconcile: Run, worker: Worker, *, show_keys: bool
) -> None:
    """A key may be a person's name; whoever may see it says so."""
    spark.report["examples"] = [{"kind": "lost", "offset": "7", "key": "ann@example.com"}]
    reconcile(scope={"ranges": RANGES}, show_keys=show_keys)
    assert ("ann@example.com" in json.dumps(list(worker.xcoms.values()), default=str)) is show_keys
    assert '"offset": "7"' in json.dumps(list(worker.xcoms.values()), default=str)


def test_what_is_pushed(spark: Spark, reconcile: Run, worker: Worker) -> None:
    """The report with its outcome, and beside it what people read."""
    reconcile(scope={"ranges": RANGES})
    pushed = {key: value for (_, key), value in worker.xcoms.items()}
    assert pushed["return_value"] == spark.report | {"outcome": "clean", "allowed": 0}
    assert pushed["summary"].startswith("CLEAN: ")
    assert pushed["summary"] == f"{pushed['table'][0]} The XCom table has all lines."


def test_a_loss_fails_the_task(spark: Spark, reconcile: Run, worker: Worker) -> None:
    """The error names place and count; the report is pushed all the same."""
    spark.report = report(found("source-target", "lost", 3))
    with pytest.raises(ReconciliationError, match=r"orders\[0\]: 3 lost from source to target"):
        reconcile(scope={"ranges": RANGES})
    assert worker.xcoms["verify", "return_value"]["outcome"] == "failed"


@pytest.mark.parametrize(
    ("left", "message"),
    [
        ({"schema_version": 1, "error": "no such path"}, "could not compare: no such path"),
        ({}, "failed before it could say why; see this task's log: Cannot execute"),
    ],
)
def test_a_job_that_fails_says_why(
    spark: Spark, reconcile: Run, left: dict[str, Any], message: str
) -> None:
    """The job's own words, or where to look for them."""
    spark.fails, spark.report = True, left
    with pytest.raises(ReconciliationError, match=message):
        reconcile(scope={"ranges": RANGES})


def test_topics_of_a_time(spark: Spark, reconcile: Run) -> None:
    """All partitions of a topic are compared, in milliseconds since 1970."""
    times = {"start_time": "2026-11-21T08:00:00+00:00", "end_time": "2026-11-21T10:00:00+01:00"}
    reconcile(scope={"topics": ["orders"], **times})
    request = json.loads(spark.file_of("--request"))
    assert [each["partition"] for each in request["partitions"]] == [0, 1, 2, 3]
    assert request["time"] == [1_795_248_000_000, 1_795_251_600_000]


def test_a_cluster_that_is_gone_is_not_asked(
    spark: Spark, reconcile: Run, clusters: Clusters
) -> None:
    """Only what is to be read is looked at."""
    clusters.source.is_running = False
    properties = "/etc/kafka/target.properties"
    reconcile(
        scope={"topics": ["orders"], "read": ["target"]},
        sinks=[{"path": "/a"}],
        properties={"target": properties},
    )
    assert spark.arguments[-2:] == ["--target-properties", properties]
    assert list(spark.files) == ["mm2-reconcile-request.json"]


@pytest.mark.parametrize(
    ("scope", "message"),
    [
        ({}, "give one of plan, ranges and topics; given: none"),
        ({"ranges": RANGES, "topics": ["orders"]}, "given: ranges, topics"),
        ({"ranges": RANGES, "read": ["source"]}, "give source and target, or one of them and"),
        ({"ranges": RANGES, "read": ["sink", "source"]}, "read is"),
        ({"range": {}}, "scope has 'range'; did you mean ranges"),
        ({"topics": ["orders"], "records_before": -1}, "records_before is -1"),
        ({"topics": ["nothing"]}, "has no topic nothing"),
        ({"topics": ["orders"], "start_time": "2026-11-21T08:00:00"}, "start_time is"),
        ({"topics": ["orders"], "start_time": "2026-11-21T08:00:00Z"}, "end_time is None"),
    ],
)
def test_settings_that_contradict_are_refused(
    spark: Spark, reconcile: Run, scope: dict[str, Any], message: str
) -> None:
    """What can't be compared is said before Spark is started."""
    with pytest.raises(ConfigurationError, match=message):
        reconcile(scope=scope)
    assert not spark.arguments


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"plan": "{}"}, "this release can't read plan"),
        ({"scope": {"topics": ["a"]}, "properties": {"sourc": "/a"}}, "properties has 'sourc'"),
    ],
)
def test_settings_that_are_wrong_are_refused(
    spark: Spark, reconcile: Run, settings: dict[str, Any], message: str
) -> None:
    """Likewise."""
    with pytest.raises(ConfigurationError, match=message):
        reconcile(**settings)
    assert not spark.arguments


def test_each_setting_may_be_a_template(spark: Spark, reconcile: Run, worker: Worker) -> None:
    """Templates stand wherever a value may differ from run to run."""
    worker.conf = {"from": "3", "folder": "/lake", "mm2": "mm2_default"}
    reconcile(
        mm2_conn_id="{{ dag_run.conf.mm2 }}",
        scope={
            "ranges": {each: {"orders": {"0": ["{{ dag_run.conf.from }}", "9"]}} for each in RANGES}
        },
        sinks=[{"path": "{{ dag_run.conf.folder }}/{{ run_id }}"}],
    )
    request = json.loads(spark.file_of("--request"))
    assert request["partitions"][0]["target"] == ["3", "9"]
    assert request["sinks"][0]["path"] == "/lake/manual__1"
    own = {"report", "plan", "scope", "kafka", "properties"}
    assert own <= set(ReconcileOperator.template_fields)
    assert set(SparkSubmitOperator.template_fields) <= set(ReconcileOperator.template_fields)
