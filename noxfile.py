"""The versions that the package works with, each in an environment of its own: ``make compat``.

Each session writes what it ran and what came of it into build/compat; benchmarks/versions.py makes
the table of docs/versions.md of that. ``make compat-ci`` runs the sessions with the tag ``ci``:
those of confluent-kafka and FastAPI, which need no cluster beside them.
"""

import platform
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import nox
from packaging.requirements import Requirement

from benchmarks.versions import FOUND, Ran, VersionResult, today
from stack import kdc
from tests.support.recording import RELEASES

nox.options.default_venv_backend = "uv"  # lowest() needs its resolver
nox.options.envdir = "build/nox"

PROJECT: dict[str, Any] = nox.project.load_toml("pyproject.toml")["project"]
PINNED = dict(
    line.lower().split("==")
    for line in Path("constraints.txt").read_text().splitlines()
    if "==" in line
)
TOOLS = (
    *("hypothesis", "jsonschema", "psutil", "pyyaml"),
    *("pytest", "pytest-timeout", "pytest-xdist", "testcontainers"),
    "sqlalchemy",  # the catalog of the Iceberg tables in tests
)
AIRFLOW_TOOLS = ("apache-airflow-providers-amazon", "s3fs", "moto", "flask", "statsd", "flask-cors")
PARALLEL = ("--numprocesses=2", "--dist=loadfile")
NEEDS_AIRFLOW = (
    *("dags", "docs", "fleet", "hooks", "job", "observability", "operators", "sensors"),
    *("plugins", "testing", "triggers"),
    *("archive/test_faces.py", "cli/test_command.py", "planning/test_options.py"),
    *("test_errors.py", "test_provider.py"),
)
"""The unit tests that need Airflow or PySpark."""
AIRFLOW_NEEDS = {"3.2.2": ("fastapi<0.151",)}
"""What a release of Airflow needs and does not say: its API server does not start otherwise."""
SPARK = tuple(f"{name}=={PINNED[name]}" for name in ("pyspark", "pyspark-client"))
HAS_GSSAPI = """
from airflow_mm2_offsets.kafka.client_properties.kerberos import check_build
check_build("GSSAPI")
"""
KAFKA_JAVASCRIPT = "@confluentinc/kafka-javascript@1.10.1"
EXTRAS = "api,archive,bulk,cli,delta,hudi,iceberg,msk"


@nox.session
@nox.parametrize(
    "python,airflow",
    [("3.11", "3.1.8"), ("3.11", "3.2.2"), ("3.11", "3.3.2"), ("3.12", "3.3.2"), ("3.13", "3.3.2")],
)
def airflow(session: nox.Session, airflow: str) -> None:
    """Run the unit tests and a whole failover on a release of Airflow."""
    needs = AIRFLOW_NEEDS.get(airflow, ())
    session.install("-e", ".[dev]", f"apache-airflow=={airflow}", *needs, *SPARK)
    ran = [_test(session, "unit tests", "tests/unit", *PARALLEL)]
    ran.append(_test(session, "a planned failover (make demo)", "tests/e2e/test_demo.py"))
    ran.append(_test(session, "the page, by a browser", "tests/integration/test_page.py"))
    _record(session, "Airflow", "apache-airflow", ran)


@nox.session(python="3.11", tags=["ci"])
@nox.parametrize("age", ["oldest", "newest"])
def kafka(session: nox.Session, age: str) -> None:
    """Run the tests of the Kafka client on the oldest confluent-kafka allowed, and the newest."""
    _install_but(session, "airflow-mm2-offsets[archive,msk]", "kafka", "confluent-kafka", age)
    folders = ("tests/unit/kafka", "tests/integration/kafka_client")
    _record(session, "confluent-kafka", "confluent-kafka", [_test(session, "its tests", *folders)])


