"""Kerberos: the options of ``Krb5LoginModule``, and the build of librdkafka that they need.

``login`` and ``librdkafka`` call this, ``java`` the way back; ``kerberos_advice`` names the same.
"""

import re
from collections.abc import Mapping
from importlib.metadata import version

from confluent_kafka import Consumer, KafkaException, libversion

from airflow_mm2_offsets.kafka.client_properties.problem import Config, PropertyError, as_text

MODULE = "com.sun.security.auth.module.Krb5LoginModule"
MECHANISM = "GSSAPI"
_KINIT = "sasl.kerberos.kinit.cmd"
RELOGIN = "sasl.kerberos.min.time.before.relogin"
SERVICE = "sasl.kerberos.service.name"
KEYTAB = "sasl.kerberos.keytab"
PRINCIPAL = "sasl.kerberos.principal"
_IN_COMMAND = (KEYTAB, PRINCIPAL)
_PLAIN_WORD = re.compile(r"[\w@%+=:,./-]*")
"""A word that a POSIX shell takes as it is (``shlex.quote``)."""
_PACKAGES = (
    "gcc g++ make python3-dev libssl-dev libcurl4-openssl-dev zlib1g-dev libsasl2-dev "
    "libsasl2-modules-gssapi-mit krb5-user"
)
_BUILD = (
    f"build it against librdkafka {{librdkafka}} with libsasl2: apt-get install {_PACKAGES}; in "
    "librdkafka's source ./configure && make -C src && make -C src install && ldconfig; "
    "pip install --force-reinstall --no-deps --no-cache-dir --no-binary confluent-kafka "
    "confluent-kafka=={python}"
)


def translate_options(config: Config, options: Mapping[str, str]) -> None:
    """Add librdkafka's properties for the options of a ``Krb5LoginModule``, in place.

    Raises:
        PropertyError: The keytab lacks its principal, or a ticket cache is named, which
            librdkafka takes from the environment alone.
    """
    by_name = {name.lower(): value for name, value in options.items()}
    if service := by_name.get("servicename"):
        config.setdefault(SERVICE, service)
    if principal := by_name.get("principal"):
        config.setdefault(PRINCIPAL, principal)
    keytab = (by_name.get("keytab") or "").removeprefix("file:")
    if keytab and by_name.get("usekeytab", "true").lower() != "false":
        config.setdefault(KEYTAB, keytab)
        if not principal:
            raise PropertyError(
                "sasl.jaas.config", 'has a keyTab without a principal; add principal="name@REALM"'
            )
    elif "ticketcache" in by_name:
        raise PropertyError(
            "sasl.jaas.config",
            "names a ticketCache, which librdkafka takes from the environment; remove it and set "
            "the variable KRB5CCNAME of the process",
        )
    else:
        # The cache is another program's to renew: 0 keeps librdkafka from running kinit.
        config[RELOGIN] = "0"


def translate_kinit(config: Config) -> None:
    """Drop Java's path of ``kinit``, in place: librdkafka's property is a whole shell command."""
    command = as_text(config.get(_KINIT, ""))
    if command and "%{" not in command and " " not in command.strip():
        del config[_KINIT]


def check_command(config: Config) -> None:
    """Refuse what would be more than a word in librdkafka's command.

    librdkafka gives ``sasl.kerberos.kinit.cmd`` to a shell with these values in it, as they are.

    Raises:
        PropertyError: A keytab or a principal holds a character that means something to a shell.
    """
    for name in _IN_COMMAND:
        if found := _PLAIN_WORD.sub("", as_text(config.get(name, ""))):
            raise PropertyError(
                name,
                f"holds {found[0]!r}, which means something to the shell that librdkafka runs "
                "kinit by; use letters, digits and @ % + = : , . / - alone",
            )


def check_build(mechanism: str) -> None:
    """Refuse Kerberos if this build of librdkafka can't do it.

    Raises:
        PropertyError: It names the build that is needed.
    """
    if mechanism == MECHANISM and not has_gssapi():
        raise PropertyError(
            "sasl.mechanism",
            f"is GSSAPI (Kerberos; also the default), and the installed confluent-kafka is built "
            f"without it, as its wheels are: {build_line()}",
        )


def build_line() -> str:
    """Return how to build the installed version of confluent-kafka with Kerberos."""
    return _BUILD.format(librdkafka=libversion()[0], python=version("confluent-kafka"))


def has_gssapi() -> bool:
    """Tell whether the installed librdkafka is built with libsasl2."""
    unknown = "no.such.property"  # stops librdkafka before it makes a client
    try:
        Consumer({"group.id": unknown, "builtin.features": "sasl_gssapi", unknown: ""})
    except KafkaException as error:
        return unknown in error.args[0].str()
    return True


def jaas_options(config: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a ``Krb5LoginModule`` for librdkafka's properties."""
    options = {"serviceName": config.get(SERVICE, "kafka")}
    principal = {"principal": config[PRINCIPAL]} if PRINCIPAL in config else {}
    if keytab := config.get(KEYTAB):
        return options | {"useKeyTab": "true", "storeKey": "true", "keyTab": keytab} | principal
    return options | {"useTicketCache": "true"} | principal
