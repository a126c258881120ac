"""Jars, fetched by the Ivy that PySpark ships: no Maven, no Kafka download."""

import fcntl
import shutil
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from stack.process import Program
from stack.waiting import Progress, quiet

_HERE = Path(__file__).parent
SPARK = "4.2"
"""The Spark of stack/ivy.xml."""
MIRROR_VERSIONS = ("3.4", "3.6", "3.9", "4.1")
"""The older MirrorMaker 2 of stack/ivy-versions.xml."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jars:
    """Where the jars are.

    Attributes:
        kafka: The folder with Kafka, Connect and MirrorMaker 2.
        spark: What a job needs to read Kafka on the PySpark that is installed, beside its own jars.
    """

    kafka: Path
    spark: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeJars:
    """What a Spark job needs beside PySpark's own jars.

    Attributes:
        s3a: For locations on S3.
        delta: For Delta tables.
    """

    s3a: tuple[Path, ...]
    delta: tuple[Path, ...]


def fetch(build: Path, *, progress: Progress = quiet) -> Jars:
    """Fetch the jars of stack/ivy.xml into `build`/jars, unless they are there.

    Those of Spark are of stack/ivy-versions.xml where another PySpark is installed.

    Args:
        build: The folder for files that can be recreated.
        progress: Told what is being waited for.

    Raises:
        ProgramError: Ivy failed; with the end of its log.
    """
    what = "the jars of Kafka and of Spark's Kafka source (once, about 90 s)"
    jars = _fetch(_HERE / "ivy.xml", ("kafka", "spark"), build / "jars", what, progress)
    return Jars(kafka=jars / "kafka", spark=_files(_spark(jars, build, progress)))


def fetch_mirror(build: Path, release: str, *, progress: Progress = quiet) -> Path:
    """Fetch an older MirrorMaker 2 of stack/ivy-versions.xml, and return its folder.

    Args:
        build: The folder for files that can be recreated.
        release: One of ``MIRROR_VERSIONS``.
        progress: Told what is being waited for.

    Raises:
        ProgramError: Ivy failed; with the end of its log.
    """
    return _fetch_version(f"mm2-{release}", build, progress)


def fetch_lake(build: Path, *, progress: Progress = quiet) -> LakeJars:
    """Fetch the jars of stack/ivy-lake.xml into `build`/lake-jars, unless they are there.

    Args:
        build: The folder for files that can be recreated.
        progress: Told what is being waited for.

    Raises:
        ProgramError: Ivy failed; with the end of its log.
    """
    what = "the jars of Spark's S3 and Delta (once, about a minute)"
    jars = _fetch(_HERE / "ivy-lake.xml", ("s3a", "delta"), build / "lake-jars", what, progress)
    return LakeJars(s3a=_files(jars / "s3a"), delta=_files(jars / "delta"))


def fetch_flink(build: Path, *, progress: Progress = quiet) -> Path:
    """Fetch the jars of stack/ivy-flink.xml, unless they are there, and return their folder.

    Args:
        build: The folder for files that can be recreated.
        progress: Told what is being waited for.

    Raises:
        ProgramError: Ivy failed; with the end of its log.
    """
    listed, conf = _HERE / "ivy-flink.xml", "flink"
    what = "the jars of Flink (once, about a minute)"
    return _fetch(listed, (conf,), build / f"{conf}-jars", what, progress) / conf


def fetch_connect_login(build: Path, *, progress: Progress = quiet) -> Path:
    """Fetch the jar of stack/ivy-connect-login.xml, unless it is there, and return its folder.

    Args:
        build: The folder for files that can be recreated.
        progress: Told what is being waited for.

    Raises:
        ProgramError: Ivy failed; with the end of its log.
    """
    listed, conf = _HERE / "ivy-connect-login.xml", "connect-login"
    jars = build / f"{conf}-jars"
    return _fetch(listed, (conf,), jars, "the login of Kafka Connect", progress) / conf


def _spark(jars: Path, build: Path, progress: Progress) -> Path:
    release = version("pyspark").rpartition(".")[0]
    if release == SPARK:
        return jars / "spark"
    return _fetch_version(f"spark-{release}", build, progress)


def _fetch_version(conf: str, build: Path, progress: Progress) -> Path:
    listed = _HERE / "ivy-versions.xml"
    return _fetch(listed, (conf,), build / f"{conf}-jars", f"the jars of {conf}", progress) / conf


def _files(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(folder.glob("*.jar")))


def _fetch(listed: Path, confs: tuple[str, ...], jars: Path, what: str, progress: Progress) -> Path:
    # The list they were fetched by lies beside them, and comes there last.
    done = jars / listed.name
    jars.parent.mkdir(parents=True, exist_ok=True)
    with (jars.parent / "ivy.lock").open("w") as lock:  # Tests run in several processes.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists() or done.read_bytes() != listed.read_bytes():
            progress(f"fetching {what}")
            _download(listed, confs, jars, progress)
    return jars


def _download(listed: Path, confs: tuple[str, ...], jars: Path, progress: Progress) -> None:
    part = jars.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    command: list[str | Path] = ["java", "-jar", _ivy(), "-ivy", listed]
    command += ["-cache", jars.parent / "ivy", "-confs", *confs]
    command += ["-retrieve", f"{part}/[conf]/[artifact]-[revision].[ext]"]
    ivy = Program("Ivy's download", command, log=jars.parent / "ivy.log")
    ivy.start()
    try:
        ivy.wait_end(seconds=600, progress=progress)
    finally:
        ivy.stop()
    shutil.copy(listed, part)
    shutil.rmtree(jars, ignore_errors=True)
    part.rename(jars)


def _ivy() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("pyspark is not installed: it ships the Ivy that fetches jars")
    return next((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))
