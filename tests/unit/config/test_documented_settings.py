"""Every example of docs/settings.md describes the same two clusters."""

import re
from pathlib import Path

import pytest

from airflow_mm2_offsets.config import load_settings
from airflow_mm2_offsets.config.keys import KEYS

PAGE = (Path(__file__).parents[3] / "docs" / "settings.md").read_text(encoding="utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)}
_BLOCK = re.compile(r"```(properties|toml|json|yaml)\n(.*?)```", re.DOTALL)
EXAMPLES = [
    (title, suffix, text)
    for title, part in SECTIONS.items()
    for suffix, text in _BLOCK.findall(part)
]


def test_each_format_has_an_example() -> None:
    """Five ways to name the clusters, one of them in two formats."""
    assert [(title, suffix) for title, suffix, _ in EXAMPLES] == [
        ("Our own file", "properties"),
        ("Our own file", "toml"),
        ("mm2.properties", "properties"),
        ("The JSON of a connector", "json"),
        ("Strimzi", "yaml"),
        ("mm2-offset-map", "yaml"),
    ]


@pytest.mark.parametrize(("title", "suffix", "text"), EXAMPLES)
def test_an_example_names_both_clusters(tmp_path: Path, title: str, suffix: str, text: str) -> None:
    """With the variables that its section exports."""
    variables = dict(re.findall(r"^export (\w+)=(.+)$", SECTIONS[title], re.MULTILINE))
    file = tmp_path / f"example.{suffix}"
    file.write_text(text)
    settings = load_settings(file, variables)
    assert (settings.naming.source_alias, settings.naming.target_alias) == ("east", "west")
    assert settings.source["bootstrap.servers"] == "east-1:9092"
    assert settings.target["bootstrap.servers"] == "west-1:9092"
    assert settings.pair().syncs_topic in {
        "mm2-offset-syncs.east.internal",
        "mm2-offset-syncs.west.internal",
    }


def test_every_key_is_listed() -> None:
    """The table is complete, and lists nothing else."""
    table = SECTIONS["Our own file"].partition("| key |")[2]
    listed = re.findall(r"`([a-z.-]+)`", "".join(re.findall(r"^\| (.*?) \|", table, re.MULTILINE)))
    assert set(listed) == KEYS


def test_each_variable_that_the_page_names_is_a_setting() -> None:
    """Or one that the page says is ignored."""
    names = set(re.findall(r"MM2_OFFSETS_\w+", PAGE)) - {
        "MM2_OFFSETS_CONFIG",
        "MM2_OFFSETS_SERVICE_HOST",
    }
    load_settings(
        None,
        dict.fromkeys(names, "identity")
        | {
            "MM2_OFFSETS_KAFKA_BOOTSTRAP_SERVERS": "a:1",
            "MM2_OFFSETS_REFRESH_SECONDS": "30",
            "MM2_OFFSETS_KAFKA_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM": "none",
        },
    )
