"""Variables that Kubernetes sets for each service of a namespace.

A service named ``mm2-offset-map`` or ``mm2-offsets`` has variables with the prefixes of settings.
"""

import re

_SERVICE = re.compile(r".+_SERVICE_(HOST|PORT(_\w+)?)")
_PORT = re.compile(r".+_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?")
_ADDRESS = re.compile(r"(tcp|udp|sctp)://")


def is_service_link(variable: str, value: str) -> bool:
    """Tell whether a variable is one of Kubernetes' (``envVarsMap`` in kubelet's envvars.go).

    Those of a service ``x`` are ``X_SERVICE_HOST``, ``X_SERVICE_PORT``, ``X_SERVICE_PORT_HTTP``,
    ``X_PORT`` (an address, such as ``tcp://10.0.0.1:80``), ``X_PORT_80_TCP``,
    ``X_PORT_80_TCP_PROTO``, ``X_PORT_80_TCP_PORT`` and ``X_PORT_80_TCP_ADDR``.
    """
    if variable.endswith("_PORT") and _ADDRESS.match(value):
        return True
    return any(pattern.fullmatch(variable) for pattern in (_SERVICE, _PORT))
