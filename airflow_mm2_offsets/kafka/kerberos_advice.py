"""Advice on logins by Kerberos; each function gets a report of librdkafka and its properties.

``kafka.login_advice`` lists the rules. The reports are those of ``rdkafka_sasl_cyrus.c``, which
quotes MIT's library, and the broker's. librdkafka gets its tickets from ``kinit`` and passes over
what that says, so ``kinit`` is asked again.
"""

import re

from airflow_mm2_offsets.kafka.advice import Advice, Config, Rule, mechanism, protocol
from airflow_mm2_offsets.kafka.client_properties.kerberos import (
    KEYTAB,
    MECHANISM,
    PRINCIPAL,
    RELOGIN,
    SERVICE,
    build_line,
)
from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS
from airflow_mm2_offsets.kafka.ticket_probe import ticket_problem

_TICKET_STEPS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        r"Key table file|Permission denied",
        (KEYTAB,),
        f"correct {KEYTAB}: the file lies where this process runs, and its user may read it",
    ),
    (
        r"no suitable keys",
        (KEYTAB, PRINCIPAL),
        (
            f"give the keytab of that principal, or correct {PRINCIPAL}: klist -k {{keytab}} lists "
            f"whose keys it holds"
        ),
    ),
    (
        r"not found in Kerberos database",
        (PRINCIPAL,),
        f"correct {PRINCIPAL}, or let the administrator of the KDC make it",
    ),
    (
        r"[Pp]reauthentication failed|[Dd]ecrypt integrity",
        (KEYTAB,),
        "the principal's key was changed: get a new keytab",
    ),
    (r"[Cc]lock skew", (), "correct the clock of this machine (NTP)"),
    (r"not installed", (), "apt-get install krb5-user"),
    (
        r"Cannot (contact|find|resolve)|no answer",
        (),
        "check that the KDC runs, and its address in /etc/krb5.conf (or where KRB5_CONFIG points)",
    ),
)
"""What ``kinit`` says, the properties to look at, and the next step; the first one counts."""
_ASK_KINIT = "run kinit -V -k -t {keytab} {principal} here: it says more"
_WITHOUT_KEYTAB = (
    f"run kinit as the user of this process (KRB5CCNAME names the cache), or set {KEYTAB} and "
    f"{PRINCIPAL}"
)


def _not_built(_: re.Match[str], config: Config) -> Advice:
    lacks = "this build of confluent-kafka can't log in by Kerberos (GSSAPI)"
    if not mechanism(config):
        cause = f"sasl.mechanism is missing, its default is GSSAPI, and {lacks}"
        return Advice(("sasl.mechanism",), cause, "set sasl.mechanism, as SCRAM-SHA-512")
    step = f"{build_line()}; or log in by another sasl.mechanism"
    return Advice(("sasl.mechanism",), lacks, step)


def _no_module(_: re.Match[str], __: Config) -> Advice:
    cause = "libsasl2 finds no module for Kerberos here"
    return Advice((), cause, "apt-get install libsasl2-modules-gssapi-mit")


def _no_keytab(match: re.Match[str], _: Config) -> Advice:
    missing = match["property"]
    step = (
        f"set {KEYTAB} and {PRINCIPAL}; or {RELOGIN}=0, which leaves tickets to another program's "
        f"kinit"
    )
    return Advice((missing,), f"{missing} is missing", step)


def _unknown_service(match: re.Match[str], _: Config) -> Advice:
    step = (
        f"correct {SERVICE}, or give in {BOOTSTRAP_SERVERS} the host names of the brokers' "
        f"principals (SERVICE/HOST@REALM)"
    )
    return Advice(
        (SERVICE, BOOTSTRAP_SERVERS), f"the KDC knows no service {match['service']}", step
    )


def _no_ticket(match: re.Match[str], config: Config) -> Advice | None:
    """Say why there is no ticket; decline where there is one, and the report is not about it."""
    if not _logs_in_by_kerberos(config):
        return None
    names = {"keytab": str(config.get(KEYTAB, "")), "principal": str(config.get(PRINCIPAL, ""))}
    if not names["keytab"]:
        cause = "there is no valid Kerberos ticket"
        return Advice((KEYTAB,), cause, _WITHOUT_KEYTAB) if match["gssapi"] else None
    problem = ticket_problem(**names)
    if problem is None:
        return None
    cause = f"there is no Kerberos ticket for {names['principal']}: {problem}"
    for pattern, settings, step in _TICKET_STEPS:
        if re.search(pattern, problem):
            return Advice(settings, cause, step.format(**names))
    return Advice((KEYTAB, PRINCIPAL), cause, _ASK_KINIT.format(**names))


def _ticket_refused(_: re.Match[str], config: Config) -> Advice | None:
    if not _logs_in_by_kerberos(config):
        return None
    return Advice(
        (SERVICE,),
        "the broker does not accept the Kerberos ticket",
        f"compare the clocks of this machine, the broker and the KDC; compare the key of "
        f"{config.get(SERVICE, 'kafka')}/HOST in the broker's keytab with the KDC's (kvno, "
        f"klist -k)",
    )


def _logs_in_by_kerberos(config: Config) -> bool:
    chosen = mechanism(config).upper() or MECHANISM
    return protocol(config).startswith("SASL") and chosen == MECHANISM


KERBEROS_RULES: tuple[Rule, ...] = (
    Rule(re.compile(r"No provider for SASL mechanism GSSAPI"), _not_built),
    Rule(re.compile(r"No worthy mechs|missing a GSSAPI module"), _no_module),
    Rule(re.compile(r'kinit\.cmd value: Property not available: "(?P<property>[^"]+)'), _no_keytab),
    Rule(re.compile(r"Server (?P<service>\S+) not found in Kerberos database"), _unknown_service),
    Rule(re.compile(r"(?P<gssapi>GSSAPI Error)|^$|^Failed to get metadata"), _no_ticket),
    Rule(re.compile(r"[Aa]uthentication failed|invalid credentials"), _ticket_refused),
)
"""The first that applies counts; a rule may decline."""
