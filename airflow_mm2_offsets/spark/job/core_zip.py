"""Packs this package's core for a Spark job, where the package need not be installed."""

import os
import stat
import tempfile
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile, ZipInfo

_PACKAGE = Path(__file__).parents[2]
_EXTEND = """
# Where the package is installed as well, the rest of it is found there.
__path__ = __import__("pkgutil").extend_path(__path__, __name__)
"""


def core_zip() -> Path:
    """Return a zip to import ``airflow_mm2_offsets.core`` from; its name changes with its bytes.

    It stays in the temporary folder, in one that only this user may write to, since a shell may
    hand it to ``spark-submit`` when this process has ended.
    """
    content = _zipped()
    path = _folder() / f"mm2_offsets_core-{sha256(content).hexdigest()[:16]}.zip"
    if not path.exists():
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(content)
        Path(file.name).replace(path)
    return path


def _zipped() -> bytes:
    """Return the zip's bytes: the same for the same sources."""
    written = BytesIO()
    with ZipFile(written, "w") as archive:
        for path in (_PACKAGE / "__init__.py", _PACKAGE / "errors.py", *_core()):
            text = path.read_text("utf-8")
            if path.parent == _PACKAGE and path.stem == "__init__":
                text += _EXTEND
            name = path.relative_to(_PACKAGE.parent).as_posix()
            archive.writestr(ZipInfo(name), text)
    return written.getvalue()


def _core() -> list[Path]:
    return sorted((_PACKAGE / "core").rglob("*.py"))


def _folder() -> Path:
    """Return a folder of this user's; another one where somebody else could write to it."""
    folder = Path(tempfile.gettempdir(), f"airflow-mm2-offsets-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    private = found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077
    if stat.S_ISDIR(found.st_mode) and private:
        return folder
    return Path(tempfile.mkdtemp(prefix="airflow-mm2-offsets-"))
