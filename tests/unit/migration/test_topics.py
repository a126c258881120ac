"""Topics that a migrated job would begin to read because their names match its pattern."""

from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import ConfigurationError, TranslationRefusedError
from airflow_mm2_offsets.migration import MigrationOptions
from tests.support.pairs import Pair
from tests.unit.migration.migrating import migrate, write_checkpoint


@pytest.mark.parametrize(
    ("pattern", "foreign"),
    [
        (r"(a\.)?orders.*", "a.orders-eu, orders"),
        (r"^a\.orders", "a.orders-eu"),
        ("orders$", "orders"),
        (".*", "a.orders-eu, heartbeats, mm2-offset-syncs.a.internal, orders, refunds"),
    ],
)
def test_topics_that_the_job_would_begin_to_read(
    renamed: Pair, tmp_path: Path, pattern: str, foreign: str
) -> None:
    """A topic that matches anywhere, and that the checkpoint does not know, needs a word."""
    original, target = write_checkpoint(tmp_path), UPath(tmp_path / "copy")
    with pytest.raises(TranslationRefusedError) as refused:
        migrate(renamed, original, target, MigrationOptions(subscribe_pattern=pattern))
    assert f"matches {foreign} on the target, which the checkpoint does not" in str(refused.value)
    assert not target.exists()

    names = foreign.split(", ")
    options = MigrationOptions(subscribe_pattern=pattern, new_topics=names)
    notes = migrate(renamed, original, target, options)["notes"]
    for name in names:
        assert f"{name}, which the checkpoint does not know, is read from its beginning" in notes


def test_a_pattern_of_the_source_s_names(renamed: Pair, tmp_path: Path) -> None:
    """Where the copies have other names, the job would pass them over in silence."""
    options = MigrationOptions(subscribe_pattern="^orders")
    with pytest.raises(TranslationRefusedError, match=r"does not match a\.orders, which the"):
        migrate(renamed, write_checkpoint(tmp_path), UPath(tmp_path / "copy"), options)


def test_a_pattern_that_matches_what_is_known(renamed: Pair, tmp_path: Path) -> None:
    """Then nothing is new."""
    options = MigrationOptions(subscribe_pattern=r"^a\.orders$")
    done = migrate(renamed, write_checkpoint(tmp_path), UPath(tmp_path / "copy"), options)
    assert not [note for note in done["notes"] if "does not know" in note]


@pytest.mark.parametrize("pattern", ["(", r"\p{Alpha}+", "[a-z&&[^o]]+", r"\Qorders\E"])
def test_a_pattern_of_java_s_own(renamed: Pair, tmp_path: Path, pattern: str) -> None:
    """What Python can't read, or reads otherwise, is not guessed at."""
    options = MigrationOptions(subscribe_pattern=pattern)
    with pytest.raises(ConfigurationError, match="means the same to Java and to Python"):
        migrate(renamed, write_checkpoint(tmp_path), UPath(tmp_path / "copy"), options)
