"""A job as a value, and the file of jobs."""

from dataclasses import replace

import pytest

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from airflow_mm2_offsets.moves.jobs_file import find_job, parse_jobs
from airflow_mm2_offsets.moves.move import job_in

TEXT = """
version: 1
defaults:
  homes:
    east: s3://eu/{name}
    west: {folder: "s3://us/{name}", output: "s3://lake/{name}", kafka_conn_id: kafka_us}
  dag: stream_{name}
  records: s3://records/mm2
jobs:
- name: orders
- name: clicks
  after: [orders]
  max_read_again: 7
"""


def _parse(text: str) -> tuple[SparkJob, ...]:
    return parse_jobs(text, "jobs.yaml")


def test_defaults_count_for_each_job() -> None:
    """A job's own fields count before them, and {name} stands for its name."""
    orders, clicks = _parse(TEXT)
    assert orders.homes[0] == Home(cluster="east", folder="s3://eu/orders")
    assert (orders.homes[1].sink, orders.homes[1].kafka_conn_id) == ("s3://lake/orders", "kafka_us")
    assert (orders.journal, clicks.journal) == (
        "s3://records/mm2/orders",
        "s3://records/mm2/clicks",
    )
    assert (clicks.dag, clicks.after, clicks.max_read_again) == ("stream_clicks", ("orders",), 7)


def test_json_both_ways() -> None:
    """What ``to_json`` writes is the same job, with only what is not by default."""
    for job in _parse(TEXT):
        assert SparkJob.from_json(job.to_json()) == job
    bare = SparkJob(
        name="a", homes=(Home(cluster="x", folder="/x"), Home(cluster="y", folder="/y"))
    )
    assert bare.to_json() == {"name": "a", "homes": {"x": {"folder": "/x"}, "y": {"folder": "/y"}}}


def test_each_stay_has_its_folder() -> None:
    """A home is found by its folder again; another folder is none of the job's."""
    orders, _ = _parse(TEXT)
    east, west = orders.homes
    second = east.stay(2)
    assert (second.folder, second.checkpoint) == ("s3://eu/orders/2", "s3://eu/orders/2/checkpoint")
    assert second.sink == "s3://eu/orders/2/output"
    assert west.stay(3).sink == "s3://lake/orders"
    assert [orders.home_of(each.folder) for each in (east, second, west)] == [east, second, west]
    assert orders.other_home(second) == west
    with pytest.raises(ConfigurationError, match="jobs settle"):
        orders.home_of("s3://eu/other")


def test_the_journal_is_in_the_first_home() -> None:
    """Unless ``records`` names a folder that outlives both."""
    orders, _ = _parse(TEXT)
    assert replace(orders, records=None).journal == "s3://eu/orders/journals/orders"


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("version: 1", "version: 2", ["version"]),
        ("dag: stream", "dagg: stream", ["defaults", "'dagg', did you mean dag?"]),
        ("after: [orders]", "after: [order]", ["clicks", "order", "did you mean orders?"]),
        ("- name: clicks", "- name: orders", ["two jobs are called orders"]),
        ("max_read_again: 7", "max_read_again: -1", ["jobs.1.max_read_again of job clicks"]),
        ("max_read_again: 7", "kill_after: .nan", ["jobs.1.kill_after", "number"]),
        ("east: s3://eu/{name}", "east: s3://eu/{name}\n    north: /n", ["defaults.homes"]),
        (
            "east: s3://eu/{name}",
            "east: s3://key:secret@eu/{name}",
            ["defaults.homes.east", "login"],
        ),
        (
            "max_read_again: 7",
            "max_read_again: 7\n  max_read_again: 8",
            ["max_read_again", "twice"],
        ),
        ("jobs:", "jobs: {", ["no YAML"]),
        ("east: s3://eu/{name}", "east: s3://eu/all", ["orders and clicks share", "s3://eu/all"]),
        ("  after: [orders]", "  homes: {east: s3://eu/orders/2, west: s3://w}", ["share"]),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, names: list[str]) -> None:
    """One error has the file, the place and the nearest name; a secret is not shown."""
    with pytest.raises(ConfigurationError) as caught:
        _parse(TEXT.replace(old, new))
    message = str(caught.value)
    assert "jobs.yaml" in message
    assert "secret" not in message
    for name in names:
        assert name in message


def test_a_misspelt_job_is_refused() -> None:
    """The most similar name is shown."""
    with pytest.raises(ConfigurationError, match="did you mean orders"):
        find_job(_parse(TEXT), "ordres", file="jobs.yaml")


@pytest.mark.parametrize(
    "values",
    [
        {"name": "a b", "homes": {"x": "/x", "y": "/y"}},
        {"name": "a", "homes": {}},
        {"name": "a", "homes": ["/x", "/y"]},
        {"name": "a", "homes": {"x": "/x", "y": {"path": "/y"}}},
        {"name": "a"},
        {"name": "a", "homes": {"x": "/x", "y": "/y"}, "mode": "planned"},
        {"name": "a", "homes": {"x": "/x", "y": "/x/"}},
        {"name": "a", "homes": {"x": "/x/3", "y": "/x"}},
    ],
)
def test_a_job_that_is_none_is_refused(values: dict[str, object]) -> None:
    """In code and in XCom, too."""
    with pytest.raises(ConfigurationError):
        SparkJob.from_json(values)


@pytest.mark.parametrize("name", ["1", "02", "0", "\u0662", "2x", "two"])
def test_only_a_plain_number_is_a_stay(name: str) -> None:
    """The first stay is the folder itself, and a second spelling would be a second folder."""
    home = Home(cluster="x", folder="/x")
    assert home.stay_in(f"/x/{name}") is None
    assert home.stay_in("/x/12") == home.stay(12)


def test_a_journal_at_the_root() -> None:
    """Of a file system that has nothing else."""
    assert job_in("/orders", "/x").journal == "/orders"
    assert job_in("records/orders", "/x").journal == "records/orders"
