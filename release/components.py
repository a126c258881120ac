"""The distributions that a wheel may bring along, by its metadata and those installed here."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release.errors import ReleaseError

LICENSE_NAME_CHARACTERS = 80
"""A longer text in the field ``License`` is the license itself, not its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One distribution, and what it requires."""

    name: str
    """In lower case, with dashes."""
    version: str
    license: str
    """An expression of SPDX where ``is_expression``, else the name that its authors wrote."""
    is_expression: bool
    requires: tuple[str, ...] = ()
    """Names, sorted."""


def pinned_versions(constraints: str) -> dict[str, str]:
    """Return the version of each distribution that a constraints file names."""
    pins = (line.split("==") for line in constraints.split() if "==" in line)
    return {canonicalize_name(name): version for name, version in pins}


def component(found: Distribution, requires: set[str]) -> Component:
    """Return what a distribution's metadata says of it.

    Raises:
        ReleaseError: It names no license.
    """
    name, (license_, is_expression) = canonicalize_name(found.name), _license(found)
    return Component(
        name=name,
        version=found.version,
        license=license_,
        is_expression=is_expression,
        requires=tuple(sorted(requires - {name})),
    )


def closure(
    root: Distribution, *, extras: frozenset[str], pins: Mapping[str, str]
) -> list[Component]:
    """Return the root's component and those of all that it requires with these extras, in order.

    Markers are read for this Python and this machine.

    Raises:
        ReleaseError: A distribution is not installed, or not with the version of the constraints.
    """
    found: dict[str, Distribution] = {str(canonicalize_name(root.name)): root}
    requires: dict[str, set[str]] = {}
    waiting = [(str(canonicalize_name(root.name)), extra) for extra in ("", *sorted(extras))]
    seen = set(waiting)
    while waiting:
        name, extra = waiting.pop()
        for required, its_extra in _required(found[name], extra):
            requires.setdefault(name, set()).add(required)
            if required not in found:
                found[required] = _installed(required, pins)
            if (required, its_extra) not in seen:
                seen.add((required, its_extra))
                waiting.append((required, its_extra))
    first, *others = found
    return [component(found[name], requires.get(name, set())) for name in (first, *sorted(others))]


def _required(found: Distribution, extra: str) -> Iterator[tuple[str, str]]:
    """Yield name and extra ("" for none) of all that a distribution requires with an extra."""
    for line in found.requires or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            for its_extra in ("", *sorted(requirement.extras)):
                yield canonicalize_name(requirement.name), canonicalize_name(its_extra)


def _installed(name: str, pins: Mapping[str, str]) -> Distribution:
    try:
        found = distribution(name)
    except PackageNotFoundError:
        raise ReleaseError(f"{name} is not installed: run make setup") from None
    if pins.get(name) != found.version:
        raise ReleaseError(
            f"{name} {found.version} is installed, constraints.txt has {pins.get(name, 'none')}: "
            f"run make setup, or correct constraints.txt"
        )
    return found


def _license(found: Distribution) -> tuple[str, bool]:
    """Return the license, and whether it is an expression of SPDX."""
    for text in (_field(found, "License-Expression"), _field(found, "License")):
        if len(text) <= LICENSE_NAME_CHARACTERS and "\n" not in text:
            try:
                return canonicalize_license_expression(text), True
            except InvalidLicenseExpression:
                pass
    return _license_name(found), False


def _license_name(found: Distribution) -> str:
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in found.metadata.get_all("Classifier", [])
        if line.startswith("License :: ") and not line.endswith(":: OSI Approved")
    ]
    text = _field(found, "License")
    if not classifiers and not text:
        raise ReleaseError(
            f"the metadata of {found.name} {found.version} name no license: pin a version that "
            f"names one in constraints.txt, or do without"
        )
    return ", ".join(sorted(classifiers)) or text.splitlines()[0][:LICENSE_NAME_CHARACTERS]


def _field(found: Distribution, name: str) -> str:
    return found.metadata[name].strip() if name in found.metadata else ""
