"""Makes the bill of materials of a wheel, and has CycloneDX's own library check it."""

import json
import subprocess
import sys
from importlib.metadata import Distribution
from pathlib import Path

from release.archives import TOOLS
from release.checkout import Checkout
from release.components import closure, pinned_versions
from release.errors import ReleaseError
from release.sbom import SPEC_VERSION, bill

NOT_FOR_USERS = {"dev"}
"""Extras of this repository's own work."""
LIBRARY = "cyclonedx-python-lib[json-validation]"
CHECK = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
version = SchemaVersion.from_version(sys.argv[1])
sys.exit(str(JsonStrictValidator(version).validate_str(sys.stdin.read()) or "") or None)
"""


def sbom_file(wheel: Distribution, checkout: Checkout) -> bytes:
    """Return the bill of materials of a wheel with the extras that users install.

    Args:
        wheel: Its metadata.
        checkout: It has the constraints that were installed.

    Raises:
        ReleaseError: A license is missing, a version is not that of the constraints, or the
            document breaks the schema.
    """
    extras = frozenset(wheel.metadata.get_all("Provides-Extra", [])) - NOT_FOR_USERS
    pins = pinned_versions((checkout.folder / "constraints.txt").read_text())
    root, *others = closure(wheel, extras=extras, pins=pins)
    document = bill(root, others, commit=checkout.commit(), seconds=checkout.commit_seconds())
    text = json.dumps(document, indent=1) + "\n"
    _check(text, checkout.folder)
    print(f"bill of materials: {len(others)} components, valid CycloneDX {SPEC_VERSION}")  # noqa: T201
    return text.encode()


def _check(text: str, folder: Path) -> None:
    uv = str(Path(sys.executable).with_name("uv"))
    command = [
        uv,
        "tool",
        "run",
        "--quiet",
        "--constraints",
        str(folder / TOOLS),
        "--from",
        LIBRARY,
    ]
    done = subprocess.run(  # noqa: S603 - the project's own uv
        [*command, "python", "-c", CHECK, SPEC_VERSION],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ReleaseError(f"the bill of materials is not valid: {done.stderr.strip()}")
