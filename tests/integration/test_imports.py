"""What an import loads; each test starts a Python process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

import airflow_mm2_offsets
from airflow_mm2_offsets.cli.app import app
from airflow_mm2_offsets.cli.lazy import LazyGroup
from airflow_mm2_offsets.job import py_files
from tests.unit.dags.dags_folder import FILES

COMMANDS = [
    [name, *below]
    for name, entry in app.entries.items()
    for below in ([[each] for each in entry.entries] if isinstance(entry, LazyGroup) else [[]])
]

PROGRAM = """
import sys
before = set(sys.modules)
sys.modules.update(airflow=None, confluent_kafka=None)
from airflow_mm2_offsets.core import *
new = {name.partition(".")[0] for name in set(sys.modules) - before}
ours = {"airflow_mm2_offsets", "airflow", "confluent_kafka"}
print(*sorted(new - set(sys.stdlib_module_names) - ours))
"""


def test_the_core_imports_the_standard_library_alone() -> None:
    """With Airflow and confluent-kafka absent all its names import, and load no other package."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == ""


def test_a_dag_file_loads_neither_pyarrow_nor_numpy() -> None:
    """The imports of a DAG file, which Airflow parses every few seconds, stay light."""
    program = (
        "import sys, airflow_mm2_offsets.planning.plan, airflow_mm2_offsets.archive;"
        "print(*sorted({'numpy', 'pyarrow'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == ""


COMMAND = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
from airflow_mm2_offsets.cli import main
sys.argv[0] = "airflow-mm2-offsets"
main()
"""
HEAVY = {
    *("airflow", "asyncio", "confluent_kafka", "cryptography", "fastapi", "fsspec", "httpx"),
    *("numpy", "pandas", "pyarrow", "pydantic", "pyspark", "rich", "typer"),
    *("upath", "uvicorn", "yaml"),
    *(f"airflow_mm2_offsets.{room}" for room in ("archive.store", "clusters", "config", "kafka")),
    *(f"airflow_mm2_offsets.{room}" for room in ("core.index", "planning.plan", "readiness.run")),
    *(f"airflow_mm2_offsets.{room}" for room in ("core.rules", "doctor", "spark", "storage")),
}
"""What takes a tenth of a second, or brings what does: only a command that runs may load it."""


@pytest.mark.parametrize(
    "arguments",
    [["--version"], ["-h"], ["help", "archive"], *([*each, "--help"] for each in COMMANDS)],
    ids=" ".join,
)
def test_the_help_loads_nothing_heavy(arguments: list[str]) -> None:
    """Version and help of each command load nothing that only a running command needs."""
    shown = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments], capture_output=True, text=True, check=True
    )
    assert "airflow-mm2-offsets" in shown.stdout
    assert HEAVY & set(shown.stderr.split()) == set()


PARSE = """
import sys
did = []
def hook(event, args):
    if event in ("socket.connect", "sqlite3.connect"):
        did.append(f"{event} {args}")
    elif event == "open" and set(str(args[1])) & set("wax+") and args[0] != "/dev/null":
        did.append(f"open {args[0]}")
import airflow.sdk  # what every DAG imports
sys.addaudithook(hook)
import json, runpy, time
began = time.monotonic()
for path in sys.argv[1:]:
    runpy.run_path(path)
heavy = {"pyspark", "pyarrow", "pandas", "numpy"} & set(sys.modules)
print(json.dumps({"did": did, "heavy": sorted(heavy), "seconds": time.monotonic() - began}))
"""


def test_parsing_is_cheap(tmp_path: Path) -> None:
    """Parsing asks no database and no network, writes nothing, and imports nothing heavy."""
    settings = {
        "AIRFLOW_HOME": str(tmp_path),
        "AIRFLOW__CORE__UNIT_TEST_MODE": "True",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(tmp_path),  # what an earlier run has left there would hide a write
    }
    run = subprocess.run(
        [sys.executable, "-c", PARSE, *map(str, FILES)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | settings,
    )
    parsed = json.loads(run.stdout.splitlines()[-1])
    assert parsed["did"] == []
    assert parsed["heavy"] == []
    assert parsed["seconds"] < 10  # some 0.6 s; the DAG processor gives up after 30


def test_the_stop_control_of_the_installed_package() -> None:
    """The stop control has one import path and loads PySpark on first use; py_files needs none."""
    script = (
        "import sys\n"
        "from airflow_mm2_offsets import job\n"
        "job.py_files()\n"
        "assert 'pyspark' not in sys.modules\n"
        "from airflow_mm2_offsets.job import JobMovedError, StopControl\n"
        "assert StopControl.__module__ == 'airflow_mm2_offsets.job.stop.control'\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    with pytest.raises(ImportError, match="Missing"):
        from airflow_mm2_offsets.job import Missing  # noqa: F401, PLC0415


PACKAGE = Path(airflow_mm2_offsets.__file__).parent


TRANSLATE = """
import airflow_mm2_offsets.core as core
print(core.SyncIndex().extended({("orders", 0): [(1, 0), (3, 2)]}).translate("orders", 0, 3).target)
print(core.__file__)
"""


def run(code: str, *path: Path | str) -> list[str]:
    """Run Python with nothing of this package on its path but what is given."""
    paths = "".join(f"sys.path.insert(0, {str(each)!r}); " for each in reversed(path))
    command = (sys.executable, "-ISc", f"import sys; {paths}\n{code}")
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def test_core_is_imported_from_the_zip() -> None:
    """Core is imported from the zip alone, with nothing but the standard library."""
    target, origin = run(TRANSLATE, py_files())
    assert target == "2"
    assert origin.startswith(py_files())


def test_the_zip_needs_no_more_than_pyspark() -> None:
    """The whole job side is imported from the zip, by the path of the installed package."""
    names = "JobMovedError, StopControl, decode_syncs, segments, translate"
    script = (
        f"from airflow_mm2_offsets.job import {names}\n"
        "from airflow_mm2_offsets.job.reconcile import main\n"
        "print(StopControl.__module__, main.__file__)"
    )
    packages = Path(pyspark.__file__).parents[1]
    module, origin = run(script, py_files(), packages)
    assert module == "airflow_mm2_offsets.job.stop.control"
    assert origin.startswith(py_files())


def test_the_zip_hides_nothing_of_an_installed_package() -> None:
    """Modules that the zip lacks come from the installed package; core comes from the zip."""
    installed = "import airflow_mm2_offsets.spark as spark; print(spark.__file__)"
    (origin,) = run(installed, py_files(), PACKAGE.parent)
    assert Path(origin) == PACKAGE / "spark" / "__init__.py"
    _, origin = run(TRANSLATE, py_files(), PACKAGE.parent)
    assert origin.startswith(py_files())
