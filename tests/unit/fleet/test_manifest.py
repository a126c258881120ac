"""What a manifest may say, and how a wrong one is refused: by file, line, job and next step."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.fleet.job import FleetJob
from airflow_mm2_offsets.fleet.manifest import manifest_schema, parse_manifest
from tests.unit.fleet.manifests import DEFAULTS, FILE, job, parse


def test_defaults_are_of_every_job_and_name_stands_for_its_name() -> None:
    """A job's own field counts before; folders lose their last slash."""
    orders, refunds = parse("  - name: orders\n  - {name: refunds, target_folder: s3://us/r/}\n")
    assert (orders.source_folder, orders.target_folder) == ("/eu/orders", "/us/orders")
    assert (orders.source_output, orders.control) == ("/eu/orders/output", "/eu/orders/control")
    assert (refunds.target_folder, refunds.target_output) == ("s3://us/r", "s3://us/r/output")
    assert (orders.wave, orders.kill_after, orders.line) == (1, None, 7)


def test_json_is_yaml() -> None:
    """A program may write the manifest as JSON."""
    content = {"jobs": [{"name": "a", "stream_dag_id": "s"} | dict.fromkeys(FOLDERS, "/x")]}
    (read,) = parse_manifest(json.dumps(content), "fleet.json")
    assert read.name == "a"


FOLDERS = ("source_folder", "target_folder")


@pytest.mark.parametrize(
    ("jobs", "problem"),
    [
        ("  - {name: a, wvae: 1}\n", "line 7: jobs.0 of job a: has the unknown 'wvae', did you"),
        ("  - {name: a, wave: 0}\n", "line 7: jobs.0.wave of job a: 0 is less than the minimum"),
        ("  - {name: a, wave: '1'}\n", "jobs.0.wave of job a: '1' is not of type 'integer'"),
        ("  - {name: 'a:b'}\n", "line 7: jobs.0.name of job a:b: 'a:b' does not match"),
        ("  - {wave: 1}\n", "line 7: jobs.0: 'name' is a required property"),
        ("  - {name: a, after: b}\n", "jobs.0.after of job a: 'b' is not of type 'array'"),
        ("  - {name: a, after: [b]}\n", "line 7: after of job a names b, and the manifest has no"),
        ("  - {name: a, wave: 4}\n", "line 7: wave of job a is 4, and the DAG has 3 waves"),
        ("  - {name: a}\n  - {name: a}\n", "line 8: the name a is that of the job at line 7, too"),
        ("  - {name: a, name: b}\n", "name is at line 7 and again at line 7; remove one"),
        ("  - {name: a, kill_after: .nan}\n", "kill_after of job a: nan is not a number"),
        ("  - {name: a, kill_after: .inf}\n", "kill_after of job a: inf is greater than"),
        ("  - {name: a, kill_after: 2024-01-01}\n", "is not of type 'number'"),
        ("  - {name: a, kill_after: 2024-13-01}\n", "quote dates and numbers"),
        ("  - &a [*a]\n", "line 7, or an anchor holds itself"),
        ("  - [\n", "is not valid YAML at line 8"),
        ("", "line 6: jobs: None is not of type 'array'"),
        ("  []\n", "jobs: \\[\\] should be non-empty"),
    ],
)
def test_a_wrong_manifest_is_refused(jobs: str, problem: str) -> None:
    """The message names the file, the line, the job and the field."""
    with pytest.raises(ConfigurationError, match=problem) as caught:
        parse(jobs)
    assert str(caught.value).startswith(f"{FILE}: ")


@pytest.mark.parametrize("number", ["-1", "1.5", "many", "null"])
def test_what_is_no_number_of_records_is_refused(number: str) -> None:
    """Before anything is read; the default gives nothing up."""
    with pytest.raises(ConfigurationError, match=r"jobs\.0\.give_up of job a: "):
        parse(f"  - {{name: a, give_up: {number}}}\n")
    given_up, nothing = parse("  - {name: a, give_up: 3}\n  - {name: b}\n")
    assert (given_up.give_up, nothing.give_up) == (3, 0)


