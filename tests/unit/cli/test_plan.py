"""``translate`` and ``plan``: arguments in, the service's plan out."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from upath import UPath

from airflow_mm2_offsets.cli.app import app
from airflow_mm2_offsets.cli.exit_codes import ExitCode
from airflow_mm2_offsets.core import Strategy
from airflow_mm2_offsets.planning.options import PLAN_OPTIONS, PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.planning.plan_file import read_plan
from tests.support.foreign_checkpoints import NOTINGS, Noting
from tests.unit.cli.conftest import CommandLine
from tests.unit.spark import checkpoints

HELD = '{"orders": {"0": 50}}'
AT_EIGHT = ("--unmapped-time", "2027-01-15T08:00:00+00:00", "--unmapped-margin", "60")
BEYOND = '{"orders": {"0": 4711}}'


def _without_time(plan: Mapping[str, Any]) -> dict[str, Any]:
    return {**plan, "created_at": None, "digest": None}


def test_json_is_the_services_plan(line: CommandLine) -> None:
    """What --json prints is the plan as XCom shows it, and what Spark wants."""
    given = line.data("translate", "orders:0:50")
    assert given.pop("starting_offsets") == '{"orders":{"0":33}}'
    plan = plan_failover(line.pair.pair, {"orders": {0: 50}})
    assert _without_time(given) == _without_time(plan.to_json())
    assert given["partitions"][0]["target"] == "33"


def test_people_get_the_table_and_the_reasons(line: CommandLine) -> None:
    """Without --json the summary is printed, as plain text where no terminal is."""
    result = line.run("translate", "orders:0:50")
    assert result.exit_code == ExitCode.OK
    assert result.stderr == ""
    assert result.stdout.startswith("READY: 1 partition (1 exact, 0 bounded, 0 refused)")
    assert "orders[0]               50               33" in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("options", "service"),
    [
        (("--strategy", "kafka"), PlanOptions(strategy=Strategy.KAFKA)),
        (("--no-read-source",), PlanOptions(read_source=False)),
        (("--sole-writer", "--no-read-source"), PlanOptions(sole_writer=True, read_source=False)),
        (("--max-evidence-bytes", "0"), PlanOptions(max_evidence_bytes=0)),
    ],
)
def test_every_option_reaches_the_service(
    line: CommandLine, options: tuple[str, ...], service: PlanOptions
) -> None:
    """The answer is the one that the service gives with that option, and another one without."""
    given = line.data("translate", "orders:0:50", *options)
    expected = plan_failover(line.pair.pair, {"orders": {0: 50}}, options=service).to_json()
    assert given["partitions"] == expected["partitions"]
    assert given["partitions"] != line.data("translate", "orders:0:50")["partitions"]


@pytest.mark.parametrize("command", ["translate", "plan"])
def test_every_option_is_offered(command: str) -> None:
    """Under its name everywhere, with a dash for each underscore."""
    shown = CliRunner().invoke(app, [command, "--help"]).stdout
    assert [name for name in PLAN_OPTIONS if name.replace("_", "-") not in shown] == []


@pytest.mark.parametrize("command", [("translate", "orders:0:50"), ("plan", "--positions", HELD)])
def test_a_strategy_that_may_lose_records_is_not_safe(
    line: CommandLine, command: tuple[str, ...]
) -> None:
    """Status, verdict and code say so, and there are no offsets to start from."""
    arguments = (*command, "--strategy", "linear")
    given = line.data(*arguments, code=ExitCode.REFUSED)
    assert given["verdict"] == "not_safe"
    assert given["partitions"][0]["status"] == "not_safe"
    assert given["partitions"][0]["target"] > given["partitions"][0]["low"]
    assert given["starting_offsets"] is None
    shown = line.run(*arguments).stdout
    assert shown.startswith("NOT SAFE: 1 partition (0 exact, 0 bounded, 0 refused, 1 not safe)")
    assert "startingOffsets" not in shown


def test_a_plan_that_is_not_safe_is_not_written(line: CommandLine, tmp_path: Path) -> None:
    """A job would start from the file."""
    out = tmp_path / "plan.json"
    options = ("--positions", HELD, "--strategy", "linear", "--out", str(out))
    result = line.run("plan", *options)
    assert result.exit_code == ExitCode.REFUSED
    assert "was not written" in result.stdout
    assert not out.exists()


def test_a_refusal_is_printed_and_told_by_the_code(line: CommandLine) -> None:
    """The plan is answered all the same, without offsets to start from."""
    given = line.data("translate", "orders:0:4711", code=ExitCode.REFUSED)
    assert given["verdict"] == "refused"
    assert given["starting_offsets"] is None


@pytest.mark.parametrize(
    ("places", "hint"),
    [
        (["orders"], "'orders' is not TOPIC:PARTITION:POSITION"),
        (["orders", "0", "50"], "did you mean orders:0:50?"),
        (["orders:0"], "is not TOPIC:PARTITION:POSITION"),
        (["orders:0:1:2"], "is not TOPIC:PARTITION:POSITION"),
        ([":0:1"], "a topic's name must be text"),
        (["orders:x:1"], "'x' is not a partition"),
        (["orders:-1:1"], "'-1' is not a partition"),
        (["orders:0:x"], "'x' is not a position"),
        (["orders:0:-1"], "'-1' is not a position"),
        (["orders:0:9223372036854775808"], "is not a position"),
        (["orders:0:1", "orders:0:2"], "partition 0 is given twice"),
        (["orders:0:1", "orders:00:2"], "partition 0 is given twice"),
    ],
)
def test_wrong_positions_are_named(line: CommandLine, places: list[str], hint: str) -> None:
    """Each is one message that names it, before any cluster is asked."""
    error = line.error("translate", *places, code=ExitCode.USAGE)
    assert error.startswith("Error: ")
    assert hint in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("translate",), "Missing argument"),
        (("translate", "orders:0:1", "--strategy", "fast"), "'safe', 'linear', 'kafka'"),
        (("translate", "orders:0:1", "--max-evidence-bytes", "-1"), "--max-evidence-bytes"),
        (("translate", "orders:0:1", "--max-evidence-bytes", "much"), "--max-evidence-bytes"),
        (("plan",), "neither is given"),
        (("plan", "--positions", HELD, "--checkpoint", "here"), "both is given"),
        (("plan", "--positions", "nowhere.json"), "--positions: nowhere.json can't be read"),
        (("plan", "--positions", "{"), "Spark's offsets must be JSON"),
        (("plan", "--positions", '{"orders": [1]}'), "must map partitions to offsets"),
        (("plan", "--positions", HELD, "--on-unmapped", "guess"), "--on-unmapped"),
        (
            ("plan", "--positions", HELD, "--unmapped-time", "now"),
            "'now' is not a time with its zone",
        ),
        (
            ("plan", "--positions", HELD, "--unmapped-time", "2026-11-21"),
            "'2026-11-21' is not a time with its zone",
        ),
        (("translate", "orders:0:1", "--timeout", "0"), "'0' is not a number from 0.1 to 86400"),
        (("translat", "orders:0:1"), "No such command"),
        (("translate", "orders:0:1", "--fast"), "No such option"),
    ],
)
def test_wrong_arguments_are_named(
    line: CommandLine, arguments: tuple[str, ...], hint: str
) -> None:
    """Code 2, and the argument at fault."""
    assert hint in line.error(*arguments, code=ExitCode.USAGE)


@pytest.mark.parametrize("how", ["text", "file", "stdin", "checkpoint"])
def test_positions_come_from_where_the_user_has_them(
    line: CommandLine, tmp_path: Path, how: str
) -> None:
    """The plan of the same positions is the same; a checkpoint's pending batch counts."""
    file = tmp_path / "positions.json"
    file.write_text(HELD)
    checkpoint = checkpoints.write(
        tmp_path / "checkpoint",
        {
            "sources/0/0": checkpoints.start(checkpoints.orders(0)),
            "offsets/0": checkpoints.batch(checkpoints.orders(50)),
            "offsets/1": checkpoints.batch(checkpoints.orders(57)),
            "commits/0": checkpoints.commit(),
        },
    )
    arguments = {
        "text": ("--positions", HELD),
        "file": ("--positions", str(file)),
        "stdin": ("--positions", "-"),
        "checkpoint": ("--checkpoint", str(checkpoint)),
    }[how]
    result = line.run("plan", *arguments, "--json", text=HELD)
    (partition,) = json.loads(result.stdout)["partitions"]
    assert (partition["position"], partition["target"]) == ("50", "33")
    assert partition["pending"] == (7 if how == "checkpoint" else 0)


