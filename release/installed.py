"""``make installed``: installs the wheel as a user does, with Airflow and without constraints.

It imports the example DAGs by Airflow's own parser, runs the command, and prints the seconds.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from airflow_mm2_offsets import __version__
from release.archives import build
from release.checkout import Checkout
from release.components import pinned_versions

ROOT = Path(__file__).parent.parent
VENV = ROOT / "build" / "installed"
UV = str(Path(sys.executable).with_name("uv"))
EXTRAS = "airflow,cli"
PARSE = """
import sys
from pathlib import Path
import airflow, airflow_mm2_offsets
from packaging.version import Version
from airflow.dag_processing.dagbag import DagBag
from airflow_mm2_offsets.plugins.rest import Mm2OffsetsPlugin
folder = Path(airflow_mm2_offsets.__path__[0]) / "example_dags"
bag = DagBag(str(folder))
print(f"Airflow {airflow.__version__}: {len(bag.dags)} example DAGs, "
      f"{len(bag.import_errors)} import errors: {', '.join(sorted(bag.dags))}")
problems = [f"{file}: {error}" for file, error in bag.import_errors.items()]
if not bag.dags:
    problems.append(f"no DAG in {folder}")
if Version(airflow.__version__) < Version(sys.argv[1]):
    problems.append(f"the resolver took Airflow {airflow.__version__}, older than {sys.argv[1]} of "
                    "constraints.txt: an extra asks for what the newer one does not allow")
if not Mm2OffsetsPlugin.fastapi_apps:
    problems.append("the plugin has no REST API")
sys.exit("\\n".join(problems) or None)
"""


def main() -> None:
    """Build, install and run; end with the first program that fails."""
    pinned = pinned_versions((ROOT / "constraints.txt").read_text())
    with tempfile.TemporaryDirectory(prefix="installed-") as scratch:
        home = Path(scratch)
        begin = time.monotonic()
        files = build(Checkout(folder=ROOT), home / "build")
        (wheel,) = (name for name in files if name.endswith(".whl"))
        (home / wheel).write_bytes(files[wheel])
        begin = _say("wheel built", begin)
        shutil.rmtree(VENV, ignore_errors=True)
        _run(UV, "venv", "--quiet", "--python", sys.executable, str(VENV))
        python = str(VENV / "bin" / "python")
        _run(UV, "pip", "install", "--quiet", "--python", python, f"{home / wheel}[{EXTRAS}]")
        begin = _say(f"installed {wheel}[{EXTRAS}] without constraints", begin)
        _run(python, "-c", PARSE, pinned["apache-airflow"], home=home)
        begin = _say("example DAGs imported", begin)
        version = _run(str(VENV / "bin" / "airflow-mm2-offsets"), "--version", home=home)
        _say(f"the command says {version!r}", begin)
    if __version__ not in version:
        sys.exit(f"the command's version is {version!r}, the checkout's {__version__}")


def _run(*command: str, home: Path = ROOT) -> str:
    """Run a program outside the checkout, so that nothing of it is imported; return its output."""
    environment = os.environ | {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "PYTHONPATH": "",
    }
    done = subprocess.run(  # noqa: S603 - uv, and what it installed
        command, cwd=home, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    sys.stdout.write(done.stdout)
    if done.returncode:
        sys.exit(f"{' '.join(command[:3])} ended with {done.returncode}: see its message above")
    return done.stdout.strip()


def _say(what: str, begin: float) -> float:
    now = time.monotonic()
    sys.stdout.write(f"{now - begin:6.1f} s  {what}\n")
    sys.stdout.flush()
    return now


if __name__ == "__main__":
    main()
