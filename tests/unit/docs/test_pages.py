"""How the pages of the repository become the sources of the site."""

from pathlib import Path, PurePosixPath

import pytest

from docsite.pages import PROJECT_PAGES, place_of, with_site_links, write_sources

TITLES = {PurePosixPath("drill.md"): "A drill"}


@pytest.mark.parametrize(
    ("file", "place"),
    [
        ("README.md", "index.md"),
        ("SECURITY.md", "project/SECURITY.md"),
        ("docs/drill.md", "drill.md"),
        ("docs/pictures/stop.svg", "pictures/stop.svg"),
        ("docs/flink/Read.java", "flink/Read.java.md"),
        ("dags/mm2_drill.py", "files/dags/mm2_drill.py.md"),
        ("dags/recipes", "files/dags/recipes.md"),
        ("benchmarks/results/speed.svg", "files/benchmarks/results/speed.svg"),
    ],
)
def test_each_file_has_a_place(file: str, place: str) -> None:
    """Pages of docs/ keep their paths; code that pages link to becomes a page, pictures do not."""
    assert place_of(PurePosixPath(file)) == PurePosixPath(place)


@pytest.mark.parametrize(
    ("page", "text", "moved"),
    [
        ("docs/a.md", "[code](../dags/x.py)", "[code](files/dags/x.py.md)"),
        ("docs/a.md", "[why](b.md#c)", "[why](b.md#c)"),
        ("docs/a.md", "[drill.md](drill.md#limits)", "[A drill](drill.md#limits)"),
        ("docs/reference/a.md", "[drill.md](../drill.md)", "[A drill](../drill.md)"),
        ("SECURITY.md", "[x](docs/a.md)", "[x](../a.md)"),
        ("docs/a.md", "[x](https://kafka.apache.org)", "[x](https://kafka.apache.org)"),
        ("docs/a.md", "[x](#below)", "[x](#below)"),
        ("docs/a.md", "`table[0](../x.py)`", "`table[0](../x.py)`"),
        (
            "docs/a.md",
            "```py\nf[0](../x.py)\n```\n[x](../x.py)",
            "```py\nf[0](../x.py)\n```\n[x](files/x.py.md)",
        ),
    ],
)
def test_links_lead_to_places_of_the_site(page: str, text: str, moved: str) -> None:
    """Links to files lead to their pages, a page is named by its title, and code stays as it is."""
    assert with_site_links(PurePosixPath(page), text, TITLES) == moved


def test_what_pages_link_to_is_written(tmp_path: Path) -> None:
    """A file that a page links to becomes a page with its text; a folder lists its files."""
    root = tmp_path / "repository"
    for folder in ("docs", "dags/recipes"):
        (root / folder).mkdir(parents=True)
    for page in PROJECT_PAGES:
        (root / page).write_text(f"# {page}\n")
    (root / "mkdocs.yml").write_text("nav: [{A: a.md}]\n")
    (root / "docs/a.md").write_text("[x](../dags/x.py) [y](../dags/recipes) [z](../README.md)\n")
    (root / "dags/x.py").write_text("print(1)\n")
    (root / "dags/recipes/emr.py").write_text("print(2)\n")
    (root / "dags/unlinked.py").write_text("print(3)\n")
    site = tmp_path / "site"
    (site / "old").mkdir(parents=True)
    write_sources(site, root)
    assert sorted(str(file.relative_to(site)) for file in site.rglob("*.md")) == [
        "a.md",
        "files/dags/recipes.md",
        "files/dags/recipes/emr.py.md",
        "files/dags/x.py.md",
        "project/CHANGELOG.md",
        "project/CONTRIBUTING.md",
        "project/SECURITY.md",
    ]
    assert "\nprint(1)\n" in (site / "files/dags/x.py.md").read_text()
    assert "[emr.py](recipes/emr.py.md)" in (site / "files/dags/recipes.md").read_text()
    assert not (site / "old").exists()
