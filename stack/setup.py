"""Makes the virtual environment from constraints.txt: ``python3 -m stack.setup demo`` or ``dev``.

The Makefile calls it with the machine's own Python, so it needs the standard library alone. It
installs an extra of pyproject.toml with uv, which takes a fifth of pip's time. uv does not read
pip's settings: pip follows where uv fails, as where only pip knows the index.
"""

import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
UV = VENV / "bin" / "uv"
UNPACKED = "--config-settings-package=pyspark:--build-option=--compression=stored"
"""PySpark comes as a source archive, of which uv builds a wheel that it unpacks at once. To
compress the 460 MB of its jars in between would take most of the time."""
CONSTRAINTS = ("--constraint", "constraints.txt")
OLDEST = (3, 11)
"""The oldest Python that Airflow's packages are pinned for."""
EXTRAS = {
    "demo": "the packages of the demo (once, about a minute)",
    "dev": "the linters and the test tools (once, half a minute)",
}
"""Each extra of pyproject.toml that is installed here, and what messages call it."""
REPORT_SECONDS = 10.0


class SetupError(RuntimeError):
    """The environment can't be made; the message says what to do."""


def main(arguments: Sequence[str]) -> int:
    """Install one extra and leave its stamp in the environment; return the exit code."""
    (extra,) = arguments
    try:
        check_machine()
        say(f"installing {EXTRAS[extra]}")
        began = time.monotonic()
        make_environment()
        install(extra)
    except SetupError as error:
        say(f"FAILED: {error}")
        return 1
    say(f"installed in {time.monotonic() - began:.0f} s")
    return 0


def check_machine(version: tuple[int, int] = sys.version_info[:2]) -> None:
    """See that Python is new enough and that there is a Java.

    Raises:
        SetupError: One of them is not.
    """
    if version < OLDEST:
        found = ".".join(map(str, version))
        raise SetupError(
            f"Python 3.11 or newer is needed, this is {found}: make PYTHON=python3.11 ..."
        )
    if not _java_runs():
        raise SetupError("Java 17 or newer is needed: install a JRE and put java on the PATH")


def _java_runs() -> bool:
    # A Mac without Java has a program of that name, which only says so.
    java = shutil.which("java")
    if java is None:
        return False
    return subprocess.run([java, "-version"], capture_output=True, check=False).returncode == 0  # noqa: S603


def make_environment() -> None:
    """Make the environment with uv in it, unless it is there."""
    if not PYTHON.exists():
        run("making the environment", [sys.executable, "-m", "venv", VENV])
    if not UV.exists():
        run("installing uv", [*_pip(), *CONSTRAINTS, "uv"])


def install(extra: str) -> None:
    """Install the package with one extra, by uv or else by pip."""
    packages = [*CONSTRAINTS, "--editable", f".[{extra}]"]
    try:
        options = (UV, "pip", "install", "--quiet", "--python", PYTHON, UNPACKED)
        run("uv installs", [*options, *packages])
    except SetupError as error:
        say(f"{error}; pip tries, which takes some minutes")
        run("pip installs", [*_pip(), *packages])


def run(what: str, command: Sequence[str | Path]) -> None:
    """Run a program to its end, and say every ten seconds that it still runs.

    Raises:
        SetupError: It failed.
    """
    began = time.monotonic()
    with subprocess.Popen(command, cwd=ROOT) as process:  # noqa: S603 - pip and uv
        while True:
            try:
                code = process.wait(timeout=REPORT_SECONDS)
            except subprocess.TimeoutExpired:
                say(f"{what}: {time.monotonic() - began:.0f} s")
            else:
                break
    if code:
        raise SetupError(f"{what}: ended with code {code}")


def say(line: str) -> None:
    """Print a line with the time, as the demo does."""
    print(f"{time.strftime('%H:%M:%S', time.gmtime())}  {line}", flush=True)


def _pip() -> list[str | Path]:
    return [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
