"""Starting offsets in a file, which the failover writes and reads."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from upath import UPath

from airflow_mm2_offsets.errors import PlanError
from airflow_mm2_offsets.job.offsets_file import (
    check_digest,
    digest_in_name,
    offsets_file_name,
)
from airflow_mm2_offsets.spark.offsets_file import read_offsets, write_offsets

TEXT = '{"orders":{"0":42}}'


@given(st.text(), st.text(min_size=1), st.text())
def test_a_name_tells_what_the_file_holds(stem: str, text: str, other: str) -> None:
    """The same text has the same name, another text another; each storage takes the name."""
    name = offsets_file_name(stem, text)
    assert name == offsets_file_name(stem, text)
    assert "/" not in name
    assert ":" not in name
    digest = digest_in_name(f"s3://lake/plans/{name}")
    check_digest(name, text, digest)
    if other != text:
        with pytest.raises(ValueError, match="was changed: its name says"):
            check_digest(name, other, digest)


def test_a_stem_may_look_like_the_name_of_such_a_file(tmp_path: Path) -> None:
    """The digest at the end counts; a name that has one elsewhere is no file of offsets."""
    stem = "a.offsets-0123456789abcdef.json.b"
    argument = write_offsets(TEXT, f"{tmp_path}/{stem}.json", UPath)
    assert read_offsets(argument, UPath) == TEXT
    for name in (stem, "a.offsets-0123456789abcdef.json\n"):
        with pytest.raises(ValueError, match="is no file of starting offsets"):
            digest_in_name(f"s3://lake/plans/{name}")


@pytest.mark.parametrize("letter", ["r", "ä", "日"])
@pytest.mark.parametrize("count", [60, 188, 212, 250])
def test_a_run_s_id_may_be_long(tmp_path: Path, letter: str, count: int) -> None:
    """The name, that of the temporary file too, fits the disk; the digest stays in it."""
    argument = write_offsets(TEXT, f"{tmp_path}/{letter * count}.json", UPath)
    assert read_offsets(argument, UPath) == TEXT
    other = write_offsets(f"{TEXT} ", f"{tmp_path}/{letter * count}.json", UPath)
    assert read_offsets(argument, UPath) == TEXT != read_offsets(other, UPath)


def test_a_retry_writes_the_same_file(tmp_path: Path) -> None:
    """One file for each text, beside the plan; what is whole there is not written again."""
    plan = str(tmp_path / "plans" / "manual__2026-11-21T09:10:00+00:00.json")
    first = write_offsets(TEXT, plan, UPath)
    (file,) = (tmp_path / "plans").iterdir()
    assert file.read_text() == TEXT
    assert first == f"@{file}"
    written = file.stat().st_mtime_ns
    assert write_offsets(TEXT, plan, UPath) == first
    assert file.stat().st_mtime_ns == written
    assert write_offsets(TEXT.replace("2", "3"), plan, UPath) != first
    assert read_offsets(first, UPath) == TEXT


@pytest.mark.parametrize("damage", [b"", TEXT.encode()[:7], b"\xff\xfe{", b"\0" * len(TEXT)])
def test_a_damaged_file_is_written_again(tmp_path: Path, damage: bytes) -> None:
    """It is refused as changed, never as out of reach, until the task that writes it is retried."""
    plan = str(tmp_path / "run.json")
    argument = write_offsets(TEXT, plan, UPath)
    file = Path(argument[1:])
    file.write_bytes(damage)
    with pytest.raises(PlanError, match="was changed: its name says") as caught:
        read_offsets(argument, UPath)
    assert not caught.value.retryable
    assert write_offsets(TEXT, plan, UPath) == argument
    assert file.read_text() == TEXT == read_offsets(argument, UPath)


@pytest.mark.parametrize("text", [TEXT, "earliest", "latest"])
def test_what_names_no_file_is_taken_as_it_is(text: str) -> None:
    """Nothing is read."""
    assert read_offsets(text, UPath) == text


@pytest.mark.parametrize(
    ("name", "named"),
    [
        (offsets_file_name("run", TEXT), "was changed: its name says"),
        ("run.json", "is no file of starting offsets"),
        (f"{offsets_file_name('run', TEXT)}.tmp", "is no file of starting offsets"),
    ],
)
def test_the_task_takes_no_other_file(tmp_path: Path, name: str, named: str) -> None:
    """A file that was changed, or that the failover did not write, ends it."""
    other = TEXT.replace("4", "5")
    tmp_path.joinpath(name).write_text(other)
    with pytest.raises(PlanError, match=named):
        read_offsets(f"@{tmp_path}/{name}", UPath)


def test_a_file_of_another_name_is_not_opened() -> None:
    """A device or a secret behind ``@`` is not read."""
    opened = list[str]()

    def open_place(location: str) -> UPath:
        opened.append(location)
        return UPath(location)

    for location in ("/dev/zero", "/etc/passwd", "/plans/run.json"):
        with pytest.raises(PlanError, match="is no file of starting offsets"):
            read_offsets(f"@{location}", open_place)
    assert opened == []


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    """With the next step."""
    gone = offsets_file_name("run", TEXT)
    with pytest.raises(PlanError, match=f"{gone}: the file of the starting offsets is gone"):
        read_offsets(f"@{tmp_path}/{gone}", UPath)
