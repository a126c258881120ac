"""Checkpoints on object storage: a real S3 server on loopback (moto's)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from upath import UPath

from airflow_mm2_offsets.core.policy import PLANNED
from airflow_mm2_offsets.errors import CheckpointError, StopError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.migration import migrate_checkpoint
from airflow_mm2_offsets.moves.fences import read_fence
from airflow_mm2_offsets.moves.journal import FenceState, State
from airflow_mm2_offsets.moves.move import Mover, job_at
from airflow_mm2_offsets.spark.checkpoint import listing, read_checkpoint
from airflow_mm2_offsets.spark.checkpoint_copy import MARKER, inventory
from airflow_mm2_offsets.spark.drill import mark_drill, remove_drill
from airflow_mm2_offsets.testing import in_memory_clients
from tests.integration.s3 import BUCKET, PASSWORD, USER, Server
from tests.support.pairs import Pair
from tests.unit.spark.checkpoints import batch, commit, orders, simple, write

RECORDED = Path(__file__).parents[1] / "unit" / "spark" / "recorded"


Place = Callable[[str], UPath]


@pytest.fixture(params=["options", "environment", "connection"])
def place(
    request: pytest.FixtureRequest, s3_server: Server, monkeypatch: pytest.MonkeyPatch
) -> Place:
    """A separate folder, reached in each way that users have."""
    folder = f"{BUCKET}/{uuid4().hex}"
    match request.param:
        case "options":
            options = {"endpoint_url": s3_server.url, "key": USER, "secret": PASSWORD}
            return lambda name: UPath(f"s3://{folder}/{name}", **options)
        case "environment":
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", USER)
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", PASSWORD)
            monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server.url)
            return lambda name: UPath(f"s3://{folder}/{name}")
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", s3_server.connection())
    return lambda name: storage_path(f"s3://lake@{folder}/{name}")


def _upload(local: Path, root: UPath) -> UPath:
    """Put a checkpoint there, as an object store holds it: no folders, but objects."""
    for name in inventory(UPath(local)):
        (root / name).write_bytes((local / name).read_bytes())
    return root


@pytest.mark.parametrize("name", ["two_topics", "named_sources", "pending", "continuous"])
def test_a_checkpoint_reads_as_on_disk(place: Place, name: str) -> None:
    """Positions and batches equal those of the same files on the local disk."""
    root = _upload(RECORDED / name, place(name))
    local, remote = read_checkpoint(str(RECORDED / name)), read_checkpoint(root)
    for field in ("query_id", "committed_batch", "positions", "pending_batch", "pending", "start"):
        assert getattr(remote, field) == getattr(local, field)


def test_later_writes_are_seen(place: Place, tmp_path: Path) -> None:
    """No listing is cached: the next read sees the files that the job has written since."""
    root = _upload(simple(tmp_path), place("checkpoint"))
    assert read_checkpoint(root).pending_batch is None
    before = listing(root)
    assert before == listing(root)
    other = place("checkpoint")
    (other / "offsets" / "2").write_text(batch(orders(5, 6)))
    assert listing(root) != before
    assert read_checkpoint(root).pending_batch == 2


def test_a_place_without_a_checkpoint(place: Place) -> None:
    """A missing key and a missing bucket each give one clear error."""
    with pytest.raises(CheckpointError, match=r"typo/metadata: is missing"):
        read_checkpoint(place("typo"))
    nowhere = UPath(str(place("x")).replace(f"{BUCKET}/", "nobodys/"), **place("x").storage_options)
    with pytest.raises(CheckpointError):
        read_checkpoint(nowhere)


@pytest.fixture
def clusters() -> Iterator[Pair]:
    """Two clusters on which all of orders was copied, five offsets higher."""
    pair = Pair()
    pair.write("orders", range(10))
    pair.copy("orders", range(100, 105))
    pair.copy("orders", range(10))
    pair.sync("orders", (0, 5), (9, 14))
    for partition in (1, 2, 3):
        pair.write("orders", range(1), partition)
        pair.copy("orders", range(1), partition)
        pair.sync("orders", (0, 0), partition=partition)
    with in_memory_clients():
        yield pair


def _job(folder: Path) -> Path:
    files = {
        "offsets/0": batch(orders(7, 0, 0, 0)),
        "commits/0": commit(),
        "state/0/0/1.delta": "state" * 10**6,
    }
    return write(folder / "job", files)


@pytest.mark.parametrize("local", ["nothing", "original", "copy"])
def test_a_migration(clusters: Pair, place: Place, tmp_path: Path, local: str) -> None:
    """A copy within one store, out of it and into it is translated, complete and accepted again."""
    job = _job(tmp_path)
    original = UPath(job) if local == "original" else _upload(job, place("original"))
    target = UPath(tmp_path / "copy") if local == "copy" else place("copy")
    before = inventory(original)
    done = migrate_checkpoint(clusters.pair, original, target)
    assert read_checkpoint(target).positions["orders"][0] == 12
    assert (target / "state/0/0/1.delta").read_bytes() == (job / "state/0/0/1.delta").read_bytes()
    assert (target / MARKER).exists()
    assert inventory(original) == before
    assert migrate_checkpoint(clusters.pair, original, target) == done


def test_a_server_that_refuses_midway(clusters: Pair, s3_server: Server, tmp_path: Path) -> None:
    """An unfinished copy is not taken for a checkpoint; the next try continues it."""
    options = {"endpoint_url": s3_server.url, "key": USER, "secret": PASSWORD}
    target = UPath(f"s3://{BUCKET}/{uuid4().hex}/copy", **options)
    original = UPath(_job(tmp_path))
    for name in ("metadata", "1.delta", "offsets/0", MARKER):
        s3_server.refuses_to_write = name
        try:
            with pytest.raises(CheckpointError, match=rf"{name} is out of reach: PermissionError"):
                migrate_checkpoint(clusters.pair, original, target)
        finally:
            s3_server.refuses_to_write = ""
        with pytest.raises(CheckpointError, match=r"copy/metadata"):
            read_checkpoint(target)
    migrate_checkpoint(clusters.pair, original, target)
    assert read_checkpoint(target).positions["orders"][0] == 12


def test_a_read_only_control_location(s3_server: Server, place: Place) -> None:
    """The stop fails with the file's name, and goes on where it was once writing is allowed."""
    mover = Mover(job_at("job", place), "dag:run", PLANNED, place)
    s3_server.refuses_to_write = "control/fence/000001.json"
    try:
        with pytest.raises(StopError, match=r"000001\.json is out of reach: PermissionError"):
            mover.ask()
    finally:
        s3_server.refuses_to_write = ""
    assert read_fence(place("job/control")) is None
    move = mover.ask()
    assert [each.state for each in move.entries] == [State.STOPPING]
    fence = read_fence(place("job/control"))
    assert fence is not None
    assert (fence.state, fence.request_id) == (FenceState.STOPPING, move.request_id)


def test_a_drills_folder_is_removed(place: Place) -> None:
    """With Hadoop's markers of folders, and names that look like patterns; its neighbours stay."""
    folder, neighbours = place("drill"), place("drill-of-others")
    (neighbours / "0").write_bytes(b"kept")
    (place("x1")).write_bytes(b"kept")
    mark_drill(folder, "d")
    client, root = folder.fs, folder.path
    for name in ("output/x[1]", "output/*", "checkpoint/offsets/0"):
        (folder / name).write_bytes(b"0")
    for marker in ("checkpoint/", "checkpoint/empty/", ""):
        client.call_s3(
            "put_object", Bucket=BUCKET, Key=f"{root}/{marker}".removeprefix(f"{BUCKET}/")
        )
    assert remove_drill(folder, "d") == 3
    client.invalidate_cache()
    above = root.rpartition("/")[0]
    left = {name.removeprefix(f"{above}/") for name in client.find(above)}
    assert left == {"drill-of-others/0", "x1"}
    assert remove_drill(folder, "d") == 0
