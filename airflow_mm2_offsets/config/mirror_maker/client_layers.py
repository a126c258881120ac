"""How the connectors of MirrorMaker 2 connect to a cluster.

Rules: ``MirrorConnectorConfig.sourceConsumerConfig``, ``targetConsumerConfig``,
``sourceAdminConfig`` and ``targetAdminConfig``.
"""

from airflow_mm2_offsets.config.entries import Entries, with_prefix_stripped

_EXACT = frozenset({"bootstrap.servers", "security.protocol", "client.dns.lookup"})
_FAMILIES = ("ssl.", "sasl.")


def is_connection_property(name: str) -> bool:
    """Tell whether a client property decides which cluster is reached, and as whom.

    Those are ``MirrorClientConfig.CLIENT_CONFIG_DEF``, which every client of a connector gets.
    Others tune how MirrorMaker 2 copies, which is nothing to a reader of its syncs.
    """
    return name in _EXACT or name.startswith(_FAMILIES)


def cluster_properties(connector: Entries, side: str) -> Entries:
    """Return how to connect to the ``source`` or ``target`` of a connector.

    This package consumes and asks as an admin client, so it takes the consumer's properties:
    ``source.consumer.*`` takes precedence over ``consumer.*``, and that over ``source.cluster.*``.
    What these lack comes from the admin client's, except what is empty there: it switches a
    protection off (``ssl.endpoint.identification.algorithm=``) for the admin client alone. The
    producer's are not read: its login may write.
    """
    admin = _layers(connector, "admin.", f"{side}.admin.")
    protected = {name: entry for name, entry in admin.items() if entry.value.strip()}
    own = _layers(connector, f"{side}.cluster.", "consumer.", f"{side}.consumer.")
    return protected | own


def _layers(connector: Entries, *prefixes: str) -> Entries:
    """Return the connection properties with these prefixes; a later one takes precedence."""
    return {
        name: entry
        for prefix in prefixes
        for name, entry in with_prefix_stripped(connector, prefix).items()
        if is_connection_property(name)
    }
