"""A job that is started: from a file of offsets, and again from its checkpoint."""

import pytest

from airflow_mm2_offsets.job import starting_offsets
from airflow_mm2_offsets.job.offsets_file import WRITE_AGAIN, offsets_file_name
from tests.unit.job.hadoop import Hadoop

TEXT = '{"orders":{"0":42}}'


@pytest.mark.parametrize("known", ["commits", "sources/0"])
def test_a_job_that_has_begun_needs_no_file(known: str) -> None:
    """Spark goes on from its checkpoint: the file may be gone, damaged or out of reach."""
    hadoop = Hadoop("gone")
    hadoop.listed = {"s3a://lake/cp/offsets": [".1.tmp", "0"], f"s3a://lake/cp/{known}": ["0"]}
    text = f"@s3a://lake/plans/{offsets_file_name('run', TEXT)}"
    assert starting_offsets(hadoop.session(), text, checkpoint="s3a://lake/cp") == "earliest"
    assert hadoop.opened == []


@pytest.mark.parametrize(
    "listed",
    [
        {},
        {"/cp/offsets": [".0.crc", ".0.tmp"], "/cp/sources/0": ["0"]},
        {"/cp/sources/0": ["0"], "/cp/commits": []},
        {"/cp/offsets": ["0"], "/cp/commits": [], "/cp/sources/0": [".0.tmp"]},
    ],
)
def test_a_job_that_has_not_begun_reads_the_file(listed: dict[str, list[str]]) -> None:
    """Spark would take the value: without a planned batch, or without where that begins."""
    hadoop = Hadoop(TEXT)
    hadoop.listed = listed
    text = f"@/plans/{offsets_file_name('run', TEXT)}"
    assert starting_offsets(hadoop.session(), text, checkpoint="/cp") == TEXT
    for each in (TEXT, "latest"):
        assert starting_offsets(hadoop.session(), each, checkpoint="/cp") == each


@pytest.mark.parametrize("checkpoint", [None, "/cp"])
def test_a_storage_that_refuses_for_a_moment_ends_no_job(
    monkeypatch: pytest.MonkeyPatch, checkpoint: str | None
) -> None:
    """A failed read is repeated."""
    monkeypatch.setattr("airflow_mm2_offsets.job.files.time.sleep", lambda _: None)
    hadoop = Hadoop(TEXT)
    hadoop.refusals = 3
    text = f"@/plans/{offsets_file_name('run', TEXT)}"
    assert starting_offsets(hadoop.session(), text, checkpoint=checkpoint) == TEXT


@pytest.mark.parametrize(
    ("checkpoint", "named"),
    [
        (
            None,
            rf"^/plans/run\..*, can't be read: IOException: 503; check .* is gone, {WRITE_AGAIN}$",
        ),
        ("/cp", r"^the checkpoint /cp can't be read: IOException: 503; check the location and"),
    ],
)
def test_what_the_job_can_t_read_is_named(
    monkeypatch: pytest.MonkeyPatch, checkpoint: str | None, named: str
) -> None:
    """One error with the location, Java's line without its stack, and the next step."""
    monkeypatch.setattr("airflow_mm2_offsets.job.files._REPEAT_SECONDS", -1.0)
    hadoop = Hadoop(TEXT)
    hadoop.refusals = 1
    text = f"@/plans/{offsets_file_name('run', TEXT)}"
    with pytest.raises(OSError, match=named):
        starting_offsets(hadoop.session(), text, checkpoint=checkpoint)
