"""The documentation site: its navigation, its links, its pictures, and what its reference names."""

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path, PurePosixPath
from pkgutil import walk_packages
from types import ModuleType
from urllib.parse import urlsplit

import pytest
from airflow.sdk import BaseHook, BaseOperator

from airflow_mm2_offsets import core, hooks, job, operators, sensors, task_groups, testing
from airflow_mm2_offsets.task_groups.drill import drill_tasks
from airflow_mm2_offsets.task_groups.fleet import fleet_tasks
from docsite.navigation import read_titles
from docsite.pages import PROJECT_PAGES, ROOT, links_of, place_of

PAGES = [
    PurePosixPath(page.relative_to(ROOT))
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
]
TEXTS = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
REFERENCE = "".join(text for page, text in TEXTS.items() if page.is_relative_to("docs/reference"))
DOCUMENTED = re.findall(r"^::: (\S+)$", REFERENCE, re.MULTILINE)
PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))


def test_the_navigation_has_each_page_once() -> None:
    """Each page under docs/, and each of the project's, is in the navigation, and nothing else."""
    pages = [place_of(page) for page in PAGES if page.parts[0] == "docs"]
    assert sorted(read_titles(ROOT)) == sorted([*pages, *map(place_of, PROJECT_PAGES)])
    written = re.findall(
        r"^ +- .*?([\w./-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE
    )
    assert len(written) == len(read_titles(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_to_a_file(page: PurePosixPath) -> None:
    """Each relative link of a page names a file or folder of the repository."""
    assert [file for file in links_of(page, TEXTS[page]) if not (ROOT / file).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_anchors_lead_to_a_heading(page: PurePosixPath) -> None:
    """After ``#``, each link names a heading of that page, as GitHub and the site spell it."""
    for link in re.findall(r"\]\((?!https?:)([^)\s]*#[^)\s]+)\)", TEXTS[page]):
        path, anchor = urlsplit(link).path, urlsplit(link).fragment
        (linked,) = links_of(page, f"[x]({path})") if path else (page,)
        assert anchor in _anchors(TEXTS[linked]), link


def _anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, and of what a reference page documents."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r"^::: (\S+)$", text, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_pictures_have_a_text(page: PurePosixPath) -> None:
    """Each picture says in words what it shows, for readers who do not see it."""
    for text in re.findall(r"!\[([^]]*)\]\(", TEXTS[page]):
        assert len(text) > 20, page


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_pictures_are_drawn_for_light_and_dark(picture: Path) -> None:
    """Each picture has colours for both schemes, no unknown class, a title and a description."""
    text = picture.read_text(encoding="utf-8")
    light, dark = text.split("@media (prefers-color-scheme: dark)")
    used = {name for names in re.findall(r'class="([^"]+)"', text) for name in names.split()}
    coloured = used - {"bold", "mid", "end"}
    for style in (light, dark.split("</style>")[0]):
        assert {name for name in coloured if f".{name} {{" not in style} == set()
    assert "<title" in text
    assert "<desc" in text


def _public(room: ModuleType, base: type, endings: tuple[str, ...]) -> Iterator[str]:
    """Yield the classes of a room that users take, by their full names."""
    for found in walk_packages(room.__path__, f"{room.__name__}."):
        module = import_module(found.name)
        for name, kind in inspect.getmembers(module, inspect.isclass):
            is_own = kind.__module__ == found.name and name.endswith(endings)
            if is_own and issubclass(kind, base) and not inspect.isabstract(kind):
                yield f"{found.name}.{name}"


def _exported(*rooms: ModuleType) -> Iterator[str]:
    """Yield what rooms export, by its full names."""
    for room in rooms:
        yield from (f"{room.__name__}.{name}" for name in room.__all__)


PUBLIC = [
    *_public(operators, BaseOperator, ("Operator",)),
    *_public(sensors, BaseOperator, ("Sensor",)),
    *_public(hooks, BaseHook, ("Hook",)),
    *(name for name in _exported(task_groups, core, job, testing) if "OperatorFactory" not in name),
    *(f"{each.__module__}.{each.__name__}" for each in (drill_tasks, fleet_tasks)),
]


def test_public_names_are_found() -> None:
    """The search of this file finds names of every kind."""
    for ending in ("TranslateOffsetsOperator", "Mm2ReplicatedSensor", "Mm2OffsetHook", "SyncIndex"):
        assert any(name.endswith(f".{ending}") for name in PUBLIC), ending


@pytest.mark.parametrize("name", PUBLIC)
def test_the_reference_has_each_public_name(name: str) -> None:
    """What users import has its docstring in the reference, and a line in a table there."""
    assert name in DOCUMENTED
    assert re.search(
        rf"^\| \[`{name.rpartition('.')[2]}`\]\(#{re.escape(name)}\) \| .+ \|$",
        REFERENCE,
        re.MULTILINE,
    )


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_reference_names_what_exists(name: str) -> None:
    """Each name of the reference can be imported."""
    module, _, member = name.rpartition(".")
    assert hasattr(import_module(module), member)
