"""A planned failover between secured clusters, whole, and a sweep for its secrets.

docs/security.md tells users to set it up as ``tests.e2e.secured`` does.
"""

import json
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote

import pytest

from demo.producer import PARTITIONS
from tests.e2e.canaries import Canaries
from tests.e2e.secured_run import PLANTED, SecuredRun
from tests.e2e.sweep import Findings

pytestmark = pytest.mark.timeout(3600)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> SecuredRun:
    """One failover for all tests."""
    return SecuredRun.of(tmp_path_factory.mktemp("secured"))


@pytest.mark.parametrize("before", ["", "u", "u:", "user:"])
def test_a_canary_is_found_in_each_form(before: str) -> None:
    """As it is, quoted for URL and JSON, in hexadecimal, and in base64 behind any text."""
    canaries = Canaries()
    secret = f'{before}"{canaries.make("password")}\\'
    forms = (
        secret,
        quote(secret, safe=""),
        json.dumps({"extra": json.dumps({"password": secret})}),
        secret.encode().hex(),
        b64encode(secret.encode()).decode(),
        urlsafe_b64encode(secret.encode()).decode(),
    )
    assert [canaries.find(f"-{form}-".encode()) for form in forms] == [{"password"}] * len(forms)
    assert canaries.find(secret[:-2].encode()) == frozenset()


def test_every_record_is_read_once(run: SecuredRun) -> None:
    """With the rights of the row ``failover``, nothing is lost or read again; the DAG says so too.

    The first try of the check had a wrong password.
    """
    report = run.report
    print(report)  # noqa: T201 - what was measured
    assert report.lost == report.duplicated == 0
    assert report.holds
    assert len(report.plan.partitions) == PARTITIONS
    assert all(each.shift for each in report.plan.partitions)
    assert report.verified is not None
    assert report.verified.to_json()["counts"] == []


def test_the_rest_services_answer_the_same_plan(run: SecuredRun) -> None:
    """The plugin, and ``serve`` with the rights of its row, translate over the same logins."""
    planned = {
        (each.translation.partition, each.translation.target) for each in run.report.plan.partitions
    }
    for service in ("plugin", "serve"):
        answered = run.answers[service]["partitions"]
        assert {(each["partition"], int(each["target"])) for each in answered} == planned


def test_the_pages_show_the_failover(run: SecuredRun) -> None:
    """The run with its downtime, the plan with each start, the connection with its plots.

    To be counted, the job was stopped at its new home.
    """
    pages = run.answers["pages"]
    assert "<dt>Downtime</dt>" in pages["run"]
    assert "moved" in pages["run"]
    assert "orders/target" in pages[""]
    assert ">stopped</span>" in pages[""]
    assert "Shift of orders[0]" in pages["connection"]
    for each in run.report.plan.partitions:
        assert f">{each.start}</td>" in pages["plan"]


@pytest.mark.parametrize("command", ["check", "doctor"])
def test_a_command_needs_the_rights_of_its_row(run: SecuredRun, command: str) -> None:
    """Nothing is refused."""
    answer = run.answers[command]
    assert answer["exit_code"] == 0, answer["output"]
    assert "authoriz" not in answer["output"].lower()


def test_a_reconciliation_needs_the_rights_of_its_row(run: SecuredRun) -> None:
    """Cleared, with those alone, the task succeeds again."""
    assert run.verified == "success"


def test_the_sweep_finds_what_was_planted(run: SecuredRun) -> None:
    """In a DAG run's conf: a sweep of each kind sees it."""
    for findings in (run.files, run.tables, run.texts, run.watch.arguments):
        assert {name for names in findings.values() for name in names} >= {PLANTED}
    assert {"table dag_run", "table rendered_task_instance_fields"} <= run.tables.keys()


def test_no_secret_shows(run: SecuredRun) -> None:
    """In no file, table, command line or answer, with all debug logs on."""
    print("environments:", run.watch.environments)  # noqa: T201 - where variables hold secrets
    assert run.watch.looks > 0
    assert {
        name: _but_planted(findings)
        for name, findings in {
            "files": run.files,
            "tables": run.tables,
            "texts": run.texts,
            "arguments": run.watch.arguments,
        }.items()
        if _but_planted(findings)
    } == {}


def _but_planted(findings: Findings) -> Findings:
    return {place: names - {PLANTED} for place, names in findings.items() if names - {PLANTED}}