def test_a_plan_is_kept_once(line: CommandLine, tmp_path: Path) -> None:
    """--out writes what the operator would take up; it changes no file that is there."""
    file = tmp_path / "plan.json"
    result = line.run("plan", "--positions", HELD, "--out", str(file))
    assert result.stdout.endswith(f"The plan is in {file}\n")
    kept = read_plan(UPath(file))
    assert kept is not None
    assert kept.source_positions() == {"orders": {0: 50}}
    before = file.read_text()
    error = line.error("plan", "--positions", HELD, "--out", str(file), code=ExitCode.USAGE)
    assert f"{file}: the file exists" in error
    assert file.read_text() == before


def test_a_refused_plan_is_not_kept(line: CommandLine, tmp_path: Path) -> None:
    """No job can start from it; that it was not written is said."""
    file = tmp_path / "plan.json"
    result = line.run("plan", "--positions", BEYOND, "--out", str(file))
    assert result.exit_code == ExitCode.REFUSED
    assert f"{file} was not written" in result.stdout
    assert not file.exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--on-unmapped", "earliest"), "the target's first offset, 0"),
        (("--on-unmapped", "latest"), "the target's end, 66"),
        (
            ("--on-unmapped", "timestamp", *AT_EIGHT),
            "the target's first record from 2027-01-15T07:59:00+00:00 on, 0",
        ),
    ],
)
def test_unmapped_partitions_start_where_the_user_says(
    line: CommandLine, options: tuple[str, ...], reason: str
) -> None:
    """The chosen fallback is in the plan, and the plan is ready."""
    given = line.data("plan", "--positions", BEYOND, *options)
    (partition,) = given["partitions"]
    assert partition["fallback"] == {"kind": options[1], "reason": reason}
    assert reason.endswith(f", {partition['target']}")
    assert given["verdict"] == "ready"


def test_the_text_of_a_wrong_positions_file_is_not_shown(line: CommandLine, tmp_path: Path) -> None:
    """Neither a file's text nor a text in place of a file's name is quoted."""
    wrong = tmp_path / "mm2.properties"
    wrong.write_text("connect.password=hunter2\n")
    for source in (str(wrong), "connect.password=hunter2\nserve.port=1"):
        error = line.error("plan", "--positions", source, code=ExitCode.USAGE)
        assert "hunter2" not in error


@pytest.mark.parametrize("command", ["plan", "forecast"])
@pytest.mark.parametrize("note", NOTINGS)
def test_a_checkpoint_of_the_target_is_refused(
    line: CommandLine, tmp_path: Path, command: str, note: Noting
) -> None:
    """The file beside it that says so is named; it printed READY, exact."""
    root = checkpoints.simple(tmp_path / "checkpoint")
    file = note(root, line.pair.target)
    error = line.error(command, "--checkpoint", str(root), code=ExitCode.USAGE)
    assert file in error