@nox.session(python="3.11")
def kerberos(session: nox.Session) -> None:
    """Build a confluent-kafka that has Kerberos, and log in by tickets of a real KDC.

    Give the folder of a librdkafka release to build that one; else npm has a recent source. It
    needs a C compiler and the packages of docs/client-properties.md, and stack/kdc.py's.
    """
    if obstacle := kdc.obstacle():
        session.skip(obstacle)
    session.install("-c", "constraints.txt", "-e", ".[dev]")
    source = Path(session.posargs[0]) if session.posargs else _librdkafka(session)
    prefix = Path(session.virtualenv.location).resolve() / "librdkafka"
    with session.chdir(source):
        session.run_install("./configure", f"--prefix={prefix}", external=True)
        session.run_install("make", "-j2", "-C", "src", external=True)
        session.run_install("make", "-C", "src", "install", external=True)
    session.install(
        *("--reinstall", "--no-deps", "--no-cache", "--no-binary", "confluent-kafka"),
        f"confluent-kafka=={_librdkafka_version(source)}",
        env={
            "C_INCLUDE_PATH": str(prefix / "include"),
            "LIBRARY_PATH": str(prefix / "lib"),
            "LDFLAGS": f"-Wl,-rpath,{prefix / 'lib'}",
        },
    )
    session.run("python", "-c", HAS_GSSAPI)
    ran = [_test(session, "logins by Kerberos", "tests/integration/test_kerberos.py")]
    _record(session, "confluent-kafka, built with Kerberos", "confluent-kafka", ran)


@nox.session(python="3.11", tags=["ci"])
@nox.parametrize("age", ["oldest", "newest"])
def fastapi(session: nox.Session, age: str) -> None:
    """Run the tests of the REST API on the oldest FastAPI allowed, and the newest."""
    _install_but(session, "airflow-mm2-offsets[api,cli]", "api", "fastapi", age)
    tests = ("tests/unit/api", *sorted(map(str, Path("tests/integration").glob("test_server*.py"))))
    _record(session, "FastAPI", "fastapi", [_test(session, "its tests", *tests)])


@nox.session(python="3.11")
@nox.parametrize("pyspark", ["3.5.7", "4.0.0", PINNED["pyspark"]])
def spark(session: nox.Session, pyspark: str) -> None:
    """Stop jobs, read their checkpoints and translate columns on a release of Spark."""
    session.install("-c", "constraints.txt", "-e", ".[dev]")
    # PySpark and its client unpack into one folder: neither may stay there.
    session.run_install("uv", "pip", "uninstall", "pyspark", "pyspark-client")
    session.install(f"pyspark=={pyspark}")
    # The first session of a process decides on its jars: bulk's needs Kafka's.
    names = ("bulk", "checkpoint", "stop", "stop_queries")
    tests = [f"tests/integration/test_spark_{name}.py" for name in names]
    ran = _test(session, "jobs that stop, their checkpoints, translated columns", *tests)
    _record(session, "Spark, in the job", "pyspark", [ran])


@nox.session(python="3.11")
def recipes(session: nox.Session) -> None:
    """Run the recipes of dags/recipes with the newest providers; `make recipes` has fixed ones.

    Google's needs an older protobuf than constraints.txt has. With Kubernetes' installed, the Spark
    provider takes 4 s longer to import, in each process of every test.
    """
    # Without a floor the resolver may go back to a provider of years ago.
    names = ("cncf-kubernetes>=10", "google>=22")
    providers = (f"apache-airflow-providers-{name}" for name in names)
    session.install("-e", ".[dev]", *providers)
    ran = _test(session, "recipes of all platforms", "tests/integration/test_recipes.py")
    _record(session, "Platforms", "apache-airflow-providers-google", [ran])


@nox.session(python="3.11")
def lowest(session: nox.Session) -> None:
    """Run the unit tests without Airflow on the lowest versions that pyproject.toml allows."""
    _install_lowest(session, EXTRAS)
    others = (f"--ignore=tests/unit/{name}" for name in NEEDS_AIRFLOW)
    ran = _test(session, "unit tests without Airflow", "tests/unit", *others)
    _record(session, "all dependencies at their lowest", "airflow-mm2-offsets", [ran])


@nox.session(python="3.11")
def lowest_airflow(session: nox.Session) -> None:
    """Run the unit tests on the lowest versions that pyproject.toml allows, Airflow's included."""
    _install_lowest(session, f"airflow,{EXTRAS}", *SPARK, *_pinned(*AIRFLOW_TOOLS))
    ran = _test(session, "unit tests", "tests/unit", *PARALLEL)
    _record(session, "Airflow and all dependencies at their lowest", "apache-airflow", [ran])