@pytest.mark.parametrize("topic", ["order-.*", "orders ", "orders,clicks", "", "a" * 250])
@pytest.mark.parametrize("field", ["reads", "writes"])
def test_what_is_no_name_of_a_topic_is_refused(field: str, topic: str) -> None:
    """A pattern or a list in one text would put the job in no order, in silence."""
    with pytest.raises(ConfigurationError, match=rf"jobs\.0\.{field}\.0 of job a: .*not match"):
        parse(f"  - {{name: a, {field}: ['{topic}']}}\n")


@pytest.mark.parametrize(
    "text",
    [
        "  - {name: a, source_folder: 's3://key:hunter2@b/f'}\n",
        "  - {name: a, saved_positions: 'ftp://u:hunter2@h/f'}\n",
        "  - {name: a, target_output: ['s3://key:hunter2@b/f']}\n",
    ],
)
def test_a_login_in_a_folder_is_refused_and_not_shown(text: str) -> None:
    """What is read goes to XCom; the message names the field."""
    with pytest.raises(ConfigurationError, match=r"of job a: holds a login; keep it in") as caught:
        parse(text)
    assert "hunter2" not in str(caught.value)


def test_the_name_of_a_connection_is_no_login() -> None:
    """As in the documented manifests."""
    assert (
        parse("  - {name: a, source_folder: 's3://aws@b/f'}\n")[0].source_folder == "s3://aws@b/f"
    )


def test_all_that_is_wrong_is_told_at_once() -> None:
    """A user of fifty jobs corrects the file once."""
    with pytest.raises(ConfigurationError, match="3 settings are wrong"):
        parse("  - {name: a, wave: 9}\n  - {name: b, wave: 8}\n  - {name: c, after: [d]}\n")


def test_a_job_without_a_folder_is_refused() -> None:
    """Neither the job nor the defaults say it."""
    with pytest.raises(ConfigurationError, match=r"line 2: jobs\.0 of job a: lacks source_folder"):
        parse_manifest("jobs:\n  - {name: a, stream_dag_id: s, target_folder: /t}\n", FILE)


@pytest.mark.parametrize("text", ["", "[]", "3", "jobs", "jobs: {}", "a: b", "--- 1\n--- 2"])
def test_another_file_is_refused(text: str) -> None:
    """What is no manifest raises the error of one, and no other."""
    with pytest.raises(ConfigurationError, match=FILE):
        parse_manifest(text, FILE)


@given(st.text(max_size=80))
def test_no_text_raises_another_error(text: str) -> None:
    """A damaged file is an error that names the file."""
    for content in (text, f"{DEFAULTS}  - {text}\n"):
        try:
            parse_manifest(content, FILE)
        except ConfigurationError as error:
            assert FILE in str(error)  # noqa: PT017 - either may come


def test_a_job_survives_xcom() -> None:
    """What the first task returns is what the later ones read."""
    whole = job("a", after=["b"], reads=["t"], kill_after=3.5, line=4)
    assert FleetJob.from_json(json.loads(json.dumps(whole.to_json()))) == whole


def test_the_schema_lists_the_fields_of_a_job() -> None:
    """A field that only one of both has would be refused, or taken and ignored."""
    fields = set(manifest_schema()["$defs"]["job"]["properties"])
    assert fields == set(job("a").to_json()) - {"line"}
    defaults = set(manifest_schema()["properties"]["defaults"]["properties"])
    assert defaults == fields - {"name", "after"}


def test_the_documented_manifest_parses() -> None:
    """Users copy the example of docs/fleet.md."""
    page = (Path(__file__).parents[3] / "docs" / "fleet.md").read_text()
    text = page.partition("```yaml\n")[2].partition("```")[0]
    assert [each.name for each in parse_manifest(text, "docs/fleet.md", waves=3)] == [
        "billing",
        "orders",
        "search-index",
    ]
    for name in manifest_schema()["$defs"]["job"]["properties"]:
        assert f"`{name}`" in page, name
