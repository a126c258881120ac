"""A fleet of three light jobs in two waves, one of them broken: moved by two runs."""

from pathlib import Path

import pytest

from tests.e2e.fleet_stage import FleetStage
from tests.soaks import LONGEST, add_figures

pytestmark = pytest.mark.timeout(LONGEST)


def test_a_fleet_is_moved_by_two_runs_one_job_is_broken_in_the_first(tmp_path: Path) -> None:
    """The broken job holds the next wave and not its neighbour; run again, only the rest moves.

    Every record is written once, by one job at a time.
    """
    with FleetStage(tmp_path, 3, stop_timeout=60.0).running() as stage:
        well, broken, later = stage.names
        stage.write_jobs({well: 1, broken: 1, later: 2})
        stage.cluster.jobs[1].is_deaf.set()
        first = stage.trigger()
        assert stage.wait_end(first) == "failed"
        assert stage.outcomes(first) == {
            well: "moved",
            broken: "withdrawn",
            later: "not begun",
        }
        stage.cluster.jobs[1].is_deaf.clear()
        second = stage.trigger()
        assert stage.wait_end(second) == "success"
        assert stage.outcomes(second) == {well: "there already", broken: "moved", later: "moved"}
        stage.check_all_once()
        add_figures(jobs=3, runs=2, records_written_once=stage.written)
