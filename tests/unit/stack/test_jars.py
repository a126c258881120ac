"""Which jars are fetched, and what is done with one that is not the listed one."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from stack import ivy, jar_lists, jars
from stack.jar_lists import Jar
from stack.process import ProgramError

SETS = {jar_set: file for file, jar_sets in ivy.ivy_files().items() for jar_set in jar_sets}


@dataclass
class PlayedIvy:
    """An Ivy that puts each jar into the cache at once."""

    jars: tuple[Jar, ...]
    cache: Path
    running = False
    session = None

    def start(self) -> None:
        for jar in self.jars:
            file = ivy.cached(jar, self.cache)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(jar.file.encode())

    def wait_end(self) -> None:
        pass

    def forget(self) -> None:
        pass


def jar(name: str, revision: str = "1.0", content: str = "") -> Jar:
    content = content or f"{name}-{revision}.jar"
    digest = hashlib.sha256(content.encode()).hexdigest()
    return Jar(organisation="org.example", name=name, revision=revision, sha256=digest)


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[PlayedIvy]:
    """Play Ivy, and keep lists of a test's own."""
    played: list[PlayedIvy] = []

    def download(jars: Iterable[Jar], cache: Path, *, part: int) -> PlayedIvy:
        played.append(PlayedIvy(tuple(jars), cache))
        assert part == (len(played) - 1) % 4
        return played[-1]

    monkeypatch.setattr(ivy, "download", download)
    monkeypatch.setattr(jar_lists, "FOLDER", tmp_path)
    return played


def keep(jar_set: str, *listed: Jar) -> None:
    jar_lists.write(jar_set, listed, wanted_by=Path("ivy.xml"))


def test_each_set_has_a_list() -> None:
    """None is missing, and none is left from a set that is gone."""
    assert {file.stem for file in jar_lists.FOLDER.iterdir()} == set(SETS)


@pytest.mark.parametrize("jar_set", SETS)
def test_a_list_has_what_its_ivy_file_wants(jar_set: str) -> None:
    """Each dependency of the set, in the revision that the Ivy file names: else renew the lists."""
    wanted = {
        (each.attrib["org"], each.attrib["name"], each.attrib["rev"])
        for each in ET.parse(SETS[jar_set]).getroot().iter("dependency")  # noqa: S314 - our own
        if each.attrib["conf"].startswith(f"{jar_set}->")
    }
    listed = {(each.organisation, each.name, each.revision) for each in jar_lists.read(jar_set)}
    assert wanted
    assert wanted <= listed


@pytest.mark.parametrize("jar_set", SETS)
def test_no_file_of_a_set_replaces_another(jar_set: str) -> None:
    """Each jar has a name of its own in the set's folder."""
    names = [each.file for each in jar_lists.read(jar_set)]
    assert len(names) == len(set(names))


def test_a_list_reads_as_it_was_written(downloads: list[PlayedIvy]) -> None:
    """In the order of its coordinates, after a line that says where it comes from."""
    assert not downloads
    keep("kafka", jar("b"), jar("a", "2"))
    assert jar_lists.read("kafka") == (jar("a", "2"), jar("b"))
    assert "stack/ivy.xml" in jar_lists.list_file("kafka").read_text().splitlines()[0]


def test_sets_are_fetched_together_and_once(downloads: list[PlayedIvy], tmp_path: Path) -> None:
    """Several Ivy share the jars, each jar is asked for once, and what is there is kept."""
    keep("s3a", *map(jar, "abcdef"))
    keep("delta", jar("a"), jar("g"))
    lines: list[str] = []
    lake = jars.fetch_lake(tmp_path / "build", progress=lines.append)
    assert [file.name for file in lake.s3a] == [f"{each}-1.0.jar" for each in "abcdef"]
    assert [file.read_text() for file in lake.delta] == ["a-1.0.jar", "g-1.0.jar"]
    assert sorted(each.name for part in downloads for each in part.jars) == list("abcdefg")
    assert [len(part.jars) for part in downloads] == [2, 2, 2, 1]
    assert lines == ["downloading jars: 0 of 7 are here"]

    assert jars.fetch_lake(tmp_path / "build") == lake
    assert len(downloads) == 4


def test_a_changed_list_is_fetched_again(downloads: list[PlayedIvy], tmp_path: Path) -> None:
    """The set then has the new jars alone."""
    keep("flink", jar("a"))
    jars.fetch_flink(tmp_path)
    keep("flink", jar("a", "2.0"))
    folder = jars.fetch_flink(tmp_path)
    assert len(downloads) == 8
    assert [file.name for file in folder.glob("*.jar")] == ["a-2.0.jar"]


def test_another_jar_than_the_listed_one_is_refused(
    downloads: list[PlayedIvy], tmp_path: Path
) -> None:
    """It is removed, so that the next run asks for it again, and the set is not there."""
    other = jar("b", content="another file")
    keep("flink", jar("a"), other)
    with pytest.raises(ProgramError, match=rf"org\.example:b:1\.0 has .* says {other.sha256}"):
        jars.fetch_flink(tmp_path)
    cache = downloads[0].cache
    assert ivy.cached(jar("a"), cache).exists()
    assert not ivy.cached(other, cache).exists()
    assert not (tmp_path / "jars" / "flink").exists()


def test_the_jars_of_the_demo_are_where_they_are_expected(
    downloads: list[PlayedIvy], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their places are known before they are there: Airflow starts meanwhile."""
    monkeypatch.setattr(jars, "version", lambda _name: f"{jars.SPARK}.0")
    keep("kafka", jar("kafka-clients", "4.3.1"))
    keep("spark", jar("kafka-clients", "3.9.2"), jar("spark-sql-kafka"))
    located = jars.locate(tmp_path)
    assert not downloads
    assert jars.fetch(tmp_path) == located
    assert all(file.exists() for file in located.spark)
    assert [file.name for file in located.kafka.glob("*.jar")] == ["kafka-clients-4.3.1.jar"]


def test_ivy_keeps_both_revisions_of_one_jar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its default it would drop the older one, which Spark needs."""
    monkeypatch.setattr(ivy, "_jar", lambda: Path("ivy.jar"))
    program = ivy.download([jar("a"), jar("a", "2.0")], tmp_path, part=0)
    file = program.command[program.command.index("-ivy") + 1]
    root = ET.parse(file).getroot()  # noqa: S314 - our own
    assert [each.attrib["rev"] for each in root.iter("dependency")] == ["1.0", "2.0"]
    assert [each.attrib for each in root.iter("manager")] == [{"name": "all"}]
