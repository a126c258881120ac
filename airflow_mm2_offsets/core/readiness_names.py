"""The names of the readiness checks, and what to do about each; docs/readiness.md lists them."""

from collections.abc import Mapping
from enum import StrEnum


class CheckName(StrEnum):
    """The checks, in the order of a report; users' alerts go by these names."""

    CHECKPOINT_READABLE = "checkpoint_readable"
    KEPT_PLAN = "kept_plan"
    IDS_UNCHANGED = "ids_unchanged"
    FENCE = "fence"
    JOB_FOLDERS = "job_folders"
    TARGET_FOLDERS = "target_folders"
    SINK = "sink"
    FOLDERS_READABLE = "folders_readable"
    FOLDERS_WRITABLE = "folders_writable"
    CONNECTION = "connection"
    SOURCE_REACHABLE = "source_reachable"
    TARGET_REACHABLE = "target_reachable"
    CONNECT_REACHABLE = "connect_reachable"
    CONNECTOR_RUNNING = "connector_running"
    TASKS_RUNNING = "tasks_running"
    JOB_CLUSTER = "job_cluster"
    SUBSCRIBE_PATTERN = "subscribe_pattern"
    SOURCE_PARTITIONS = "source_partitions"
    TARGET_PARTITIONS = "target_partitions"
    TRANSLATION = "translation"
    TARGET_RETENTION = "target_retention"
    MIRROR_SETTINGS = "mirror_settings"
    OFFSET_LAG_MAX = "offset_lag_max"
    SYNCS_EMITTED = "syncs_emitted"
    SYNC_AGE = "sync_age"
    REPLICATION_LAG = "replication_lag"
    LAG_SECONDS = "lag_seconds"
    HOLES = "holes"
    ARCHIVE_READABLE = "archive_readable"
    ARCHIVE_AGE = "archive_age"
    TOPIC_IDS = "topic_ids"
    LOG_APPEND_TIME = "log_append_time"
    ACTIVE_GROUPS = "active_groups"
    ACTIVE_PRODUCERS = "active_producers"
    CLOCKS = "clocks"
    TARGET_DAG = "target_dag"


NEXT_STEPS: Mapping[CheckName, str] = {
    CheckName.CHECKPOINT_READABLE: "give the job's checkpoint location, and see its storage",
    CheckName.KEPT_PLAN: "delete the plan's file, and a new plan is made",
    CheckName.IDS_UNCHANGED: "let the job commit a batch of the topic that exists now",
    CheckName.FENCE: "see where the job is, and which run moves it; `airflow-mm2-offsets jobs "
    "list`",
    CheckName.JOB_FOLDERS: "give the folders that the job itself writes",
    CheckName.TARGET_FOLDERS: "give a target folder that holds no job yet",
    CheckName.SINK: "give the target job a sink of its own, or migrate its checkpoint",
    CheckName.FOLDERS_READABLE: "correct the location, or the rights and login of its connection",
    CheckName.FOLDERS_WRITABLE: (
        "correct the rights; of an object store only a probe can tell: give probe_folder, a "
        "folder where a file may be written and removed"
    ),
    CheckName.CONNECTION: "correct the mm2 connection",
    CheckName.SOURCE_REACHABLE: "see the source's brokers, or use the policy disaster",
    CheckName.TARGET_REACHABLE: "see the target's brokers: without them there is no failover",
    CheckName.CONNECT_REACHABLE: "see that the Connect workers run, and the Connect URL",
    CheckName.CONNECTOR_RUNNING: "resume or restart the connector",
    CheckName.TASKS_RUNNING: "mend what the task's trace names, and restart it",
    CheckName.JOB_CLUSTER: "give the folders of the job on the source, or the other connection",
    CheckName.SUBSCRIBE_PATTERN: "give subscribe_pattern, the pattern of the job on the target",
    CheckName.SOURCE_PARTITIONS: "let the job read all partitions first",
    CheckName.TARGET_PARTITIONS: "see that MirrorMaker 2 has created topic and partitions",
    CheckName.TRANSLATION: "see the reason; docs/translation.md explains each answer",
    CheckName.TARGET_RETENTION: "lengthen retention.ms of the target topic",
    CheckName.MIRROR_SETTINGS: "correct the mm2 connection, or the connector",
    CheckName.OFFSET_LAG_MAX: "lower offset.lag.max of the connector",
    CheckName.SYNCS_EMITTED: "set emit.offset-syncs.enabled=true in the connector",
    CheckName.SYNC_AGE: "see that the connector runs and may write to the offset-syncs topic",
    CheckName.REPLICATION_LAG: "wait until MirrorMaker 2 has caught up, or give it more tasks",
    CheckName.LAG_SECONDS: (
        "see that the MirrorHeartbeatConnector runs and that MirrorMaker 2 copies its topic"
    ),
    CheckName.HOLES: "the target lacks these records: copy them again, or accept the gap",
    CheckName.ARCHIVE_READABLE: "give the archive's folder, and see the DAG that archives",
    CheckName.ARCHIVE_AGE: "run the DAG that archives the offset syncs",
    CheckName.TOPIC_IDS: "the topic was recreated: wait until MirrorMaker 2 has copied it again",
    CheckName.LOG_APPEND_TIME: (
        "set message.timestamp.type=CreateTime on the target topic, so that copies can be matched"
    ),
    CheckName.ACTIVE_GROUPS: "move these consumers too, or leave them on the source knowingly",
    CheckName.ACTIVE_PRODUCERS: "stop or move the producers: the source is still written to",
    CheckName.CLOCKS: "see that brokers, Connect workers and Airflow keep time by NTP",
    CheckName.TARGET_DAG: "see that the DAG that runs the job exists and is not paused",
}
"""What to do where a check itself names no step."""
