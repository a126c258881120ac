"""The jars of the stack, fetched by the Ivy that PySpark ships: no Maven, no Kafka download."""

import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from stack.process import Program
from stack.waiting import Progress, quiet

IVY_FILE = Path(__file__).with_name("ivy.xml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Jars:
    """Where the jars are.

    Attributes:
        kafka: The folder with Kafka, Connect and MirrorMaker 2.
        spark: What a Spark job needs to read Kafka, beside PySpark's own jars.
    """

    kafka: Path
    spark: tuple[Path, ...]


def fetch(build: Path, *, progress: Progress = quiet) -> Jars:
    """Fetch the jars of stack/ivy.xml into `build`/jars, unless they are there.

    Args:
        build: The folder for what can be made again.
        progress: Told what is being waited for.

    Raises:
        ProgramError: Ivy failed; with the end of its log.
    """
    jars = build / "jars"
    if not _complete(jars):
        _download(build, jars, progress)
    return Jars(kafka=jars / "kafka", spark=tuple(sorted((jars / "spark").glob("*.jar"))))


def _complete(jars: Path) -> bool:
    # The list they were fetched by lies beside them, and comes there last.
    done = jars / IVY_FILE.name
    return done.exists() and done.read_bytes() == IVY_FILE.read_bytes()


def _download(build: Path, jars: Path, progress: Progress) -> None:
    progress("fetching the jars of Kafka and of Spark's Kafka source (once, about 90 s)")
    part = build / "jars.part"
    shutil.rmtree(part, ignore_errors=True)
    command: list[str | Path] = ["java", "-jar", _ivy(), "-ivy", IVY_FILE, "-cache", build / "ivy"]
    command += ["-confs", "kafka", "spark"]
    command += ["-retrieve", f"{part}/[conf]/[artifact]-[revision].[ext]"]
    ivy = Program("Ivy's download", command, log=build / "ivy.log")
    ivy.start()
    try:
        ivy.wait_end(seconds=600, progress=progress)
    finally:
        ivy.stop()
    shutil.copy(IVY_FILE, part)
    shutil.rmtree(jars, ignore_errors=True)
    part.rename(jars)


def _ivy() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("pyspark is not installed: it ships the Ivy that fetches jars")
    return next((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))
