"""Every error this package raises, in one tree.

A message names the place (cluster, topic, partition, file), the values that disagree and the
next step. A leaf also inherits the built-in exception it resembles, so that code which knows
nothing of this package still catches it.
"""

import difflib
from collections.abc import Collection, Mapping
from typing import Any, Literal, TypedDict, TypeVar, Unpack, cast

from airflow_mm2_offsets.logins import without_login, without_logins


class ErrorFields(TypedDict, total=False):
    """What an error is about; a field that does not apply is absent."""

    cluster: str
    """What messages call the cluster: ``source``, ``target``."""
    servers: str
    """Its ``bootstrap.servers``."""
    topic: str
    partition: int
    position: int
    """The next offset to read that can't be used."""
    file: str
    setting: str
    """An argument of an operator, a field of a request, an option or a setting."""


class Mm2OffsetsError(Exception):
    """The root: catch it to catch everything this package raises on purpose."""

    retryable: bool = True
    """Whether the same try may succeed later; False: somebody has to change something first.

    A class says it for its errors. A storage that is out of reach says it for one error: it may
    come back, whatever was to be read from it.
    """

    def __init__(self, problem: str = "", **fields: Unpack[ErrorFields]) -> None:
        """Put the place before the problem: ``source: orders[2]: position 7 is ...``.

        Args:
            problem: What is wrong, with the values that disagree and the next step.
            fields: The place. A position alone stands in no place: name it in ``problem``.
        """
        self.fields = fields
        # Airflow's log shows it, and reports, spans and callbacks quote it.
        super().__init__(without_login(": ".join([*_place(fields), problem])))

    def to_json(self) -> dict[str, Any]:
        """Return class, message and fields as plain JSON; positions are text."""
        fields: dict[str, Any] = without_logins(self.fields)
        if "position" in fields:
            fields["position"] = str(fields["position"])
        return {"kind": type(self).__name__, "message": str(self), **fields}


ErrorT = TypeVar("ErrorT", bound=Mm2OffsetsError)


def as_class(kind: type[ErrorT], error: Mm2OffsetsError, message: str) -> ErrorT:
    """Return an error of another class that keeps the fields of ``error``."""
    other = kind(message)
    vars(other).update(vars(error))
    return other


def error_from_json(values: Mapping[str, Any]) -> Mm2OffsetsError:
    """Return the error that ``to_json`` describes; of the root's class if its class is unknown."""
    fields = {name: value for name, value in values.items() if name not in {"kind", "message"}}
    if "position" in fields:
        fields["position"] = int(fields["position"])
    kind = globals().get(values["kind"])
    if not (isinstance(kind, type) and issubclass(kind, Mm2OffsetsError)):
        kind = Mm2OffsetsError
    error = kind(values["message"])
    error.fields = cast("ErrorFields", fields)  # the message names them already
    return error


def did_you_mean(name: str, names: Collection[str], *, otherwise: str) -> str:
    """Return a question with the most similar of ``names``, or ``otherwise`` if none is similar."""
    similar = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {similar[0]}?" if similar else otherwise


_NAMES: tuple[Literal["file", "setting"], ...] = ("file", "setting")


def _place(fields: ErrorFields) -> list[str]:
    place = [fields["cluster"]] if "cluster" in fields else []
    if "servers" in fields:
        place = [f"{place[0]} (bootstrap.servers={fields['servers']})"]
    place += [fields[name] for name in _NAMES if name in fields]
    if "topic" in fields:
        partition = f"[{fields['partition']}]" if "partition" in fields else ""
        place.append(f"{fields['topic']}{partition}")
    return place


class WireFormatError(Mm2OffsetsError, ValueError):
    """A record does not have the layout that MirrorMaker 2 writes."""

    retryable = False


class PositionError(Mm2OffsetsError, ValueError):
    """A position is not a whole number from 0 to 2**63 - 1, or a map of positions is not one."""

    retryable = False


class ForeignPositionsError(PositionError):
    """Positions are of another cluster, or of a topic that was recreated, as a file beside says."""


class ConfigurationError(Mm2OffsetsError, ValueError):
    """A setting is missing, unknown, or contradicts another."""

    retryable = False


class PlanError(ConfigurationError):
    """A plan's file is not one to go by: damaged, edited, of other clusters or positions."""


class ClusterUnreachableError(Mm2OffsetsError, ConnectionError):
    """No broker of a cluster, or no Connect worker, answered in time."""


class ClusterSecurityError(ClusterUnreachableError):
    """A broker refuses the login of the settings, or they do not name its certificate's CA."""


class ClusterRefusedError(Mm2OffsetsError, RuntimeError):
    """A broker answered, and the answer was no: a missing right, or offsets that are gone."""


class MissingRightError(ClusterRefusedError):
    """A broker answered that the user may not do this."""


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

    retryable = False


class CheckpointNotBegunError(CheckpointError):
    """A Spark checkpoint has no batch yet: its job has yet to begin, or the location is wrong."""

    retryable = True


class StoredPositionsError(Mm2OffsetsError, ValueError):
    """Positions that another system keeps are missing, damaged, ambiguous or out of reach."""

    retryable = False


class StopError(Mm2OffsetsError, RuntimeError):
    """A Spark job did not prove that it has stopped."""


class TranslationRefusedError(Mm2OffsetsError, ValueError):
    """At least one partition has no answer that is known to lose nothing."""

    retryable = False


class NotReplicatedError(Mm2OffsetsError, TimeoutError):
    """MirrorMaker 2 had not copied everything before a position when the wait ended."""


class TargetJobError(Mm2OffsetsError, RuntimeError):
    """The job on the target cluster did not start from the translated positions."""

    retryable = False


class HandoverError(Mm2OffsetsError, RuntimeError):
    """What a failover read of the source job no longer holds: a job may have run since."""

    retryable = False


class LockedError(HandoverError):
    """Another run works on the job, or has moved it."""


class LostEntriesError(HandoverError):
    """A fence comes from an entry that the job's journal does not have: the journal lost some."""


class ApprovalError(Mm2OffsetsError, PermissionError):
    """A failover was rejected, or nobody approved it in time."""

    retryable = False


class NotReadyError(Mm2OffsetsError, RuntimeError):
    """A failover can't begin: each reason is named, and nothing was touched."""

    retryable = False


class DrillError(Mm2OffsetsError, RuntimeError):
    """A drill can't be started or removed: its folder is another's, or its job may still run."""


class ReconciliationError(Mm2OffsetsError, RuntimeError):
    """Source, target and sink differ by more than was announced, or could not be compared."""
