"""Runs the Ivy that PySpark ships: it knows the registry, and Java knows the machine's proxies.

``python -m stack.ivy`` writes the lists of jars again.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree as ET

from stack import jar_lists
from stack.jar_lists import Jar
from stack.jvm import QUICK_START
from stack.process import Program
from stack.waiting import Progress, quiet

HERE = Path(__file__).parent
LISTED = HERE / "ivysettings-listed.xml"
CACHE = HERE.parent / "build" / "ivy"


def download(jars: Iterable[Jar], cache: Path, *, part: int) -> Program:
    """Return an Ivy, not yet started, that downloads jars into a cache.

    What is in the cache already is not downloaded again. Several may run at once on one cache
    where no jar is of two of them.

    Args:
        jars: What to download.
        cache: The folder.
        part: Which of several downloads it is.
    """
    file = cache / f"part-{part}.xml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_ivy_file(f"part-{part}", jars))
    return _program(f"Ivy's download {part}", cache, "-ivy", file, "-settings", LISTED)


def cached(jar: Jar, cache: Path) -> Path:
    """Return the file of a jar that ``download`` has put into a cache."""
    return cache / jar.organisation / jar.name / "jars" / jar.file


def ivy_files() -> Mapping[Path, tuple[str, ...]]:
    """Return each Ivy file with the names of its sets."""
    return {
        file: tuple(conf.attrib["name"] for conf in _root(file).iter("conf"))
        for file in sorted(HERE.glob("ivy*.xml"))
        if file != LISTED
    }


def resolve(
    ivy_file: Path, jar_sets: Sequence[str], cache: Path, *, progress: Progress = quiet
) -> Mapping[str, tuple[Jar, ...]]:
    """Find all jars that the sets of an Ivy file need; they are downloaded to be digested.

    Raises:
        ProgramError: Ivy failed; with the end of its log.
    """
    ivy = _program("Ivy", cache, "-ivy", ivy_file, "-confs", *jar_sets)
    ivy.start()
    try:
        ivy.wait_end(seconds=1800, progress=progress)
    finally:
        ivy.stop()
    info = next(_root(ivy_file).iter("info")).attrib
    report = f"{info['organisation']}-{info['module']}-{{}}.xml"
    return {each: tuple(_reported(cache / report.format(each))) for each in jar_sets}


def _reported(report: Path) -> Iterator[Jar]:
    for module in _root(report).iter("module"):
        for revision in module.iter("revision"):
            for artifact in revision.iter("artifact"):
                yield Jar(
                    organisation=module.attrib["organisation"],
                    name=artifact.attrib["name"],
                    revision=revision.attrib["name"],
                    sha256=jar_lists.sha256_of(Path(artifact.attrib["location"])),
                )


def _ivy_file(module: str, jars: Iterable[Jar]) -> str:
    root = ET.Element("ivy-module", version="2.0")
    ET.SubElement(root, "info", organisation="airflow-mm2-offsets", module=module)
    wanted = ET.SubElement(root, "dependencies")
    for jar in jars:
        attributes = {"org": jar.organisation, "name": jar.name, "rev": jar.revision}
        ET.SubElement(wanted, "dependency", attributes, conf="default")
    # Kafka and Spark need different revisions of one jar: Ivy would drop the older one.
    conflicts = ET.SubElement(root, "conflicts")
    ET.SubElement(conflicts, "manager", name="all")
    return ET.tostring(root, encoding="unicode")


def _root(file: Path) -> ET.Element:
    return ET.parse(file).getroot()  # noqa: S314 - ours, and what Ivy has written


def _program(name: str, cache: Path, *options: str | Path) -> Program:
    log = cache / f"{name.replace(' ', '-').lower()}.log"
    return Program(name, ["java", *QUICK_START, "-jar", _jar(), "-cache", cache, *options], log=log)


def _jar() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("pyspark is not installed: it ships the Ivy that fetches jars")
    return next((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))


def main() -> None:
    """Write all lists again."""
    for ivy_file, jar_sets in ivy_files().items():
        for jar_set, jars in resolve(ivy_file, jar_sets, CACHE, progress=_say).items():
            jar_lists.write(jar_set, jars, wanted_by=ivy_file)
            _say(f"{jar_lists.list_file(jar_set)}: {len(jars)} jars")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
