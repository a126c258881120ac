"""Spring Boot's rules, from "Externalized Configuration" in its reference."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.config import load_settings
from airflow_mm2_offsets.errors import ConfigurationError
from tests.unit.config.settings_files import SECRET, load

BASE = "mm2:\n  offset-map:\n    bootstrap-servers: t.invalid:1\n"
SERVERS = {"MM2_OFFSETMAP_BOOTSTRAPSERVERS": "t.invalid:1"}


def _with_value(value: str) -> str:
    return f"{BASE}    consumer-properties:\n      client.id: {value}\n"


def test_application_json_takes_precedence_over_variables(tmp_path: Path) -> None:
    """File, then OS environment variables, then SPRING_APPLICATION_JSON."""
    json = '{"mm2.offset-map.target-cluster": "json", "server": {"port": 1}}'
    settings = load(
        tmp_path,
        f"{BASE}    source-cluster: file\n    target-cluster: file\nserver.port: 3\n",
        "application.yaml",
        MM2_OFFSETMAP_SOURCECLUSTER="variable",
        MM2_OFFSETMAP_TARGETCLUSTER="variable",
        MM2_OFFSETMAP_OFFSETSYNCSTOPIC="mm2-offset-syncs.variable.internal",
        SERVER_PORT="2",
        SPRING_APPLICATION_JSON=json,
    )
    assert (settings.naming.source_alias, settings.naming.target_alias) == ("variable", "json")
    assert settings.serve.port == 1


def test_own_variables_take_precedence_over_springs() -> None:
    """They were written for this package."""
    environ = SERVERS | {"SERVER_PORT": "1", "MM2_OFFSETS_SERVE_PORT": "2"}
    assert load_settings(None, environ).serve.port == 2


def test_the_server_port_is_read_beside_mm2_offset_map_only() -> None:
    """Another program of the machine may have it; Kubernetes has it for a service ``server``."""
    own = {"MM2_OFFSETS_KAFKA_BOOTSTRAP_SERVERS": "a.invalid:1"}
    assert load_settings(None, own | {"SERVER_PORT": "2"}).serve.port == 8080
    link = SERVERS | {"SERVER_PORT": "tcp://10.0.0.1:80"}
    assert load_settings(None, link).serve.port == 8080
    assert load_settings(None, SERVERS | {"SERVER_PORT": "2"}).serve.port == 2


@pytest.mark.parametrize(
    "key",
    [
        "mm2.offset-map.source-cluster",
        "mm2.offsetMap.sourceCluster",
        "mm2.offset_map.source_cluster",
        "mm2.offsetmap.sourcecluster",
        "MM2.OFFSET-MAP.SOURCE-CLUSTER",
    ],
)
def test_relaxed_names_are_bound(tmp_path: Path, key: str) -> None:
    """Kebab case, camel case and underscores are one name."""
    text = f"mm2.offset-map.bootstrap-servers=a.invalid:1\n{key}=east\n"
    text += "mm2.offset-map.offset-syncs-topic=mm2-offset-syncs.east.internal\n"
    assert load(tmp_path, text, "application.properties").naming.source_alias == "east"


@pytest.mark.parametrize("variable", ["SOURCECLUSTER", "SOURCE_CLUSTER"])
@pytest.mark.parametrize("prefix", ["MM2_OFFSETMAP_", "MM2_OFFSET_MAP_"])
def test_relaxed_variables_are_bound(prefix: str, variable: str) -> None:
    """Dashes are dropped, or underscores as in Spring Boot 1."""
    topic = {"MM2_OFFSETMAP_OFFSETSYNCSTOPIC": "mm2-offset-syncs.east.internal"}
    settings = load_settings(None, SERVERS | topic | {f"{prefix}{variable}": "east"})
    assert settings.naming.source_alias == "east"


@pytest.mark.parametrize(
    "properties",
    [
        'consumer-properties: {"[client.id]": x}',
        "consumer-properties: {client.id: x}",
        "consumer-properties: {client: {id: x}}",
        "consumerProperties: {'[client.id]': x}",
        '"consumer-properties[client.id]": x',
    ],
)
def test_keys_of_a_map_may_stand_in_brackets(tmp_path: Path, properties: str) -> None:
    """Brackets keep the characters of a key ("Binding Maps")."""
    settings = load(tmp_path, f"{BASE}    {properties}\n", "application.yaml")
    assert settings.source["client.id"] == "x"


@pytest.mark.parametrize(
    ("value", "resolved"),
    [
        ("${CLIENT}", "east"),
        ("a-${CLIENT}-${CLIENT}", "a-east-east"),
        ("${UNSET:default}", "default"),
        ("${UNSET:}", ""),
        ("${UNSET:${CLIENT}}", "east"),
        ("${UNSET:${OTHER:inner}}", "inner"),
        ("${${NAME}}", "east"),
        ("${client}", "east"),
        ("${app.id}", "app-east"),
        ("${UNSET:a:b}", "a:b"),
        ("$CLIENT {x}", "$CLIENT {x}"),
        ("${CLIENT", "${CLIENT"),
    ],
)
def test_placeholders_are_replaced(tmp_path: Path, value: str, resolved: str) -> None:
    """They name variables or other keys, and may be nested."""
    text = f"{_with_value(repr(value))}app: {{id: 'app-${{CLIENT}}'}}\n"
    settings = load(tmp_path, text, "application.yaml", CLIENT="east", NAME="CLIENT")
    assert settings.source["client.id"] == resolved


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("${UNSET}", r"client.id in .*: refers to \$\{UNSET\}, which has no value; set the"),
        ("${loop}", r"client.id in .*: refers to itself through \$\{loop\}"),
    ],
)
def test_a_placeholder_without_a_value_is_refused(tmp_path: Path, value: str, message: str) -> None:
    """The text of the placeholder would be used as a password, for example."""
    with pytest.raises(ConfigurationError, match=message):
        load(tmp_path, f"{_with_value(value)}loop: ${{loop}}\n", "application.yaml")


DOCUMENTS = f"""{_with_value("all")}
---
spring.config.activate.on-profile: CONDITION
mm2.offset-map.consumer-properties: {{client.id: special}}
"""


@pytest.mark.parametrize(
    ("condition", "profiles", "client"),
    [
        ("prod", "", "all"),
        ("prod", "prod", "special"),
        ("prod", "eu, prod", "special"),
        ("'!prod'", "", "special"),
        ("'!prod'", "prod", "all"),
        ("default", "", "special"),
        ("prod & (eu | us)", "prod,us", "special"),
        ("prod & (eu | us)", "prod", "all"),
        ("[test, prod]", "prod", "special"),
    ],
)
def test_documents_of_other_profiles_are_passed_over(
    tmp_path: Path, condition: str, profiles: str, client: str
) -> None:
    """A later document takes precedence, if its profile is active."""
    text = DOCUMENTS.replace("CONDITION", condition)
    settings = load(tmp_path, text, "application.yaml", SPRING_PROFILES_ACTIVE=profiles)
    assert settings.source["client.id"] == client


def test_the_file_may_activate_profiles(tmp_path: Path) -> None:
    """And SPRING_APPLICATION_JSON takes precedence over it."""
    text = f"spring.profiles.active: prod\n{DOCUMENTS.replace('CONDITION', 'prod')}"
    assert load(tmp_path, text, "a.yaml").source["client.id"] == "special"
    json = '{"spring.profiles.active": "test"}'
    settings = load(tmp_path, text, "a.yaml", SPRING_APPLICATION_JSON=json)
    assert settings.source["client.id"] == "all"


@pytest.mark.parametrize("condition", ["a & b | c", "(a", "a)", "'!'", "'&'", "a b"])
def test_a_malformed_profile_is_refused(tmp_path: Path, condition: str) -> None:
    """Spring refuses it too: & and | need parentheses to be mixed."""
    with pytest.raises(ConfigurationError, match=r"on-profile in .*: is not a profile expression"):
        load(tmp_path, DOCUMENTS.replace("CONDITION", condition), "application.yaml")


def test_a_document_for_a_platform_is_refused(tmp_path: Path) -> None:
    """Whether it counts can't be known here."""
    text = f"{BASE}---\nspring.config.activate.on-cloud-platform: kubernetes\n"
    with pytest.raises(ConfigurationError, match=r"on-cloud-platform in .*depend on a cloud plat"):
        load(tmp_path, text, "application.yaml")


