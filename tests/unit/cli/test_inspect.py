"""What there is to translate with: ``syncs``, ``checkpoint``, ``archive``, ``check-connection``."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.cli.exit_codes import ExitCode
from tests.support.pairs import STOPPED
from tests.unit.archive.archive_builder import append
from tests.unit.cli.conftest import CommandLine
from tests.unit.spark import checkpoints


def _upstreams(line: CommandLine, *options: str) -> list[tuple[str, int, str]]:
    listed = line.data("syncs", *options)["syncs"]
    return [(each["topic"], each["partition"], each["upstream"]) for each in listed]


def test_the_newest_syncs_of_each_partition_are_listed(line: CommandLine) -> None:
    """By topic and partition, in log order; with limit 0 all; offsets are text."""
    line.pair.sync("alpha", (7, 8), partition=2)
    assert _upstreams(line, "--limit", "2") == [
        ("alpha", 2, "7"),
        ("orders", 0, "70"),
        ("orders", 0, "98"),
    ]
    assert len(_upstreams(line, "--limit", "0")) == 5
    assert _upstreams(line, "--topic", "alpha") == [("alpha", 2, "7")]
    assert _upstreams(line, "--partition", "2") == [("alpha", 2, "7")]
    data = line.data("syncs", "--limit", "1", "--topic", "orders")
    assert (data["total"], data["matching"], data["skipped"]) == (5, 4, 0)
    assert data["syncs"] == [
        {"topic": "orders", "partition": 0, "upstream": "98", "downstream": "65"}
    ]
    text = line.run("syncs", "--limit", "1").stdout
    assert "orders[0]        98          65" in text
    assert "2 of 5 syncs shown" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--topic", "order"), "order: mm2-offset-syncs.a.internal has no sync of it"),
        (("--partition", "3"), "mm2-offset-syncs.a.internal has no sync of partition 3"),
        (
            ("--topic", "orders", "--partition", "3"),
            "orders[3]: mm2-offset-syncs.a.internal has no sync of it",
        ),
    ],
)
def test_syncs_that_are_not_there_are_told(
    line: CommandLine, options: tuple[str, ...], message: str
) -> None:
    """A name that was mistyped is no empty table: the names that exist are listed."""
    error = line.error("syncs", *options, code=ExitCode.UNUSABLE)
    assert f"Error: {message}; it has syncs of orders: " in error


def test_a_checkpoint_is_shown(line: CommandLine, tmp_path: Path) -> None:
    """Positions, start and pending batch of each partition; no cluster is needed."""
    root = checkpoints.simple(
        tmp_path / "checkpoint", offsets__2=checkpoints.batch(checkpoints.orders(5, 9))
    )
    nowhere = {"MM2_OFFSETS_CONFIG": None}
    text = line.run("checkpoint", "show", str(root), **nowhere).stdout
    assert "Last committed batch: 1\n" in text
    assert "Pending batch: 2, of 4 records" in text
    assert "orders[1]                  2          6                   9" in text
    assert line.data("checkpoint", "show", str(root)) == {
        "location": str(root),
        "query_id": checkpoints.QUERY_ID,
        "committed_batch": 1,
        "positions": {"orders": {"0": "4", "1": "6"}},
        "pending_batch": 2,
        "pending": {"orders": {"0": "5", "1": "9"}},
        "start": {"orders": {"0": "1", "1": "2"}},
        "reread": 4,
    }


def test_a_checkpoint_that_is_none_is_told(line: CommandLine, tmp_path: Path) -> None:
    """Code 4: the folder was reached, and what is in it can't be used."""
    error = line.error("checkpoint", "show", str(tmp_path), code=ExitCode.UNUSABLE)
    assert "is not a checkpoint" in error


def test_an_archive_runs_and_shows(line: CommandLine, tmp_path: Path) -> None:
    """What run adds, show tells; a location in the settings stands in for the argument."""
    folder = str(tmp_path / "archive")
    first = line.data("archive", "run", folder)
    assert (first["new_syncs"], first["total"], first["compacted"]) == (4, 4, 0)
    line.pair.sync("orders", (99, 66))
    text = line.run("archive", "run", MM2_OFFSETS_ARCHIVE=folder).stdout
    assert text.startswith(f"{folder}: 1 new syncs, 5 in all, as of 20")
    assert line.data("archive", "run", folder, "--compact-over", "1")["compacted"] == 3
    data = line.data("archive", "show", folder)
    assert (data["syncs"], data["damaged"], data["cut"]) == (5, [], [])
    assert data["syncs_topic"] == line.pair.pair.syncs_topic
    assert data["partitions"] == [
        {
            "topic": "orders",
            "partition": 0,
            "syncs": 5,
            "first_upstream": "1",
            "last_upstream": "99",
            "last_downstream": "66",
        }
    ]
    text = line.run("archive", "show", folder).stdout
    assert "orders[0]      5               1             99               66" in text


def test_damage_is_told_or_skipped(line: CommandLine, tmp_path: Path) -> None:
    """A damaged file is code 4 and named; with --skip-damaged the rest is shown, and it too."""
    folder = tmp_path / "archive"
    held = SyncArchive(str(folder))
    append(held, [("orders", 0, 1, 0), ("orders", 0, 40, 26)], stop=1)
    append(held, [("orders", 0, 1, 0), ("orders", 0, 40, 26)], first=1)
    damaged = max(folder.iterdir())
    damaged.write_bytes(b"")
    error = line.error("archive", "show", str(folder), code=ExitCode.UNUSABLE)
    assert f"{damaged} is damaged" in error
    text = line.run("archive", "show", str(folder), "--skip-damaged").stdout
    assert f"Damaged: {damaged} is damaged" in text
    assert line.data("archive", "show", str(folder), "--skip-damaged")["syncs"] == 1


def test_an_archive_that_is_none_is_told(line: CommandLine, tmp_path: Path) -> None:
    """A folder that is not there is mostly a wrong name."""
    error = line.error("archive", "show", str(tmp_path / "typo"), code=ExitCode.UNUSABLE)
    assert "typo: there is no archive" in error


def test_an_archive_needs_a_place(line: CommandLine) -> None:
    """Neither argument nor setting names one: nothing is read."""
    error = line.error("archive", "run", code=ExitCode.USAGE)
    assert "no archive was given" in error


def test_check_connection_tells_each_part(line: CommandLine) -> None:
    """What answers is told with what it is."""
    data = line.data("check-connection")
    assert data["ok"] is True
    assert [each["part"] for each in data["parts"]] == [
        "source",
        "target",
        data["parts"][2]["part"],
        "source: rights",
        "target: rights",
        "Connect",
        "Connect: settings",
    ]
    assert all(each["ok"] for each in data["parts"])
    assert data["parts"][2]["answer"] == "syncs: 4, partitions: 1"
    assert line.run("check-connection").stdout.startswith("ok      source: cluster ")


def test_check_connection_ends_by_what_is_wrong(line: CommandLine) -> None:
    """Code 3 where a cluster is down, 4 where it has no syncs; the other parts are told too."""
    down = {"MM2_OFFSETS_SOURCE_BOOTSTRAP_SERVERS": STOPPED.bootstrap_servers}
    result = line.run("check-connection", "--timeout", "1", **down)
    assert result.exit_code == ExitCode.UNREACHABLE
    assert result.stdout.startswith("FAILED  source: ")
    assert "\nok      target: " in result.stdout
    result = line.run("check-connection", MM2_OFFSETS_SOURCE_ALIAS="other")
    assert result.exit_code == ExitCode.UNUSABLE
    assert "FAILED  syncs topic mm2-offset-syncs.other.internal" in result.stdout
