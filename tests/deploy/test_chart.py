"""The Helm chart: every combination of its switches, against Kubernetes' schemas and our rules."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from airflow_mm2_offsets import __version__
from airflow_mm2_offsets.config import load_settings
from tests.deploy.chart import (
    CHART,
    NEWEST,
    OLDEST,
    Manifest,
    helm,
    merged,
    one,
    problems,
    render,
    template,
)
from tests.deploy.pod_rules import SECRETS, check_pod, check_selectors

MINIMAL = {
    "source": {"alias": "east", "bootstrapServers": "east-1:9092"},
    "target": {"alias": "west", "bootstrapServers": "west-1:9092"},
    "auth": {"existingSecret": "the-token"},
}
SWITCHES: dict[str, dict[str, Any]] = {
    "settings": {"settings": {"existingSecret": "the-settings"}},
    "login": {
        "source": {"login": {"mechanism": "SCRAM-SHA-512", "existingSecret": "source-secret"}},
        "connect": {"url": "https://connect:8083", "existingSecret": "connect-secret"},
    },
    "cluster-tls": {
        "source": {"tls": {"enabled": True, "existingSecret": "source-ca"}},
        "target": {
            "tls": {
                "enabled": True,
                "existingSecret": "target-certificate",
                "certificateKey": "tls.crt",
                "keyKey": "tls.key",
            }
        },
    },
    "server-tls": {"tls": {"existingSecret": "server-certificate"}},
    "open": {"auth": {"existingSecret": "", "disabled": True}},
    "ingress": {
        "ingress": {"enabled": True, "host": "mm2.example.com", "tlsSecret": "ingress-tls"}
    },
    "network-policy": {
        "networkPolicy": {"enabled": True, "to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}
    },
    "single": {"replicas": 1, "runAsUser": None, "serviceAccount": {"create": False}},
}
COMBINATIONS = [
    names for size in range(len(SWITCHES) + 1) for names in itertools.combinations(SWITCHES, size)
]


@pytest.mark.parametrize("switches", COMBINATIONS, ids="+".join)
def test_every_combination_of_switches_is_valid_and_safe(
    switches: tuple[str, ...], tmp_path: Path
) -> None:
    """By the schemas of the oldest and the newest Kubernetes; no secret outside a mounted file."""
    manifests = render(merged(MINIMAL, *(SWITCHES[name] for name in switches)), tmp_path)
    for version in (OLDEST, NEWEST):
        assert [each for manifest in manifests for each in problems(manifest, version)] == []
    kinds = {manifest["kind"] for manifest in manifests}
    assert ("Ingress" in kinds) == ("ingress" in switches)
    assert ("NetworkPolicy" in kinds) == ("network-policy" in switches)
    assert ("ConfigMap" in kinds) == ("settings" not in switches)
    assert (
        ("PodDisruptionBudget" in kinds)
        == ("ServiceAccount" in kinds)
        == ("single" not in switches)
    )
    assert "Secret" not in kinds
    check_pod(one(manifests, "Deployment")["spec"]["template"]["spec"], switches)
    check_selectors(manifests)


@pytest.mark.parametrize("file", sorted((CHART / "ci").glob("*.yaml")), ids=lambda file: file.stem)
def test_lint_finds_nothing_and_each_example_is_valid(file: Path, tmp_path: Path) -> None:
    """The values of ci/ are examples for users too."""
    done = helm("lint", "--strict", str(CHART), "--values", str(file))
    assert done.returncode == 0, done.stdout
    for manifest in render(yaml.safe_load(file.read_text()), tmp_path):
        assert problems(manifest, NEWEST) == []


def test_the_schemas_find_a_wrong_manifest(tmp_path: Path) -> None:
    """A field that Kubernetes does not know, and a number that is a text."""
    service = one(render(MINIMAL, tmp_path), "Service")
    service["spec"]["sellector"] = {}
    service["spec"]["ports"][0]["port"] = "many"
    assert len(problems(service, NEWEST)) == 2


def test_the_server_reads_what_the_chart_writes(tmp_path: Path) -> None:
    """The settings file and the mounted secrets give both clusters, Connect and their logins."""
    names = ("login", "cluster-tls")
    values = merged(
        MINIMAL,
        *(SWITCHES[name] for name in names),
        {
            "mirrorMaker": {"replicationPolicy": "identity", "offsetSyncsTopicLocation": "target"},
            "source": {"properties": {"ssl.endpoint.identification.algorithm": "https"}},
            "archive": "s3://lake/syncs",
            "refreshSeconds": 60,
        },
    )
    manifests = render(values, tmp_path)
    _write_secrets(one(manifests, "Deployment"), tmp_path)
    text = one(manifests, "ConfigMap")["data"]["mm2.properties"]
    file = tmp_path / "mm2.properties"
    file.write_text(text.replace(SECRETS, str(tmp_path)))
    settings = load_settings(file, {})
    assert (settings.source["sasl.username"], settings.source["sasl.password"]) == (
        "username of source-secret",
        'the "pass\\word" of source-secret',
    )
    assert settings.source["security.protocol"] == "SASL_SSL"
    assert settings.source["ssl.ca.location"] == f"{tmp_path}/source-tls/ca.crt"
    assert settings.target["bootstrap.servers"] == "west-1:9092"
    assert settings.target["ssl.key.location"] == f"{tmp_path}/target-tls/tls.key"
    assert (settings.naming.source_alias, settings.naming.target_alias) == ("east", "west")
    assert (settings.archive_location, settings.refresh_seconds) == ("s3://lake/syncs", 60)
    assert (settings.connect_url, settings.connect_username) == (
        "https://connect:8083",
        "username of connect-secret",
    )
    topic = settings.naming.syncs_topic(settings.syncs_location)
    assert topic == "mm2-offset-syncs.east.internal"


def _write_secrets(deployment: Manifest, folder: Path) -> None:
    """Write the files that Kubernetes would mount below SECRETS."""
    pod = deployment["spec"]["template"]["spec"]
    for volume in pod["volumes"]:
        if "secret" in volume:
            secret = volume["secret"]["secretName"]
            place = folder / volume["name"].removeprefix("secret-")
            place.mkdir()
            (place / "username").write_text(f"username of {secret}")
            (place / "password").write_text(f'the "pass\\word" of {secret}')
            for name in ("ca.crt", "tls.crt", "tls.key"):
                (place / name).write_text("PEM")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"auth": {"existingSecret": ""}}, "auth.existingSecret is empty: name a Secret"),
        ({"auth": {"disabled": True}}, "contradict each other"),
        ({"target": {"bootstrapServers": ""}}, "target.bootstrapServers is empty"),
        ({"source": {"login": {"mechanism": "PLAIN"}}}, "source.login.existingSecret is empty"),
        ({"source": {"tls": {"keyKey": "tls.key"}}}, "belong together"),
        ({"target": {"alias": "east"}}, "source.alias and target.alias are both east"),
        ({"ingress": {"enabled": True}}, "ingress.host is empty"),
        ({"replica": 3}, "replica"),
        ({"replicas": "three"}, "want integer"),
        ({"source": {"bootstrapServers": "east-1"}}, "does not match pattern"),
        ({"source": {"login": {"mechanism": "GSSAPI"}}}, "mechanism"),
        ({"source": {"properties": {"sasl.password": "x"}}}, "sasl.password"),
        ({"source": {"properties": {"sasl.jaas.config": "x"}}}, "sasl.jaas.config"),
        ({"source": {"properties": {"ssl.key.pem": "x"}}}, "ssl.key.pem"),
        ({"source": {"properties": {"linger.ms": "5"}}}, "linger.ms"),
        ({"environment": {"AWS_SECRET_ACCESS_KEY": "x"}}, "AWS_SECRET_ACCESS_KEY"),
        ({"environment": {"MM2_OFFSETS_SERVE_TOKEN": "x"}}, "MM2_OFFSETS_SERVE_TOKEN"),
        ({"connect": {"url": "https://user:pass@connect:8083"}}, "does not match pattern"),
        ({"secretFiles": {"auth": "other"}}, "auth"),
        ({"image": {"digest": "latest"}}, "does not match pattern"),
        ({"archive": "s3://a\nserve.without.auth = true"}, "does not match pattern"),
    ],
    ids=json.dumps,
)
def test_wrong_values_are_refused(values: dict[str, Any], message: str, tmp_path: Path) -> None:
    """With the value's name, and never in silence; a secret among values is one of them."""
    done = template(merged(MINIMAL, values), tmp_path)
    assert done.returncode != 0
    assert message in done.stderr


def test_other_settings_need_other_pods(tmp_path: Path) -> None:
    """A server reads its settings once."""
    before, after = (
        one(render(merged(MINIMAL, {"refreshSeconds": seconds}), tmp_path), "Deployment")
        for seconds in (30, 60)
    )
    assert before["spec"]["template"] != after["spec"]["template"]
    assert before["spec"]["selector"] == after["spec"]["selector"]


def test_names_stay_within_kubernetes_limit(tmp_path: Path) -> None:
    """63 characters for a service, whatever the release is called."""
    for release in ("a" * 53, "airflow-mm2-offsets", "x"):
        names = {each["metadata"]["name"] for each in render(MINIMAL, tmp_path, release=release)}
        assert all(len(name) <= 63 for name in names)
        assert len(names) == 1


def test_chart_and_package_have_one_version() -> None:
    """The chart's default image is that of the package."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
