"""Packs what a Spark job needs of this package, where the package need not be installed."""

from __future__ import annotations

import os
import stat
import tempfile
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile, ZipInfo

_PACKAGE = Path(__file__).parents[1]
_ROOMS = ("job", "core")
_INIT = """\
# Where the package is installed as well, the rest of it is status there.
__path__ = __import__("pkgutil").extend_path(__path__, __name__)
"""


def py_files() -> str:
    """Return the path of a zip to give to ``spark-submit --py-files``.

    The job imports ``airflow_mm2_offsets.job`` from it, as it does where this package is installed.
    The zip's name changes with its bytes. It stays in the temporary folder, in one that only this
    user may write to, since a shell may hand it to ``spark-submit`` when this process has ended.
    """
    content = _zipped()
    path = _folder() / f"airflow_mm2_offsets-{sha256(content).hexdigest()[:16]}.zip"
    if not path.exists():
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(content)
        Path(file.name).replace(path)
    return str(path)


def _zipped() -> bytes:
    """Return the zip's bytes: the same for the same sources."""
    paths = [_PACKAGE / "errors.py", _PACKAGE / "logins.py"]
    for room in _ROOMS:
        paths += sorted((_PACKAGE / room).rglob("*.py"))
    written = BytesIO()
    with ZipFile(written, "w") as archive:
        archive.writestr(ZipInfo(f"{_PACKAGE.name}/__init__.py"), _INIT)
        for path in paths:
            name = path.relative_to(_PACKAGE.parent).as_posix()
            archive.writestr(ZipInfo(name), path.read_bytes())
    return written.getvalue()


def _folder() -> Path:
    """Return a folder of this user's; another one where somebody else could write to it."""
    folder = Path(tempfile.gettempdir(), f"airflow-mm2-offsets-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    private = status.st_uid == os.getuid() and not stat.S_IMODE(status.st_mode) & 0o077
    if stat.S_ISDIR(status.st_mode) and private:
        return folder
    return Path(tempfile.mkdtemp(prefix="airflow-mm2-offsets-"))
