"""What a wheel may bring along, and how CycloneDX is told."""

from importlib.metadata import PathDistribution, distributions, version
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from release.components import Component, closure, component, pinned_versions
from release.errors import ReleaseError
from release.sbom import bill

APPROVED = "Classifier: License :: OSI Approved"
PINS = {str(canonicalize_name(each.name)): each.version for each in distributions()}
"""What is installed, since the tests also run on other versions than constraints.txt has."""


def distribution(folder: Path, *lines: str) -> PathDistribution:
    """Return a distribution whose metadata have these lines."""
    text = "\n".join(("Metadata-Version: 2.4", "Name: Our_Package", "Version: 1.0", *lines))
    (folder / "METADATA").write_text(text + "\n")
    return PathDistribution(folder)


def names(found: list[Component]) -> list[str]:
    return [each.name for each in found]


def test_an_extra_brings_what_its_requirements_require(tmp_path: Path) -> None:
    """Not what another extra asks for; the root is first."""
    root = distribution(
        tmp_path,
        "License-Expression: MIT",
        'Requires-Dist: httpx; extra == "http"',
        'Requires-Dist: numpy; extra == "bulk"',
    )
    found = closure(root, extras=frozenset({"http"}), pins=PINS)
    assert names(found)[0] == "our-package"
    assert {"httpx", "httpcore", "h11"} <= {*names(found)}
    assert "numpy" not in names(found)
    assert found[0].requires == ("httpx",)
    assert names(closure(root, extras=frozenset(), pins=PINS)) == ["our-package"]


def test_a_version_that_is_not_pinned_is_refused(tmp_path: Path) -> None:
    """The bill would name what no test has run with."""
    root = distribution(tmp_path, "License-Expression: MIT", "Requires-Dist: numpy")
    message = rf"numpy {version('numpy')} .* constraints.txt has 1\.0"
    with pytest.raises(ReleaseError, match=message):
        closure(root, extras=frozenset(), pins={"numpy": "1.0"})
    absent = distribution(tmp_path, "License-Expression: MIT", "Requires-Dist: no-such-thing")
    with pytest.raises(ReleaseError, match="no-such-thing is not installed: run make setup"):
        closure(absent, extras=frozenset(), pins={})


def test_pins_are_read_from_a_constraints_file() -> None:
    """By the names that indexes use; comments are none of them."""
    text = "# Every version.\nFoo_Bar==1.0\nsmall.name==2.0.post1\n"
    assert pinned_versions(text) == {"foo-bar": "1.0", "small-name": "2.0.post1"}


@pytest.mark.parametrize(
    ("lines", "license_", "is_expression"),
    [
        (["License-Expression: Apache-2.0 OR MIT"], "Apache-2.0 OR MIT", True),
        (["License: mit"], "MIT", True),
        (
            ["License: BSD", f"{APPROVED} :: BSD License"],
            "BSD License",
            False,
        ),
        ([APPROVED, "License: Ours"], "Ours", False),
    ],
)
def test_a_license_is_an_expression_or_the_name_that_its_authors_wrote(
    tmp_path: Path, lines: list[str], license_: str, *, is_expression: bool
) -> None:
    """No license is guessed: "BSD License" may be any of several."""
    found = component(distribution(tmp_path, *lines), set())
    assert (found.license, found.is_expression) == (license_, is_expression)


def test_a_component_without_a_license_is_refused(tmp_path: Path) -> None:
    """The bill must say what each component may be used for."""
    with pytest.raises(ReleaseError, match=r"Our_Package 1\.0 name no license"):
        component(distribution(tmp_path, APPROVED), set())


def test_a_bill_names_each_component_and_what_it_requires() -> None:
    """By package URL; an expression and a name stand in the fields that CycloneDX has for each."""
    root = Component(
        name="ours", version="1", license="MIT", is_expression=True, requires=("theirs",)
    )
    other = Component(name="theirs", version="2", license="BSD License", is_expression=False)
    found = bill(root, [other], commit="abc", seconds=0)
    assert found["metadata"]["timestamp"] == "1970-01-01T00:00:00Z"
    assert found["metadata"]["component"]["licenses"] == [{"expression": "MIT"}]
    (entry,) = found["components"]
    assert (entry["purl"], entry["licenses"]) == (
        "pkg:pypi/theirs@2",
        [{"license": {"name": "BSD License"}}],
    )
    assert found["dependencies"] == [
        {"ref": "pkg:pypi/ours@1", "dependsOn": ["pkg:pypi/theirs@2"]},
        {"ref": "pkg:pypi/theirs@2", "dependsOn": []},
    ]


def test_the_serial_number_depends_on_the_content_alone() -> None:
    """Two builds of a commit give the same document, two commits never."""
    root = Component(name="ours", version="1", license="MIT", is_expression=True)
    first, same = (bill(root, [], commit="abc", seconds=0) for _ in range(2))
    assert first == same
    assert first["serialNumber"] != bill(root, [], commit="abd", seconds=0)["serialNumber"]
