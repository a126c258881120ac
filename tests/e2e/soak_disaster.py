"""The source is lost at two random moments; ``make soak NAME=disaster``.

Each moment has clusters of its own. The report of each is kept beside the demo's.
"""

import json
import random
import shutil
from pathlib import Path

import pytest

from demo.disaster import Disaster, DisasterReport, make_demo
from demo.environment import BUILD
from stack.s3 import S3Storage
from tests.e2e.drivers import DriverWatch
from tests.soaks import LONGEST, add_figures

pytestmark = pytest.mark.timeout(LONGEST)

SEED = random.randrange(10**6)  # noqa: S311 - moments
MOMENTS = 2
BATCHES = 12.0
"""Seconds: more than two batches of the job, and two flushes of MirrorMaker 2's offsets."""
REPORTS = BUILD / "soak-disaster"


def _width(report: DisasterReport) -> str:
    told, true = report.comparison.totals, report.comparison.truth.totals
    add_figures(
        losses=1,
        records_lost=true.lost,
        told_at_most=told.at_risk.at_most or 0,
        read_again=true.read_again,
        told_again_at_most=told.read_again.at_most or 0,
        not_as_told=len(report.comparison.broken),
    )
    return (
        f"lost {true.lost}, told {told.at_risk}; read again {true.read_again}, "
        f"told {told.read_again}; {true.uncopied} records were not copied"
    )


@pytest.mark.parametrize("moment", range(MOMENTS))
def test_the_truth_lies_within_the_forecast(moment: int, tmp_path: Path) -> None:
    """Whenever it comes: lost and read again as told, none skipped, one job on each side."""
    chance = random.Random(f"{SEED}-{moment}")  # noqa: S311 - a moment
    unarchived, wait = chance.randrange(600), chance.uniform(0, BATCHES)
    with make_demo(tmp_path / "demo", print) as demo, DriverWatch(demo) as watch:
        report = Disaster(demo).run(unarchived=unarchived, wait=wait)
    REPORTS.mkdir(exist_ok=True)
    report.write(REPORTS / f"{SEED}-{moment}.json")

    line = f"seed {SEED}, moment {moment}: {unarchived} numbers and {wait:.1f} s; {_width(report)}"
    print(line)  # noqa: T201 - what was measured
    with (REPORTS / "widths.jsonl").open("a") as widths:
        print(json.dumps(line), file=widths)
    assert report.comparison.broken == []
    assert (watch.most["source"], watch.most["target"]) == (1, 1)
    shutil.rmtree(tmp_path / "demo")


def test_a_storage_that_does_not_answer_either(tmp_path: Path) -> None:
    """The job's folder hangs, too: from saved positions, on the user's word that the job is gone.

    The storage takes connections and answers none, until the failover has ended.
    """
    storage = S3Storage(tmp_path)
    with make_demo(tmp_path / "demo", print, storage=storage) as demo:
        disaster = Disaster(demo)
        disaster.prepare()
        disaster.lose_source()
        storage.pause()
        try:
            disaster.trigger(source_is_gone=True)
            disaster.finish()
        finally:
            storage.resume()
        disaster.failover.catch_up()
        report = disaster.report()

    print(_width(report))  # noqa: T201 - what was measured
    assert report.comparison.broken == []
