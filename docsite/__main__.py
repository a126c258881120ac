"""Build the documentation site into build/site; every warning is an error.

``make docs`` runs it in build/docs-venv: Zensical and mkdocstrings are not part of ``make setup``.
"""

import subprocess
import sys

from docsite.pages import ROOT, write_sources

SOURCES = ROOT / "build" / "docs"
"""What ``mkdocs.yml`` names as ``docs_dir``."""


def main() -> int:
    """Write the sources, build the site, and return the exit code."""
    write_sources(SOURCES)
    build = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--clean"],
        cwd=ROOT,
        check=False,
        stderr=subprocess.PIPE,
        text=True,
    )
    sys.stderr.write(build.stderr)
    # What mkdocstrings finds in docstrings is no warning of Zensical's.
    return build.returncode or int("griffe" in build.stderr)


if __name__ == "__main__":
    sys.exit(main())
