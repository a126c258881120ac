"""Every error this package raises, in one tree.

A message names the place (cluster, topic, partition, file), the values that disagree and the
next step. A leaf also inherits the built-in exception it resembles, so that code which knows
nothing of this package still catches it.
"""


class Mm2OffsetsError(Exception):
    """The root: catch it to catch everything this package raises on purpose."""


class WireFormatError(Mm2OffsetsError, ValueError):
    """A record does not have the layout that MirrorMaker 2 writes."""


class PositionError(Mm2OffsetsError, ValueError):
    """A position is not a whole number from 0 to 2**63 - 1, or a map of positions is not one."""


class ConfigurationError(Mm2OffsetsError, ValueError):
    """A setting is missing, unknown, or contradicts another."""


class ClusterUnreachableError(Mm2OffsetsError, ConnectionError):
    """No broker of a cluster, or no Connect worker, answered in time."""


class ClusterRefusedError(Mm2OffsetsError, RuntimeError):
    """A broker answered, and the answer was no: a missing right, or offsets that are gone."""


class TopicNotFoundError(Mm2OffsetsError, LookupError):
    """A topic does not exist on the cluster where it was looked for."""


class SyncsTopicError(Mm2OffsetsError, LookupError):
    """The offset-syncs topic is missing, or holds nothing to translate with."""


class ArchiveError(Mm2OffsetsError, ValueError):
    """An archive of offset syncs is damaged, incomplete, of other clusters, or out of reach."""


class ConnectError(Mm2OffsetsError, RuntimeError):
    """Kafka Connect refused a request, or a connector is not in the state that is needed."""


class CheckpointError(Mm2OffsetsError, ValueError):
    """A Spark checkpoint is missing, damaged, or not one of the Kafka source."""


class StopError(Mm2OffsetsError, RuntimeError):
    """A Spark job did not prove that it has stopped."""


class TranslationRefusedError(Mm2OffsetsError, ValueError):
    """At least one partition has no answer that is known to lose nothing."""


class NotReplicatedError(Mm2OffsetsError, TimeoutError):
    """MirrorMaker 2 had not copied everything before a position when the wait ended."""


class TargetJobError(Mm2OffsetsError, RuntimeError):
    """The job on the target cluster did not start from the translated positions."""


class NotReadyError(Mm2OffsetsError, RuntimeError):
    """A failover can't begin: each reason is named, and nothing was touched."""


class ReconciliationError(Mm2OffsetsError, RuntimeError):
    """Source, target and sink differ by more than was announced, or could not be compared."""
