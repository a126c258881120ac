"""Config providers and secrets that only variables can give."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.errors import ConfigurationError
from stack.certificates import Authority
from tests.unit.config.settings_files import SECRET, load

PROVIDER = "org.apache.kafka.common.config.provider"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
TEXT = f"""
clusters = a, b
a->b.enabled = true
a.bootstrap.servers = a.invalid:1
b.bootstrap.servers = b.invalid:1
config.providers = secrets, folder , env, vault
config.providers.secrets.class = {PROVIDER}.FileConfigProvider
config.providers.folder.class = {PROVIDER}.DirectoryConfigProvider
config.providers.env.class = {PROVIDER}.EnvVarConfigProvider
config.providers.vault.class = com.example.VaultConfigProvider
"""

CA = Authority("ca").pem


def test_values_come_from_files_folders_and_variables(tmp_path: Path) -> None:
    """FileConfigProvider reads properties, the others a file or a variable as a whole."""
    (tmp_path / "s.properties").write_text(f"word={SECRET}\nuser = copy")
    (tmp_path / "certificate").write_text(CA)
    settings = load(
        tmp_path,
        f"""{TEXT}
        a.sasl.mechanism = PLAIN
        a.sasl.jaas.config = {PLAIN} username="${{secrets:{tmp_path}/s.properties:user}}" \\
            password="${{secrets:{tmp_path}/s.properties:word}}";
        b.ssl.ca.pem = ${{folder:{tmp_path}:certificate}}
        b.ssl.key.password = ${{env:KEY_WORD}}
        """,
        KEY_WORD="k",
    )
    assert (settings.source["sasl.username"], settings.source["sasl.password"]) == ("copy", SECRET)
    assert settings.target["ssl.ca.pem"] == CA
    assert settings.target["ssl.key.password"] == "k"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("${vault:mm2/a:word}", "it is in the config provider 'vault', which is not read here"),
        ("${secrets:/nowhere:word}", r"the file /nowhere can't be read \(FileNotFoundError\)"),
        ("${secrets:{file}:other}", "the file .*s.properties has no other"),
        ("${folder:/tmp:../x}", "../x is not the name of a file in /tmp"),
        ("${env:UNSET}", "the variable UNSET is not set"),
        ("${env:/x:UNSET}", "a variable has no path, and /x is given"),
    ],
)
def test_a_value_that_is_elsewhere_is_asked_for(tmp_path: Path, value: str, reason: str) -> None:
    """The error names the property, the reason and the variable; the variable replaces it."""
    file = tmp_path / "s.properties"
    file.write_text(f"word={SECRET}")
    text = f"{TEXT}\na.ssl.key.password = {value.replace('{file}', str(file))}\n"
    with pytest.raises(
        ConfigurationError,
        match=rf"^a.ssl.key.password in .*: {reason}; set the variable MM2_OFFSETS_SOURCE_SSL_KEY_",
    ) as raised:
        load(tmp_path, text)
    assert SECRET not in str(raised.value)
    variable = {"MM2_OFFSETS_SOURCE_SSL_KEY_PASSWORD": "mine"}
    settings = load(tmp_path, text, **variable)
    assert settings.source["ssl.key.password"] == "mine"


def test_a_text_like_a_reference_to_no_provider_stays(tmp_path: Path) -> None:
    """``ConfigTransformer`` keeps what names a provider that is not declared."""
    settings = load(tmp_path, f"{TEXT}\na.ssl.key.password = ${{{SECRET}:def}}\n")
    assert settings.source["ssl.key.password"] == f"${{{SECRET}:def}}"


def test_a_login_by_variable_replaces_the_files_login(tmp_path: Path) -> None:
    """Whichever way the two are written; the other cluster keeps its own."""
    text = f"""{TEXT}
    sasl.mechanism = PLAIN
    sasl.jaas.config = {PLAIN} username="u" password="${{vault:x:y}}";
    b.sasl.jaas.config = {PLAIN} username="b" password="b";
    """
    login = {"MM2_OFFSETS_SOURCE_SASL_USERNAME": "me", "MM2_OFFSETS_SOURCE_SASL_PASSWORD": "w"}
    settings = load(tmp_path, text, **login)
    assert settings.source["sasl.username"] == "me"
    assert settings.target["sasl.username"] == "b"
    jaas = {"MM2_OFFSETS_SOURCE_SASL_JAAS_CONFIG": f'{PLAIN} username="j" password="p";'}
    assert load(tmp_path, text, **jaas).source["sasl.username"] == "j"
    shared = {"MM2_OFFSETS_KAFKA_SASL_USERNAME": "all", "MM2_OFFSETS_KAFKA_SASL_PASSWORD": "w"}
    settings = load(tmp_path, text, **shared)
    assert (settings.source["sasl.username"], settings.target["sasl.username"]) == ("all", "b")


def test_a_pem_by_variable_replaces_java_stores(tmp_path: Path) -> None:
    """No library here reads JKS, and the store's password is not needed any more."""
    text = f"""{TEXT}
    ssl.truststore.location = /trust.jks
    ssl.truststore.password = ${{vault:x:trust}}
    ssl.truststore.type = JKS
    ssl.keystore.location = /key.jks
    ssl.keystore.password = ${{vault:x:key}}
    """
    names = ("SSL_CA_LOCATION", "SSL_CERTIFICATE_LOCATION", "SSL_KEY_LOCATION")
    variables = {
        f"MM2_OFFSETS_{side}_{name}": f"/{side}-{name}".lower()
        for side in ("SOURCE", "TARGET")
        for name in names
    }
    source = load(tmp_path, text, **variables).source
    assert source == {
        "bootstrap.servers": "a.invalid:1",
        "ssl.ca.location": "/source-ssl_ca_location",
        "ssl.certificate.location": "/source-ssl_certificate_location",
        "ssl.key.location": "/source-ssl_key_location",
    }


def test_a_provider_without_a_class_is_refused(tmp_path: Path) -> None:
    """Kafka refuses it at its start, too."""
    text = TEXT.replace("config.providers.env.class", "x.class")
    with pytest.raises(ConfigurationError, match=r"'env', and config.providers.env.class is missi"):
        load(tmp_path, text)
