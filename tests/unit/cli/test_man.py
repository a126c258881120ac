"""The manual pages: made of the commands, and complete."""

from pathlib import Path

import click
import pytest

from airflow_mm2_offsets.cli.man import main, pages
from tests.unit.cli.test_lazy import CONTEXTS

PAGES = dict(pages())


@pytest.mark.parametrize("context", CONTEXTS, ids=lambda each: each.command_path)
def test_a_page_names_every_option_and_argument(context: click.Context) -> None:
    """Each page has its command's options by all their flags, its arguments and its examples."""
    page = PAGES[f"{context.command_path.replace(' ', '-')}.1"].replace("\\-", "-")
    options = [
        each for each in context.command.get_params(context) if each.param_type_name == "option"
    ]
    assert {"-h", "--help"} <= {flag for each in options for flag in each.opts}
    heads = [line for line in page.splitlines() if line.startswith(".B ")]
    for each in options:
        for flag in (*each.opts, *each.secondary_opts):
            assert any(flag in head.replace(",", " ").split() for head in heads), flag
    for argument in context.command.params:
        if argument.param_type_name == "argument":
            assert f".B {argument.shown_name}" in heads  # type: ignore[attr-defined]
    assert (".SH EXAMPLE" in page) is ("Example" in (context.command.epilog or ""))


def test_the_page_of_the_program_names_every_command() -> None:
    """And the exit codes; the pages of groups name those below them."""
    page = PAGES["airflow-mm2-offsets.1"].replace("\\-", "-")
    for name in PAGES:
        words = name.removeprefix("airflow-mm2-offsets-").removesuffix(".1")
        if name != "airflow-mm2-offsets.1" and not any(
            words.startswith(f"{group}-") for group in ("archive", "checkpoint", "jobs")
        ):
            assert f".B {name.removesuffix('.1')}(1)" in page
    assert "74   nothing more can be written" in page
    assert ".B airflow-mm2-offsets-archive-run(1)" in PAGES[
        "airflow-mm2-offsets-archive.1"
    ].replace("\\-", "-")


def test_no_text_is_taken_for_a_request() -> None:
    """A line that begins with a dot or an apostrophe is one of the few macros."""
    known = {".TH", ".SH", ".TP", ".PP", ".B", ".nf", ".fi"}
    for page in PAGES.values():
        lines = [line for line in page.splitlines() if line[:1] in {".", "'"}]
        assert {line.split()[0] for line in lines} <= known


def test_the_pages_are_files(tmp_path: Path) -> None:
    """``make man`` writes one for each command."""
    main(tmp_path / "man")
    assert {each.name for each in (tmp_path / "man").iterdir()} == set(PAGES)
    assert (tmp_path / "man" / "airflow-mm2-offsets-plan.1").read_text().startswith(".TH ")
