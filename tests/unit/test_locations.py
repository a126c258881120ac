"""One location has one key, however it is spelled."""

import pytest

from airflow_mm2_offsets.locations import location_key


@pytest.mark.parametrize(
    "spellings",
    [
        ("/data/jobs", "/data/jobs/", "file:///data/jobs", "file:/data/jobs"),
        ("s3://bucket/jobs", "s3a://bucket/jobs/", "s3://conn@bucket/jobs", "s3n://bucket/jobs"),
        ("gs://bucket/jobs", "gcs://bucket/jobs", "gs://conn@bucket/jobs"),
        ("hdfs://name/jobs", "viewfs://name/jobs"),
    ],
)
def test_spellings_of_one_location(spellings: tuple[str, ...]) -> None:
    """By the protocol's names, the connection and the last slash."""
    assert len({*map(location_key, spellings)}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://bucket/jobs", "gs://bucket/jobs"),
        ("s3://bucket/jobs", "s3://bucket/jobs/2"),
        ("s3://bucket/a@b/jobs", "s3://bucket/b/jobs"),
        ("abfss://one@account/jobs", "abfss://two@account/jobs"),
        ("/data/jobs", "/data/Jobs"),
    ],
)
def test_other_locations(one: str, other: str) -> None:
    """Containers of Azure stand where connections do."""
    assert location_key(one) != location_key(other)
