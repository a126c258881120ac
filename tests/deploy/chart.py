"""Renders the Helm chart, and reads Kubernetes' own schemas: what `make chart` has fetched."""

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "airflow-mm2-offsets"
TOOLS = ROOT / "build" / "deploy"
HELM = os.environ.get("HELM", str(TOOLS / "bin" / "helm"))
SCHEMAS = TOOLS / "schemas" / "kubernetes_validate" / "kubernetes-json-schema"
OLDEST, NEWEST = "1.27", "1.37"
"""Kubernetes' versions; the oldest is that of Chart.yaml."""

Manifest = dict[str, Any]


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run helm, whether or not it succeeds."""
    return subprocess.run([HELM, *arguments], capture_output=True, text=True, check=False)


def render(values: Mapping[str, Any], folder: Path, *, release: str = "mm2") -> list[Manifest]:
    """Return the manifests that the chart makes of values."""
    done = template(values, folder, release=release)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def template(
    values: Mapping[str, Any], folder: Path, *, release: str = "mm2"
) -> subprocess.CompletedProcess[str]:
    """Run ``helm template`` with values; ``folder`` takes their file."""
    file = folder / "values.json"
    file.write_text(json.dumps(values))
    version = ("--kube-version", NEWEST)
    return helm("template", release, str(CHART), "--values", str(file), *version)


def problems(manifest: Manifest, version: str) -> list[str]:
    """Return what Kubernetes' schema of a version finds in a manifest, unknown fields too."""
    group = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", manifest["apiVersion"])
    name = f"{manifest['kind'].lower()}-{group}.json"
    validator = _validator(SCHEMAS / f"v{version}.0-local-strict", name)
    return [
        f"{manifest['kind']} {error.json_path}: {error.message}"
        for error in validator.iter_errors(manifest)
    ]


@cache
def _validator(folder: Path, name: str) -> Draft202012Validator:
    schema = json.loads((folder / name).read_text())
    return Draft202012Validator(schema, registry=_definitions(folder))


@cache
def _definitions(folder: Path) -> Registry[Any]:
    contents = json.loads((folder / "_definitions.json").read_text())
    return Resource.from_contents(contents) @ Registry()


def one(manifests: Sequence[Manifest], kind: str) -> Manifest:
    """Return the only manifest of a kind."""
    (found,) = (each for each in manifests if each["kind"] == kind)
    return found


def merged(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as helm merges them: later ones take precedence, mapping by mapping."""
    result: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            old = result.get(key)
            if isinstance(old, Mapping) and isinstance(value, Mapping):
                result[key] = merged(old, value)
            else:
                result[key] = value
    return result
