"""``forecast``."""

import json
from pathlib import Path

from airflow_mm2_offsets.cli.exit_codes import ExitCode
from tests.unit.cli.conftest import CommandLine
from tests.unit.spark import checkpoints

HELD = '{"orders": {"0": 50}}'


def test_a_live_pair_is_told_with_its_verdict(line: CommandLine) -> None:
    """The source answers: at risk is what it holds after the last copy."""
    told = line.data("forecast", "--positions", HELD)
    assert told["verdict"] == "ready"
    assert told["totals"]["at_risk"] == {"at_least": 0, "at_most": 1}
    assert told["lost_at"] is None
    assert line.run("forecast", "--positions", HELD).stdout.startswith("READY: at risk: at most 1")


def test_a_lost_source_is_told_with_what_would_bound_it(line: CommandLine) -> None:
    """Without an archive nothing bounds what is at risk; read again is bounded all the same."""
    line.pair.source.is_running = False
    told = line.data("forecast", "--positions", HELD, "--timeout", "0.1", "--max-rate", "5")
    assert told["totals"]["at_risk"]["at_most"] is None
    assert told["totals"]["read_again"]["at_most"] is not None
    assert told["left_out"][0]["part"] == "source"
    assert told["request"]["max_rate"] == 5


def test_a_job_of_the_file_says_where_it_stands(line: CommandLine, tmp_path: Path) -> None:
    """Its checkpoint is read, and its archive and clusters count."""
    checkpoints.write(
        tmp_path / "east" / "checkpoint",
        {
            "sources/0/0": checkpoints.start('{"orders":{"0":0}}'),
            "offsets/0": checkpoints.batch(HELD.replace(" ", "")),
            "commits/0": checkpoints.commit(),
        },
    )
    homes = {"a": f"{tmp_path}/east", "b": f"{tmp_path}/west"}
    jobs = tmp_path / "jobs.json"
    jobs.write_text(json.dumps({"jobs": [{"name": "orders", "homes": homes, "dag": "stream"}]}))
    named = ("--job", "orders", "--jobs", str(jobs))
    by_hand = ("forecast", "--positions", HELD, "--policy", "planned")
    told = line.data("forecast", *named, "--policy", "planned")
    assert told["request"]["policy"] == "planned"
    assert told["totals"] == line.data(*by_hand)["totals"]


def test_a_plan_that_is_not_safe_is_told_by_the_code(line: CommandLine) -> None:
    """By the straight line records are lost though the source is there."""
    options = ("--positions", HELD, "--strategy", "linear")
    told = line.data("forecast", *options, code=ExitCode.REFUSED)
    assert told["verdict"] == "not_safe"
    assert int(told["totals"]["at_risk"]["at_most"]) > 0
    assert line.run("forecast", *options).stdout.startswith("NOT SAFE: at risk: ")


def test_a_refused_plan_is_told_by_the_code(line: CommandLine) -> None:
    """The numbers are printed all the same."""
    beyond = '{"orders": {"0": 4711}}'
    told = line.data("forecast", "--positions", beyond, code=ExitCode.REFUSED)
    assert told["verdict"] == "refused"
