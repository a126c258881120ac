"""The bill of materials, as CycloneDX JSON (ECMA-424)."""

import json
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from release.components import Component

SPEC_VERSION = "1.6"


def purl(component: Component) -> str:
    """Return the package URL of a distribution on PyPI."""
    return f"pkg:pypi/{component.name}@{component.version}"


def bill(
    root: Component, others: Sequence[Component], *, commit: str, seconds: int
) -> dict[str, Any]:
    """Return the document.

    Args:
        root: What is released.
        others: All that it may bring along.
        commit: The id of the released commit.
        seconds: The commit's time, since 1970.
    """
    body = {
        "metadata": {
            "timestamp": f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}",
            "component": _entry(root),
            "properties": [{"name": "commit", "value": commit}],
        },
        "components": [_entry(each) | {"scope": "optional"} for each in others],
        "dependencies": [_dependency(each, (root, *others)) for each in (root, *others)],
    }
    return {
        "$schema": f"http://cyclonedx.org/schema/bom-{SPEC_VERSION}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": SPEC_VERSION,
        "serialNumber": f"urn:uuid:{_serial(body)}",
        "version": 1,
        **body,
    }


def _serial(body: dict[str, Any]) -> uuid.UUID:
    """Return an id that the content alone decides: two builds give the same document."""
    digest = sha256(json.dumps(body, sort_keys=True).encode()).digest()
    return uuid.UUID(bytes=digest[:16], version=4)


def _entry(component: Component) -> dict[str, Any]:
    named = {"license": {"name": component.license}}
    return {
        "type": "library",
        "bom-ref": purl(component),
        "name": component.name,
        "version": component.version,
        "purl": purl(component),
        "licenses": [{"expression": component.license} if component.is_expression else named],
    }


def _dependency(component: Component, known: Sequence[Component]) -> dict[str, Any]:
    refs = {each.name: purl(each) for each in known}
    return {"ref": purl(component), "dependsOn": [refs[name] for name in component.requires]}
