"""The jars of Kafka, Spark and Flink: no Maven, no Kafka download.

Each set is listed in stack/jar_lists. Several Ivy download at once what is missing, and each jar is
compared with its SHA-256. A download that was broken off goes on where it was.
"""

import fcntl
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from stack import ivy
from stack.jar_lists import Jar, list_file, read, sha256_of
from stack.process import ProgramError, stop_all
from stack.waiting import Progress, quiet, wait_until

SPARK = "4.2"
"""The Spark of stack/ivy.xml."""
MIRROR_VERSIONS = ("3.4", "3.6", "3.9", "4.1")
"""The older MirrorMaker 2 of stack/ivy-versions.xml."""
AT_ONCE = 4
"""Downloads at the same time: more JVMs take more time to start than they save."""
LIST = "jars.txt"
"""A set's list lies beside its jars, and comes there last."""


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


def locate(build: Path) -> Jars:
    """Return where ``fetch`` puts the jars, whether they are there or not."""
    spark = _spark_set()
    return Jars(
        kafka=_folder(build, "kafka"),
        spark=tuple(_folder(build, spark) / jar.file for jar in read(spark)),
    )


def fetch(build: Path, *, progress: Progress = quiet) -> Jars:
    """Fetch the jars of Kafka and of Spark's Kafka source into `build`/jars, unless they are there.

    Those of Spark are of stack/ivy-versions.xml where another PySpark is installed.

    Args:
        build: The folder for files that can be recreated.
        progress: Told what is being waited for.

    Raises:
        ProgramError: Ivy failed, with the end of its log; or a jar is not the one that is listed.
    """
    _fetch(build, ("kafka", _spark_set()), progress)
    return locate(build)


def fetch_mirror(build: Path, release: str, *, progress: Progress = quiet) -> Path:
    """Fetch an older MirrorMaker 2, and return its folder.

    Args:
        build: The folder for files that can be recreated.
        release: One of ``MIRROR_VERSIONS``.
        progress: Told what is being waited for.

    Raises:
        ProgramError: As for ``fetch``.
    """
    (folder,) = _fetch(build, (f"mm2-{release}",), progress)
    return folder


def fetch_lake(build: Path, *, progress: Progress = quiet) -> LakeJars:
    """Fetch the jars of Spark's S3 and Delta, unless they are there.

    Args:
        build: The folder for files that can be recreated.
        progress: Told what is being waited for.

    Raises:
        ProgramError: As for ``fetch``.
    """
    s3a, delta = _fetch(build, ("s3a", "delta"), progress)
    return LakeJars(s3a=_files(s3a), delta=_files(delta))


def fetch_flink(build: Path, *, progress: Progress = quiet) -> Path:
    """Fetch the jars of Flink, unless they are there, and return their folder.

    Args:
        build: The folder for files that can be recreated.
        progress: Told what is being waited for.

    Raises:
        ProgramError: As for ``fetch``.
    """
    (folder,) = _fetch(build, ("flink",), progress)
    return folder


def fetch_connect_login(build: Path, *, progress: Progress = quiet) -> Path:
    """Fetch the login of Kafka Connect, unless it is there, and return its folder.

    Args:
        build: The folder for files that can be recreated.
        progress: Told what is being waited for.

    Raises:
        ProgramError: As for ``fetch``.
    """
    (folder,) = _fetch(build, ("connect-login",), progress)
    return folder


def _spark_set() -> str:
    release = version("pyspark").rpartition(".")[0]
    return "spark" if release == SPARK else f"spark-{release}"


def _folder(build: Path, jar_set: str) -> Path:
    return build / "jars" / jar_set


def _files(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(folder.glob("*.jar")))


def _fetch(build: Path, jar_sets: Sequence[str], progress: Progress) -> list[Path]:
    """Fetch sets together, those that are missing or were fetched by another list."""
    build.mkdir(parents=True, exist_ok=True)
    with (build / "ivy.lock").open("w") as lock:  # Tests run in several processes.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if missing := [each for each in jar_sets if not _is_complete(build, each)]:
            cache = build / "jars" / "downloading"
            _download(sorted({jar for each in missing for jar in read(each)}), cache, progress)
            for each in missing:
                _install(each, cache, _folder(build, each))
            shutil.rmtree(cache)
    return [_folder(build, each) for each in jar_sets]


def _is_complete(build: Path, jar_set: str) -> bool:
    fetched = _folder(build, jar_set) / LIST
    return fetched.exists() and fetched.read_bytes() == list_file(jar_set).read_bytes()


def _download(jars: Sequence[Jar], cache: Path, progress: Progress) -> None:
    """Download jars into a cache with several Ivy, and compare each with its SHA-256."""

    def say(_line: str = "") -> None:
        present = sum(ivy.cached(jar, cache).exists() for jar in jars)
        progress(f"downloading jars: {present} of {len(jars)} are here")

    say()
    parts = [ivy.download(jars[part::AT_ONCE], cache, part=part) for part in range(AT_ONCE)]
    try:
        for each in parts:
            each.start()
        wait_until(
            lambda: not any(each.running for each in parts), "jars", seconds=600, progress=say
        )
        for each in parts:
            each.wait_end()
    finally:
        stop_all(parts)
    _compare(jars, cache)


def _compare(jars: Iterable[Jar], cache: Path) -> None:
    """See that each jar is the one that is listed, and remove it where it is not."""
    for jar in jars:
        file = ivy.cached(jar, cache)
        if (found := sha256_of(file)) != jar.sha256:
            file.unlink()
            raise ProgramError(
                f"{jar.organisation}:{jar.name}:{jar.revision} has the SHA-256 {found}, and "
                f"stack/jar_lists says {jar.sha256}: it was removed. Try again; if it differs "
                "again, the registry serves another jar than the one that was tested"
            )


def _install(jar_set: str, cache: Path, folder: Path) -> None:
    """Make the folder of a set, whole."""
    part = folder.with_name(f"{jar_set}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    for jar in read(jar_set):
        (part / jar.file).hardlink_to(ivy.cached(jar, cache))
    shutil.copy(list_file(jar_set), part / LIST)
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)
