"""The findings on the set-ups that people begin with, from the command to the exit code."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from airflow_mm2_offsets.cli.app import app
from airflow_mm2_offsets.cli.exit_codes import ExitCode
from tests.support.mirror_setups import COMPOSE, KAFKA_DOCS, MSK, STRIMZI

LOST = (
    "error syncs_lost_with_source: offset-syncs.topic.location = source in {}, and no archive is "
    "given"
)
ABORTED = (
    "warning aborted_copied: source.consumer.isolation.level = read_uncommitted (the default) in {}"
)
DUPLICATES = (
    "note duplicates_possible: producer.override.enable.idempotence = false (Connect's default) "
    "in {}"
)
UNKNOWN_POLICY = (
    "error policy_unknown: replication.policy.class = com.example.msk.CustomMM2ReplicationPolicy "
    "in {}"
)


def examine(tmp_path: Path, text: str, name: str, *options: str) -> tuple[int, list[str]]:
    """Return the exit code, and of each finding the severity, the rule and the value."""
    file = tmp_path / name
    file.write_text(text)
    arguments = ["doctor", "--config", str(file), "--offline", "--json", *options]
    result = CliRunner().invoke(app, arguments)
    assert result.stdout, result.stderr
    findings = json.loads(result.stdout)["findings"]
    return result.exit_code, [f"{e['severity']} {e['check']}: {e['value']}" for e in findings]


def test_kafkas_own_example(tmp_path: Path) -> None:
    """Two flows, of which none is chosen: both are examined."""
    code, findings = examine(tmp_path, KAFKA_DOCS, "mm2.properties")
    assert code == ExitCode.UNSOUND
    each = [
        LOST,
        "warning syncs_replication: offset-syncs.topic.replication.factor = 1 in {}",
        ABORTED,
        "warning replication_factor: replication.factor = 1 in {}",
        DUPLICATES,
        "note one_task: tasks.max = 1 (the default) in {}",
    ]
    both_ways = [line.format(flow) for line in each for flow in ("oslo->rome", "rome->oslo")]
    assert sorted(findings) == sorted(both_ways)
    severities = [line.partition(" ")[0] for line in findings]
    assert severities == ["error"] * 2 + ["warning"] * 6 + ["note"] * 4


def test_the_compose_stack_of_mm2_offset_map(tmp_path: Path) -> None:
    """Its syncs lie on the target; its heartbeats are switched off where the lag needs them."""
    code, findings = examine(tmp_path, COMPOSE, "mm2.properties")
    assert code == ExitCode.OK
    expected = [
        "warning no_archive: no archive is given for {}",
        "warning no_connect_url: no Connect URL is given for {}",
        "warning syncs_replication: offset-syncs.topic.replication.factor = 1 in {}",
        ABORTED,
        "warning replication_factor: replication.factor = 1 in {}",
        "warning no_heartbeats: emit.heartbeats.enabled = false in target->source",
        DUPLICATES,
        "note acls_not_copied: sync.topic.acls.enabled = false in {}",
        "note one_task: tasks.max = 1 (the default) in {}",
    ]
    assert findings == [line.format("source->target") for line in expected]


def test_strimzis_example(tmp_path: Path) -> None:
    """Secrets of Kubernetes are not asked for; the worker's producer is the target's."""
    code, findings = examine(tmp_path, STRIMZI, "mirror.yaml")
    assert code == ExitCode.UNSOUND
    expected = [
        LOST,
        ABORTED,
        "note acls_not_copied: sync.topic.acls.enabled = false in {}",
        "note one_task: tasks.max = 1 in {}",
    ]
    assert findings == [line.format("oslo->rome") for line in expected]


def test_amazons_connector(tmp_path: Path) -> None:
    """A policy of its own, and one converter is left to the worker.

    ``producer.enable.idempotence`` is of the producer of offset syncs, not of the copies'.
    """
    code, findings = examine(tmp_path, MSK, "connector.json")
    assert code == ExitCode.UNSOUND
    expected = [
        LOST,
        UNKNOWN_POLICY,
        ABORTED,
        "warning converter_of_worker: header.converter is not set in {}",
        DUPLICATES,
    ]
    assert findings == [line.format("old->new") for line in expected]


@pytest.mark.parametrize(
    ("text", "name"),
    [(KAFKA_DOCS, "mm2.properties"), (STRIMZI, "mirror.yaml"), (MSK, "connector.json")],
)
def test_an_archive_takes_the_worst_away(tmp_path: Path, text: str, name: str) -> None:
    """``--archive`` says that the syncs outlive the source."""
    _, findings = examine(tmp_path, text, name, "--archive", "s3://bucket/syncs")
    assert not [line for line in findings if "syncs_lost" in line or "no_archive" in line]


def test_a_jobs_topic_must_be_copied(tmp_path: Path) -> None:
    """Each topic of the job is named with the setting that keeps it out."""
    options = ("--topic", "a.trips", "--topic", "c.trips")
    code, findings = examine(tmp_path, COMPOSE, "mm2.properties", *options)
    assert code == ExitCode.UNSOUND
    assert findings[0] == (
        "error topic_not_copied: topic c.trips: topics = a.trips|b.trips does not match it in "
        "source->target"
    )
    assert "a.trips:" not in "".join(findings)
