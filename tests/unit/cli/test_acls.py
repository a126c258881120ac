"""``acls``: the rights of a task, as commands."""

import shlex

import pytest

from airflow_mm2_offsets.cli.exit_codes import ExitCode
from tests.unit.cli.conftest import CommandLine

PRINCIPAL = ("--principal", "User:CN=airflow,O=Example")


def test_commands_are_printed_by_cluster(line: CommandLine) -> None:
    """Each side's rights stand under its name; the syncs topic's where the settings say."""
    result = line.run("acls", *PRINCIPAL, "--operator", "translate", "--topic", "orders")
    assert result.exit_code == 0
    source, target = result.stdout.split("# target\n")
    commands = [shlex.split(each) for each in source.splitlines()[1:]]
    assert [each[-4:] for each in commands] == [["--operation", "Read", "--topic", "orders"]]
    assert [shlex.split(each)[-1] for each in target.splitlines()] == [
        "mm2-offset-syncs.a.internal",
        "orders",
        "orders",
    ]
    assert all(each[-5] == PRINCIPAL[1] for each in commands)


def test_each_side_may_have_its_principal(line: CommandLine) -> None:
    """The target's is the source's, unless it is given."""
    data = line.data("acls", *PRINCIPAL, "--target-principal", "User:west", "--topic", "orders*")
    assert data["task"] == "failover"
    principals = {(each["cluster"], each["principal"]) for each in data["acls"]}
    assert principals == {("source", PRINCIPAL[1]), ("target", "User:west")}
    patterns = {each["pattern"] for each in data["acls"] if each["name"] == "orders"}
    assert patterns == {"prefixed"}


@pytest.mark.parametrize("task", ["ArchiveSyncsOperator", "archive"])
def test_a_task_has_two_names(line: CommandLine, task: str) -> None:
    """An operator's class names its task, too."""
    data = line.data("acls", *PRINCIPAL, "--operator", task, "--topic", "orders")
    assert {each["operation"] for each in data["acls"]} == {"Read", "Describe"}


def test_an_unknown_task_is_named(line: CommandLine) -> None:
    """The error lists the tasks."""
    error = line.error(
        "acls",
        *PRINCIPAL,
        "--operator",
        "transalte",
        "--topic",
        "orders",
        code=ExitCode.USAGE,
    )
    assert "no rights are listed for 'transalte'" in error
    assert "translate" in error


def test_a_principal_without_its_type_is_refused(line: CommandLine) -> None:
    """``kafka-acls`` would refuse it, too."""
    error = line.error("acls", "--principal", "airflow", "--topic", "orders", code=ExitCode.USAGE)
    assert "'airflow' is no principal; give TYPE:NAME, as in User:airflow" in error
