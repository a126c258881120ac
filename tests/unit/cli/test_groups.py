"""``groups``."""

from airflow_mm2_offsets.cli.exit_codes import ExitCode
from airflow_mm2_offsets.core import TopicPartition
from tests.unit.cli.conftest import CommandLine

ORDERS = TopicPartition("orders", 0)


def test_without_commit_nothing_is_committed(line: CommandLine) -> None:
    """The table says what would be; with --commit it is."""
    line.pair.source.group_offsets["billing"] = {ORDERS: (50, "")}
    assert line.run("groups", "--match", "bill.*").stdout.startswith("DRY RUN, nothing was")
    assert line.pair.target.group_offsets == {}
    told = line.data("groups", "--match", "bill.*", "--commit")
    assert told["totals"]["committed"] == 1
    assert line.pair.target.group_offsets["billing"]


def test_a_refused_offset_is_told_by_the_code(line: CommandLine) -> None:
    """A script must notice; the others are committed all the same."""
    line.pair.source.group_offsets["billing"] = {
        ORDERS: (50, ""),
        TopicPartition("refunds", 0): (1, ""),
    }
    told = line.data("groups", "--match", ".*", "--commit", code=ExitCode.REFUSED)
    assert (told["totals"]["committed"], told["totals"]["refused"]) == (1, 1)


def test_a_bad_expression_is_one_message(line: CommandLine) -> None:
    """It names the option's setting and the place of the mistake."""
    message = line.error("groups", "--match", "orders[", code=ExitCode.USAGE)
    assert "is not a regular expression" in message


def test_the_groups_must_be_named(line: CommandLine) -> None:
    """Without the option nothing is read; it once took the mark of a missing default for one."""
    assert "Missing option '--match'" in line.error("groups", code=ExitCode.USAGE)
