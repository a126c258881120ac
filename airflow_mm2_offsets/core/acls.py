"""The rights on both clusters that each task needs, as Kafka's access control lists (ACLs) say it.

``kafka.acls`` names a missing one, ``planning.acls`` gives those of a pair of clusters. Names of
operations and options are those of ``kafka-acls`` and of ``org.apache.kafka.common.acl``. Read on
a topic implies Describe (``AclAuthorizer``'s rule, kept by ``StandardAuthorizerData``).
"""

import shlex
from dataclasses import dataclass
from enum import StrEnum

ADMIN_FILE = "admin.properties"
"""What commands call the client properties of an administrator."""


class Operation(StrEnum):
    """What a principal may do."""

    READ = "Read"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"


class Resource(StrEnum):
    """What it may do that to."""

    TOPIC = "topic"
    GROUP = "group"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Acl:
    """A right that a principal needs."""

    resource: Resource
    name: str
    """The topic's or the group's; ``*`` stands for all."""
    operation: Operation
    is_prefix: bool = False
    """Whether it is for all names that begin with ``name``."""

    def __str__(self) -> str:
        """Return it as messages name it: ``Read on topic orders``."""
        if self.resource is Resource.CLUSTER:
            return f"{self.operation} on the cluster"
        return f"{self.operation} on {self.resource} {self.name}{'*' if self.is_prefix else ''}"

    def command(self, principal: str, servers: str) -> str:
        """Return the ``kafka-acls`` command that grants it.

        Args:
            principal: As the broker names it: ``User:airflow``.
            servers: ``bootstrap.servers`` for an administrator.
        """
        words = ["kafka-acls", "--bootstrap-server", servers, "--command-config", ADMIN_FILE]
        words += ["--add", "--allow-principal", principal, "--operation", self.operation.value]
        words.append(f"--{self.resource}")
        if self.resource is not Resource.CLUSTER:
            words.append(self.name)
        if self.is_prefix:
            words += ["--resource-pattern-type", "prefixed"]
        return shlex.join(words)


class Place(StrEnum):
    """What a right is on."""

    SOURCE_TOPICS = "the job's topics on the source"
    TARGET_TOPICS = "their copies on the target"
    SYNCS_TOPIC = "the offset-syncs topic"
    SOURCE_HEARTBEATS = "MirrorMaker 2's heartbeats on the source"
    HEARTBEATS_TOPIC = "MirrorMaker 2's heartbeats on the target"
    SOURCE_GROUPS = "all consumer groups of the source"
    TARGET_GROUPS = "all consumer groups of the target"
    CHECKPOINTS_TOPIC = "MirrorMaker 2's checkpoints on the target"
    SOURCE_CLUSTER = "the source cluster"


@dataclass(frozen=True, slots=True)
class Right:
    """An operation on a place."""

    operation: Operation
    place: Place

    def __str__(self) -> str:
        """Return it as the documentation names it."""
        return f"{self.operation} on {self.place}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRights:
    """The rights of a kind of task: no more, and no less."""

    task: str
    used_by: tuple[str, ...]
    """Operators and sensors by class, commands by name."""
    rights: tuple[Right, ...]


_SYNCS = Right(Operation.READ, Place.SYNCS_TOPIC)
_SOURCE = Right(Operation.READ, Place.SOURCE_TOPICS)
_TARGET = Right(Operation.READ, Place.TARGET_TOPICS)
_HEARTBEATS = Right(Operation.READ, Place.HEARTBEATS_TOPIC)
_SOURCE_IDS = Right(Operation.DESCRIBE, Place.SOURCE_TOPICS)
_TARGET_IDS = Right(Operation.DESCRIBE, Place.TARGET_TOPICS)
_PLAN = (_SYNCS, _SOURCE, _TARGET, Right(Operation.DESCRIBE_CONFIGS, Place.TARGET_TOPICS))
"""Compaction on the target explains a record that only the source has."""
_CHECK = (
    *(*_PLAN, _HEARTBEATS),
    Right(Operation.DESCRIBE, Place.SOURCE_GROUPS),
    Right(Operation.DESCRIBE, Place.SOURCE_CLUSTER),
)

