"""The site's sources, made of the repository's pages; ``__main__`` and the tests call it.

Pages of ``docs/`` link to files outside of it, as GitHub shows them. A site has no such files, so
each one becomes a page, too, and the links lead there.
"""

import re
import shutil
from os.path import normpath, relpath
from pathlib import Path, PurePosixPath

from docsite.navigation import Titles, read_titles

ROOT = Path(__file__).parents[1]
FRONT = PurePosixPath("README.md")
"""GitHub's front page. The site has ``docs/index.md`` in its place."""
PROJECT_PAGES = tuple(map(PurePosixPath, ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")))
"""Pages beside ``docs/`` that the site has, too."""
_LINK = re.compile(
    r"^(?P<fence>```+).*?^(?P=fence)$|`[^`\n]+`"  # code: what looks like a link there is none
    r"|\[(?P<text>[^][]*)\]\((?!https?:|mailto:|#)(?P<file>[^)#\s]+)(?P<anchor>[^)]*)\)",
    re.MULTILINE | re.DOTALL,
)
_COPIED = frozenset({".css", ".png", ".svg"})
"""Kinds of files that the site has as they are; of others it shows the text."""
_HIDDEN = "---\nsearch:\n  exclude: true\n---\n"


def place_of(file: PurePosixPath) -> PurePosixPath:
    """Return where a file or folder of the repository lies in the site's sources."""
    if file == FRONT:
        return PurePosixPath("index.md")
    if file in PROJECT_PAGES:
        return "project" / file
    is_page = file.suffix in {".md", *_COPIED}
    shown = file if is_page else file.with_name(f"{file.name}.md")
    return shown.relative_to("docs") if file.parts[0] == "docs" else "files" / shown


def links_of(page: PurePosixPath, text: str) -> list[PurePosixPath]:
    """Return the files and folders of the repository that a page's text links to."""
    return [_resolved(page, link["file"]) for link in _LINK.finditer(text) if link["file"]]


def with_site_links(page: PurePosixPath, text: str, titles: Titles) -> str:
    """Return a page's text with the site's links.

    Pages name other pages by their files, as ``[drill.md](drill.md)``. The site has no such files:
    there it is the page's title.
    """

    def moved(link: re.Match[str]) -> str:
        if not link["file"]:
            return link[0]
        place = place_of(_resolved(page, link["file"]))
        is_file_name = link["text"] == PurePosixPath(link["file"]).name
        shown = titles.get(place, link["text"]) if is_file_name else link["text"]
        return f"[{shown}]({relpath(place, place_of(page).parent)}{link['anchor']})"

    return _LINK.sub(moved, text)


def write_sources(folder: Path, root: Path = ROOT) -> None:
    """Write the site's sources: all of ``docs/``, the project's pages, and what these link to."""
    shutil.rmtree(folder, ignore_errors=True)
    docs = [file for file in (root / "docs").rglob("*") if file.is_file()]
    waiting = [PurePosixPath(file.relative_to(root)) for file in docs] + [*PROJECT_PAGES]
    titles = read_titles(root)
    written = {FRONT}
    while waiting:
        if (file := waiting.pop()) not in written:
            written.add(file)
            waiting += _write(file, root, folder, titles)


def _write(file: PurePosixPath, root: Path, folder: Path, titles: Titles) -> list[PurePosixPath]:
    """Write a file or folder of the repository as a page, and return what it links to."""
    source = root / file
    target = folder / place_of(file)
    target.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix in _COPIED:
        shutil.copyfile(source, target)
        return []
    if source.is_dir():
        target.write_text(_listing(file, source), encoding="utf-8")
        return [PurePosixPath(each.relative_to(root)) for each in _files(source)]
    text = source.read_text(encoding="utf-8")
    if file.suffix != ".md":
        target.write_text(_shown(file, text), encoding="utf-8")
        return []
    target.write_text(with_site_links(file, text, titles), encoding="utf-8")
    return links_of(file, text)


def _files(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if each.is_file())


def _listing(file: PurePosixPath, folder: Path) -> str:
    """Return the page of a folder: links to its files."""
    lines = [f"- [{each.name}]({file.name}/{each.name}.md)" for each in _files(folder)]
    return "\n".join([f"{_HIDDEN}# {file}\n", *lines, ""])


def _shown(file: PurePosixPath, text: str) -> str:
    """Return the page that shows a file's text."""
    return f"{_HIDDEN}# {file}\n\n````{file.suffix[1:]}\n{text.rstrip()}\n````\n"


def _resolved(page: PurePosixPath, link: str) -> PurePosixPath:
    return PurePosixPath(normpath(page.parent / link))
