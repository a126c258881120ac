"""A job with homes and a journal, without Airflow, Spark and Kafka."""

from dataclasses import replace
from pathlib import Path

from upath import UPath

from airflow_mm2_offsets.core.policy import PLANNED, Policy
from airflow_mm2_offsets.moves.fences import Fence, read_fence
from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from airflow_mm2_offsets.moves.journal import Event, FenceState
from airflow_mm2_offsets.moves.move import Move, Mover
from airflow_mm2_offsets.moves.stopping import answer_for
from airflow_mm2_offsets.spark.control import StopProof, read_driver, read_last_acknowledgement
from tests.unit.operators.spark_job import Job

ONE, TWO = "dag:one", "dag:two"
OFFSETS = '{"orders":{"0":7}}'


class Stage:
    """A job with two homes on this disk, whose first one has been used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        east, west = (
            Home(cluster=name, folder=str(folder / name / "orders")) for name in ("east", "west")
        )
        self.job = SparkJob(name="orders", homes=(east, west), records=str(folder / "records"))
        self.use(east)

    def use(self, home: Home) -> None:
        """Let a job have run at a home."""
        offsets = Path(home.checkpoint, "offsets")
        offsets.mkdir(parents=True)
        (offsets / "0").write_text("{}")

    def mover(self, run: str = ONE, policy: Policy = PLANNED, **changes: object) -> Mover:
        return Mover(replace(self.job, **changes), run, policy, UPath)  # type: ignore[arg-type]

    def move(self, run: str = ONE, **facts: str) -> None:
        """Move the job to its other cluster."""
        mover = self.mover(run)
        there = mover.ask().there
        assert there is not None
        step(mover, Event.PROVE)
        step(mover, Event.HAND_OVER, starting_offsets=OFFSETS, topics="orders", **facts)
        step(mover, Event.ARRIVE)
        self.use(there)

    def fence(self, home: Home) -> Fence | None:
        return read_fence(UPath(home.control))

    def states(self, *homes: Home) -> list[FenceState | None]:
        fences = map(self.fence, homes)
        return [None if fence is None else fence.state for fence in fences]


class Asked(Stage):
    """A job with a driver, which is asked to stop."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.driver = Job(Path(self.job.homes[0].folder), 4, 6)

    @property
    def control(self) -> UPath:
        return UPath(self.job.homes[0].control)

    def answered(self, request_id: str) -> bool:
        last = read_last_acknowledgement(self.control)
        return last is not None and last.answers(request_id, read_driver(self.control))

    def answer(self, move: Move, proof: StopProof) -> None:
        answer_for(self.control, move, proof, checkpoint=UPath(move.here.checkpoint))


def step(mover: Mover, event: Event, **facts: str) -> Move:
    """Record a step of the run's move, as it is now."""
    return mover.record(mover.find(), event, **facts)