def test_properties_have_documents_too(tmp_path: Path) -> None:
    """A line #--- parts them; other keys configure Spring."""
    text = """spring.application.name=offsets
        logging.level.root=WARN
        mm2.offset-map.bootstrap-servers=a.invalid:1
        mm2.offset-map.consumer-properties[client.id]=all
        #---
        spring.config.activate.on-profile=prod
        mm2.offset-map.consumer-properties[client.id]=special
        """
    assert load(tmp_path, text).source["client.id"] == "all"
    assert load(tmp_path, text, SPRING_PROFILES_ACTIVE="prod").source["client.id"] == "special"


def test_the_default_topic_is_mm2_offset_maps(tmp_path: Path) -> None:
    """It reads ``mm2-offset-syncs.source.internal`` whatever ``source-cluster`` is."""
    settings = load(tmp_path, f"{BASE}    source-cluster: east\n", "application.yaml")
    assert settings.pair().syncs_topic == "mm2-offset-syncs.source.internal"
    variables = SERVERS | {"MM2_OFFSETMAP_SOURCECLUSTER": "a", "MM2_OFFSETS_SOURCE_ALIAS": "b"}
    assert (
        load_settings(None, variables | {"MM2_OFFSETS_OFFSET_SYNCS_TOPIC_LOCATION": "target"})
        .pair()
        .syncs_topic
        == "mm2-offset-syncs.b.internal"
    )


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("10s", 10), ("5000", 5), ("1M", 60), ("PT1M30S", 90), ("P1D", 86_400), ("2000000us", 2)],
)
def test_durations_are_springs(written: str, seconds: float) -> None:
    """A number is milliseconds ("Converting Durations")."""
    settings = load_settings(None, SERVERS | {"MM2_OFFSETMAP_REFRESHINTERVAL": written})
    assert settings.refresh_seconds == seconds


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f"mm2:\n  a: '{SECRET}\n", "line 3, column 1"),
        (f"mm2:\n\tword: {SECRET}\n", "line 2, column 1"),
        (f"mm2: *{SECRET}\n", "line 1, column 6"),
        (f"mm2: {SECRET}: b\n", "line 1, column 13"),
        (f"- {SECRET}\n", "a document is not a table"),
        ("when: 2026-13-45\n", "quote dates"),
    ],
)
def test_damaged_yaml_is_named_by_line_and_column(tmp_path: Path, text: str, place: str) -> None:
    """The parser's own message would quote the line."""
    with pytest.raises(ConfigurationError, match=f"a.yaml: is not valid YAML.*{place}") as raised:
        load(tmp_path, text, "a.yaml")
    assert SECRET not in str(raised.value)
    assert raised.value.__cause__ is None
