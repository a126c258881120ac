"""Formats of settings files."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.config import load_settings
from airflow_mm2_offsets.core import SyncsLocation
from airflow_mm2_offsets.errors import ConfigurationError
from stack.certificates import Authority
from tests.unit.config.settings_files import SECRET, SERVERS, load


def test_yaml_that_contains_itself_is_refused(tmp_path: Path) -> None:
    """An anchor may stand in its own table."""
    text = "mm2: &all\n  offset-map:\n    source-cluster: a\n    again: *all\n"
    with pytest.raises(ConfigurationError, match="contains itself"):
        load(tmp_path, text, "application.yaml")


@pytest.mark.parametrize(
    ("written", "password"),
    [
        ("pa ss\u2028w\x85o\x0br\x1cd", "pa ss\u2028w\x85o\x0br\x1cd"),
        ("ends with a blank ", "ends with a blank "),
        ("\\  begins with blanks", "  begins with blanks"),
        ("\\\n  \\\n  goes on\\\n  #here", "goes on#here"),
        ("a\\=b\\:c\\\\", "a=b:c\\"),
        ("\\u00e9\\ud83d\\ude00", "é😀"),
    ],
)
def test_a_password_is_what_java_reads(tmp_path: Path, written: str, password: str) -> None:
    """Only CR and LF end a line; blanks at its end belong to the value."""
    text = f"kafka.bootstrap.servers=s.invalid:1\nconnect.password={written}\nsource.alias=e\r\n"
    settings = load(tmp_path, text)
    assert (settings.connect_password, settings.naming.source_alias) == (password, "e")


def test_toml_tables_are_prefixes(tmp_path: Path) -> None:
    """A table is the beginning of a key; numbers, booleans and lists become texts."""
    settings = load(
        tmp_path,
        """
        refresh = {seconds = 7}
        "offset-syncs".topic.location = "target"
        [kafka]
        bootstrap.servers = ["a.invalid:1", "b.invalid:2"]
        enable.ssl.certificate.verification = false
        """,
        "mm2.toml",
    )
    assert settings.refresh_seconds == 7
    assert settings.syncs_location is SyncsLocation.TARGET
    assert settings.source["bootstrap.servers"] == "a.invalid:1,b.invalid:2"
    assert settings.source["enable.ssl.certificate.verification"] == "false"


@pytest.mark.parametrize("name", ["mm2.toml", "mm2.yaml"])
def test_a_damaged_file_is_refused_without_its_text(tmp_path: Path, name: str) -> None:
    """The parser's message, which may quote a secret, is not shown."""
    with pytest.raises(ConfigurationError, match=f"{name}: is not") as raised:
        load(tmp_path, f"kafka: [{SECRET}\n  = :", name)
    assert SECRET not in str(raised.value)
    assert raised.value.__cause__ is None


def test_a_broken_escape_is_refused_without_its_value(tmp_path: Path) -> None:
    """Java refuses it too. A Windows path would silently become another path."""
    text = f"connect.username=a\\\n  b\r\n# C:\\users\nconnect.password=C:\\u{SECRET}\n"
    with pytest.raises(
        ConfigurationError, match=r"mm2.properties: line 4 has \\u without"
    ) as raised:
        load(tmp_path, text)
    assert SECRET not in str(raised.value)


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    """For example a Java keystore."""
    file = tmp_path / "mm2.properties"
    file.write_bytes(b"\xfe\xed\xfe\xed")
    with pytest.raises(ConfigurationError, match="in UTF-8"):
        load_settings(file, {})


def test_yaml_holds_settings_of_mm2_offset_map_only(tmp_path: Path) -> None:
    """Other keys are not read from YAML; a misspelt prefix is refused."""
    with pytest.raises(ConfigurationError, match=r"mm2.yaml: no key begins with mm2.offset-map"):
        load(tmp_path, "replication:\n  policy: identity\n", "mm2.yaml", **SERVERS)
    with pytest.raises(
        ConfigurationError, match=r"mm2.offset-mapp.source-cluster in .* not a known"
    ):
        load(tmp_path, "mm2:\n  offset-mapp:\n    source-cluster: a\n", "mm2.yaml", **SERVERS)


PEM_LINES = (
    "-----BEGIN PRIVATE KEY-----",
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDcanary0123456",
    "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefcanary",
    "Qcanary8=",
    "-----END PRIVATE KEY-----",
)


@pytest.mark.parametrize("first", ["source.ssl.key.pem=", "clusters=a,b\nb.ssl.keystore.key="])
def test_a_pasted_pem_is_refused_by_its_lines(tmp_path: Path, first: str) -> None:
    """Without continuations Java reads each line as a key of its own; no part of it is shown."""
    text = "kafka.bootstrap.servers=a.invalid:1\n" + first + "\n".join(PEM_LINES)
    with pytest.raises(ConfigurationError, match=r"lines \d to \d look like a part") as raised:
        load(tmp_path, text)
    assert not any(line[:12] in str(raised.value) for line in PEM_LINES)
    assert "canary" not in str(raised.value)


def test_a_pem_with_continuations_is_read(tmp_path: Path) -> None:
    """As the error tells to write it."""
    lines = Authority("ca").pem.splitlines()
    text = "kafka.bootstrap.servers=a.invalid:1\nkafka.ssl.ca.pem=" + "\\n\\\n".join(lines)
    assert str(load(tmp_path, text).source["ssl.ca.pem"]).splitlines() == lines


@pytest.mark.parametrize(
    "line",
    [
        "swordfish",
        "swordfish=",
        "CorrectHorse BatteryStaple",
        "hunter2",
        "AbCdEf0123456789abcdefgh-_.x=",
        "eyJhbGciOiJIUzI1NiJ9.e30.hunter2",
        "p@ss",
    ],
)
def test_an_unknown_key_that_may_be_a_secret_is_named_by_its_line(
    tmp_path: Path, line: str
) -> None:
    """A token on a line of its own is a key to Java."""
    text = f"kafka.bootstrap.servers=a.invalid:1\n# a comment\n{line}\n"
    with pytest.raises(ConfigurationError, match=r"line 3 in .* is not a known setting") as raised:
        load(tmp_path, text)
    assert line.split(maxsplit=1)[0].strip("=") not in str(raised.value)


def test_a_storage_login_is_in_no_repr(tmp_path: Path) -> None:
    """The archive may be named with its login."""
    text = f"kafka.bootstrap.servers=a.invalid:1\narchive=s3://key:{SECRET}@bucket/x\n"
    assert SECRET not in repr(load(tmp_path, text))


@pytest.mark.parametrize(
    "text", [f"connect.url=http://u:{SECRET}@c", f"connect.url=http://c?token={SECRET}"]
)
def test_a_login_in_an_address_is_refused_unseen(tmp_path: Path, text: str) -> None:
    """Messages show addresses."""
    with pytest.raises(
        ConfigurationError, match=r"connect.url in .*: the Connect URL of c"
    ) as raised:
        load(tmp_path, text, **SERVERS)
    assert SECRET not in str(raised.value)


def test_a_login_in_servers_is_refused_unseen() -> None:
    """Java ignores it in silence, and messages show the servers."""
    variable = "MM2_OFFSETS_SOURCE_BOOTSTRAP_SERVERS"
    with pytest.raises(
        ConfigurationError, match=r"source: .*bootstrap.servers.* contains a login"
    ) as raised:
        load_settings(None, SERVERS | {variable: f"u:{SECRET}@a.invalid:1"})
    assert SECRET not in str(raised.value)
