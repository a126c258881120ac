"""Wrong logins by Kerberos, and what is said of each; docs/security.md has the same table."""

from airflow_mm2_offsets.kafka.client_properties import to_librdkafka
from tests.integration.explained import WrongSetup
from tests.integration.kerberized import KerberosGround

_KEYTAB = "sasl.kerberos.keytab"
_PRINCIPAL = "sasl.kerberos.principal"
_SERVICE = "sasl.kerberos.service.name"
WRONG_CLOCK = "the KDC's clock is an hour off"

WRONG_KERBEROS: tuple[WrongSetup[KerberosGround], ...] = (
    WrongSetup(
        "a keytab that does not exist",
        lambda ground: ground.login(keytab="/nowhere/airflow.keytab"),
        _KEYTAB,
        "Key table file '/nowhere/airflow.keytab' not found",
        "correct sasl.kerberos.keytab",
    ),
    WrongSetup(
        "the keytab of another principal",
        lambda ground: ground.login(keytab=ground.other_user()),
        _KEYTAB,
        "Keytab contains no suitable keys for airflow@MM2.TEST",
        "give the keytab of that principal",
    ),
    WrongSetup(
        "a keytab with an old key",
        lambda ground: ground.changed_key(),
        _KEYTAB,
        "there is no Kerberos ticket for rekeyed@MM2.TEST",
        "get a new keytab",
    ),
    WrongSetup(
        "a principal that the KDC does not know",
        lambda ground: ground.removed_user(),
        _PRINCIPAL,
        "Client 'removed@MM2.TEST' not found in Kerberos database",
        "correct sasl.kerberos.principal",
    ),
    WrongSetup(
        "another service name",
        lambda ground: ground.login(service_name="kafka-east"),
        _SERVICE,
        "the KDC knows no service kafka-east/localhost@MM2.TEST",
        "correct sasl.kerberos.service.name",
    ),
    WrongSetup(
        "an address in place of the broker's name",
        lambda ground: ground.by_address(),
        _SERVICE,
        "the KDC knows no service kafka/127.0.0.1@MM2.TEST",
        "give in bootstrap.servers the host names of the brokers' principals",
    ),
    WrongSetup(
        "neither keytab nor ticket cache",
        lambda ground: ground.login(keytab=None, principal=None),
        _KEYTAB,
        "sasl.kerberos.keytab is missing",
        "set sasl.kerberos.keytab and sasl.kerberos.principal",
    ),
    WrongSetup(
        "a ticket cache without a ticket",
        lambda ground: to_librdkafka("source", ground.kerberized.by_cache(ground.cluster)),
        _KEYTAB,
        "there is no valid Kerberos ticket",
        "run kinit as the user of this process",
    ),
    WrongSetup(
        "the KDC is down",
        lambda ground: ground.without_kdc(),
        "",
        "Cannot contact any KDC for realm 'MM2.TEST'",
        "check that the KDC runs",
    ),
    WrongSetup(
        WRONG_CLOCK,
        lambda ground: ground.wrong_clock(),
        _SERVICE,
        "the broker does not accept the Kerberos ticket",
        "compare the clocks",
    ),
)