@nox.session(venv_backend="none")
@nox.parametrize("release", RELEASES)
def mirror(session: nox.Session, release: str) -> None:
    """Record runs of a release of MirrorMaker 2, unless given ``kept``, and translate by them."""
    sets = FOUND / f"golden-{release}"
    if "kept" not in session.posargs:
        shutil.rmtree(sets, ignore_errors=True)
        recording = ("-m", "tests.support.recording", "--out", str(sets), release)
        session.run(sys.executable, *recording)
    tests = ("tests/unit/core/test_golden.py", "-k", f"mm2-{release}")
    ran = _test(session, "runs recorded, and translated", *tests, env={"GOLDEN_SETS": str(sets)})
    _record(session, "MirrorMaker 2", release, [ran])


def _install_but(session: nox.Session, package: str, extra: str, name: str, age: str) -> None:
    """Install the versions of constraints.txt, but for one distribution."""
    wanted = package.replace("airflow-mm2-offsets", ".")
    session.install("-c", "constraints.txt", "-e", wanted, *TOOLS)
    if age == "newest":
        session.install("--upgrade", name)
    else:
        session.install(f"{name}=={_floor(extra, name)}")


def _install_lowest(session: nox.Session, extras: str, *others: str) -> None:
    tools = _pinned(*TOOLS)
    session.install("--resolution=lowest-direct", "-e", f".[{extras}]", *tools, *others)


def _librdkafka(session: nox.Session) -> Path:
    """Return a source of librdkafka: Confluent's package for JavaScript ships one."""
    folder = Path(session.virtualenv.location).resolve() / "source"
    if not folder.exists():
        folder.mkdir()
        with session.chdir(folder):
            session.run_install("npm", "pack", "--silent", KAFKA_JAVASCRIPT, external=True)
        (archive,) = folder.glob("*.tgz")
        shutil.unpack_archive(archive, folder, filter="data")
    return folder / "package" / "deps" / "librdkafka"


def _librdkafka_version(source: Path) -> str:
    """Return the version of a source; the confluent-kafka of the same number goes with it."""
    header = (source / "src" / "rdkafka.h").read_text()
    found = re.search(r"define RD_KAFKA_VERSION 0x(..)(..)(..)ff", header)
    if found is None:
        raise ValueError(f"{source}/src/rdkafka.h defines no version of a release; give another")
    return ".".join(str(int(number, 16)) for number in found.groups())


def _floor(extra: str, name: str) -> str:
    """Return the lowest version of a distribution that an extra allows."""
    found = (Requirement(line) for line in PROJECT["optional-dependencies"][extra])
    limits = next(each.specifier for each in found if each.name == name)
    return next(limit.version for limit in limits if limit.operator == ">=")


def _pinned(*names: str) -> list[str]:
    return [f"{name}=={PINNED[name]}" for name in names]


def _test(
    session: nox.Session, what: str, *arguments: str, env: dict[str, str] | None = None
) -> Ran:
    report = FOUND / f"{_file_name(session)}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    # Other releases warn of other things: warnings are errors on the pinned versions alone.
    python = "python" if session.python else sys.executable
    command = [python, "-m", "pytest", "-q", "-W", "default", f"--junitxml={report}", *arguments]
    session.run(*command, env=env, success_codes=range(256))
    return Ran.read(what, report)


def _record(session: nox.Session, what: str, package: str, ran: list[Ran]) -> None:
    code = f"from importlib.metadata import version; print(version({package!r}))"
    release = package[0].isdigit()
    installed = package if release else session.run("python", "-c", code, silent=True)
    if installed is None:
        return  # as with --install-only
    python = str(session.python or platform.python_version().rpartition(".")[0])
    version = str(installed).strip()
    result = VersionResult(what=what, version=version, python=python, ran=tuple(ran), date=today())
    result.write(FOUND / f"{_file_name(session)}.json")
    session.log(str(result))
    if not result.passed:
        session.error(str(result))


def _file_name(session: nox.Session) -> str:
    return "-".join(re.findall(r"[\w.]+", session.name))
