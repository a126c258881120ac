"""What holds for the pod of the chart, whatever the values: no rights, no secret in a variable."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.deploy.chart import Manifest, one

SECRETS = "/run/secrets/mm2-offsets"
SECRET_WORD = re.compile("password|token|secret|jaas|credential|key", re.IGNORECASE)


def check_pod(pod: dict[str, Any], switches: Sequence[str]) -> None:
    """Check that the pod has no rights, and that no variable holds a secret."""
    (container,) = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"].get("runAsUser") == (None if "single" in switches else 10001)
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    scheme = "HTTPS" if "server-tls" in switches else "HTTP"
    probes = [container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")]
    assert [(each["path"], each["scheme"]) for each in probes] == [
        ("/healthz", scheme),
        ("/healthz", scheme),
        ("/readyz", scheme),
    ]
    assert container["resources"]["limits"]["memory"]
    assert "envFrom" not in container
    for variable in container["env"]:
        assert variable.keys() == {"name", "value"}
        if SECRET_WORD.search(variable["name"]):
            assert variable["value"].startswith(f"{SECRETS}/")
    _check_mounts(pod, container)


def _check_mounts(pod: dict[str, Any], container: dict[str, Any]) -> None:
    """Check that what variables name is mounted, and nothing can be written."""
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    assert {mount["name"] for mount in mounts.values()} == volumes.keys()
    assert all(mount["readOnly"] for mount in mounts.values())
    assert all(volume.keys() <= {"name", "configMap", "secret"} for volume in volumes.values())
    files = [each["value"] for each in container["env"] if each["value"].startswith("/")]
    assert {str(Path(file).parent) for file in files} <= mounts.keys()


def check_selectors(manifests: Sequence[Manifest]) -> None:
    """Check that service, budget and policy mean the deployment's pods, the ingress the service."""
    labels = one(manifests, "Deployment")["spec"]["template"]["metadata"]["labels"].items()
    for manifest in manifests:
        spec = manifest.get("spec", {})
        selector = spec.get("podSelector", spec.get("selector", {}))
        assert selector.get("matchLabels", selector).items() <= labels
    for ingress in (each for each in manifests if each["kind"] == "Ingress"):
        backend = ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
        assert backend["name"] == one(manifests, "Service")["metadata"]["name"]
