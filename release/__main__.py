"""``make release``: writes all files of a release into build/release, and checks them.

``python -m release FOLDER`` writes elsewhere.
"""

import sys
import tempfile
import time
import zipfile
from hashlib import sha256
from importlib.metadata import PathDistribution
from pathlib import Path

from airflow_mm2_offsets import __version__
from release import archives, changelog, contents
from release.checkout import Checkout
from release.errors import ReleaseError
from release.sbom_file import sbom_file

ROOT = Path(__file__).parent.parent
BASE = f"airflow_mm2_offsets-{__version__}"


def main() -> None:
    """Write the release, or say in one line why there is none."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "release"
    begin = time.monotonic()
    try:
        files = _files(Checkout(folder=ROOT))
    except ReleaseError as error:
        sys.exit(f"no release: {error}")
    _write(folder, files)
    print(f"{folder}, in {time.monotonic() - begin:.0f} s:")
    for name in sorted(files):
        print(f"  {name}  {len(files[name]):,} bytes")


def _files(checkout: Checkout) -> dict[str, bytes]:
    """Return the files of the release by name."""
    checkout.require_clean()
    rehearsal = changelog.is_rehearsal(checkout.tags(), __version__)
    if rehearsal:
        print(f"a rehearsal: the commit has no tag v{__version__}")
    text = changelog.section((ROOT / "CHANGELOG.md").read_text(), __version__, rehearsal=rehearsal)
    files = archives.build_twice(checkout)
    print("built twice: the bytes are the same")
    wheel, sdist = (_archive(files, suffix) for suffix in (".whl", ".tar.gz"))
    committed = checkout.files()
    contents.check_wheel(wheel, committed, metadata_folder=f"{BASE}.dist-info")
    contents.check_sdist(sdist, committed, folder=BASE)
    print("wheel and sdist hold the commit's files, and no others")
    files[f"{BASE}.cdx.json"] = sbom_file(_metadata(wheel), checkout)
    files[f"CHANGELOG-{__version__}.md"] = text.encode()
    sums = (f"{sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))
    return files | {"SHA256SUMS": "".join(sums).encode()}


def _archive(files: dict[str, bytes], suffix: str) -> bytes:
    (name,) = (name for name in files if name.endswith(suffix))
    return files[name]


def _metadata(wheel: bytes) -> PathDistribution:
    """Return the metadata of a wheel as importlib reads them."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the archive reads it later
    file.write(wheel)
    return PathDistribution(zipfile.Path(zipfile.ZipFile(file), f"{BASE}.dist-info/"))


def _write(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)


main()