TASK_RIGHTS: tuple[TaskRights, ...] = (
    TaskRights(task="syncs", used_by=("syncs",), rights=(_SYNCS,)),
    TaskRights(
        task="ids",
        used_by=(
            "ReadSparkCheckpointOperator",
            "SaveSparkPositionsOperator",
            # As steps of a move: they read where the job has stopped.
            *("StopSparkStreamingOperator", "SparkStoppedSensor"),
            "TriggerTargetDagOperator",
            "HandOverOperator",
        ),
        rights=(_SOURCE_IDS, _TARGET_IDS),
    ),
    TaskRights(
        task="wait", used_by=("Mm2ReplicatedSensor",), rights=(_SYNCS, _SOURCE, _TARGET_IDS)
    ),
    TaskRights(
        task="translate",
        used_by=(
            *("TranslateOffsetsOperator", "MigrateSparkCheckpointOperator"),
            *("translate", "plan", "serve", "check-connection"),
        ),
        rights=_PLAN,
    ),
    TaskRights(
        task="archive",
        used_by=("ArchiveSyncsOperator", "archive run"),
        # An archive holds all syncs, and MirrorMaker 2 copies its heartbeats as well.
        rights=(
            *(_SYNCS, _SOURCE_IDS, _TARGET_IDS),
            Right(Operation.DESCRIBE, Place.SOURCE_HEARTBEATS),
            Right(Operation.DESCRIBE, Place.HEARTBEATS_TOPIC),
        ),
    ),
    TaskRights(
        task="forecast",
        used_by=("TranslateOffsetsOperator", "PreviewFleetOperator", "forecast"),
        rights=(*_PLAN, _HEARTBEATS),
    ),
    TaskRights(
        task="groups",
        used_by=("SyncConsumerGroupsOperator", "groups", "the DAG mm2_sync_groups"),
        rights=(
            *_PLAN,
            Right(Operation.DESCRIBE, Place.SOURCE_GROUPS),
            Right(Operation.DESCRIBE, Place.SOURCE_CLUSTER),
            Right(Operation.READ, Place.TARGET_GROUPS),
        ),
    ),
    TaskRights(
        task="checkpointed_groups",
        used_by=("groups --offsets-from checkpoints",),
        rights=(
            Right(Operation.READ, Place.CHECKPOINTS_TOPIC),
            _TARGET,
            Right(Operation.READ, Place.TARGET_GROUPS),
        ),
    ),
    TaskRights(
        task="publish",
        used_by=("PublishPositionsOperator",),
        rights=(_SOURCE, Right(Operation.READ, Place.SOURCE_GROUPS)),
    ),
    TaskRights(task="check", used_by=("CheckFailoverOperator", "check"), rights=_CHECK),
    TaskRights(
        task="doctor",
        used_by=("doctor",),
        rights=(
            *(_SYNCS, _SOURCE, _TARGET),
            Right(Operation.DESCRIBE, Place.HEARTBEATS_TOPIC),
            Right(Operation.DESCRIBE_CONFIGS, Place.SYNCS_TOPIC),
            Right(Operation.DESCRIBE_CONFIGS, Place.SOURCE_TOPICS),
            Right(Operation.DESCRIBE_CONFIGS, Place.TARGET_TOPICS),
        ),
    ),
    TaskRights(
        task="reconcile",
        used_by=("ReconcileOperator",),
        rights=(_SYNCS, _SOURCE, _TARGET),
    ),
    TaskRights(
        task="failover",
        used_by=("the task group mm2_failover", "the DAGs mm2_failover, mm2_fleet and mm2_drill"),
        rights=_CHECK,
    ),
    TaskRights(
        task="apply",
        used_by=("ApplyMirrorMakerOperator",),
        rights=(
            Right(Operation.DESCRIBE, Place.SYNCS_TOPIC),
            Right(Operation.DESCRIBE, Place.SOURCE_HEARTBEATS),
            Right(Operation.DESCRIBE, Place.CHECKPOINTS_TOPIC),
        ),
    ),
    TaskRights(
        task="offsets",
        used_by=("AlterConnectorOffsetsOperator",),
        rights=(_SOURCE_IDS,),
    ),
    TaskRights(task="stream", used_by=("the Spark job itself",), rights=(_SOURCE, _TARGET)),
)
"""A failover checks, waits, translates and migrates: it needs what its checks need."""

OF_SAME_OFFSETS = (Right(Operation.DESCRIBE_CONFIGS, Place.SOURCE_TOPICS),)
"""Further rights of ``PLANNING`` where copies keep their offsets: compaction explains a hole."""
PLANNING = frozenset({"translate", "forecast", "check", "failover"})
"""The tasks that make a plan."""

WITHOUT_RIGHTS = (
    *("ApproveFailoverOperator", "ReportFailoverOperator", "RollbackFailoverOperator"),
    *("ApproveFleetOperator", "ReportFleetOperator", "FleetTurnSensor"),
    *("StartDrillOperator", "TearDownDrillOperator", "SparkStartedSensor"),
    *("ReadConnectorOffsetsOperator", "ResetConnectorOffsetsOperator"),
    *("RestartFailedTasksOperator", "SetConnectorStateOperator", "ConnectorStateSensor"),
    *("acls", "archive show", "checkpoint show", "jobs", "stop"),
)
"""What asks no Kafka cluster."""
