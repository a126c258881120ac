"""Builds the tasks of a fleet failover, wave by wave; ``fleet_tasks`` calls it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from airflow.providers.common.compat.sdk import (
    BaseOperator,
    TaskGroup,
    XComArg,
    chain,
    task_group,
)

from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.operators.approve import ApproveFailoverOperator
from airflow_mm2_offsets.operators.archive import ArchiveSyncsOperator
from airflow_mm2_offsets.operators.fleet import (
    THRESHOLDS,
    PreviewFleetOperator,
    ReadFleetManifestOperator,
)
from airflow_mm2_offsets.operators.fleet_order import FleetOrderGuard
from airflow_mm2_offsets.operators.fleet_report import ReportFleetOperator
from airflow_mm2_offsets.operators.fleet_wave import FleetWaveOperator
from airflow_mm2_offsets.operators.plan_settings import PLAN_SETTINGS
from airflow_mm2_offsets.sensors.fleet import JOB, MOVED, FleetTurnSensor
from airflow_mm2_offsets.task_groups import failover_tasks
from airflow_mm2_offsets.task_groups.first_gate import sources_of
from airflow_mm2_offsets.task_groups.gates import SAME_JOB, Gate
from airflow_mm2_offsets.task_groups.steps import OPERATORS

OperatorT = TypeVar("OperatorT", bound=BaseOperator)
_FAILOVER = "move"
"""The group of one job's failover in its wave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetTasks:
    """Adds the tasks of a fleet. Texts may be templates."""

    settings: Mapping[str, Any]
    """Arguments of several operators: each takes those that it has a template field of."""
    manifest: str
    waves: int
    at_once: int | str
    failover: Mapping[str, Any]
    """Arguments of ``failover_tasks``."""
    arguments: Mapping[str, Mapping[str, Any]]
    default_args: Mapping[str, Any]

    def add(self) -> None:
        """Add all tasks, one behind the other."""
        read = self._add(
            ReadFleetManifestOperator, "read_manifest", manifest=self.manifest, waves=self.waves
        )
        archive = self._add(
            ArchiveSyncsOperator,
            "archive_syncs",
            # In a disaster the topic may be lost, and the archive is what is left.
            pre_execute=Gate(
                mode=self.failover["mode"],
                runs_in=frozenset({FailoverMode.PLANNED}),
                needs="archive",
            ),
        )
        preview = self._add(
            PreviewFleetOperator,
            "preview",
            manifest=XComArg(read),
            plan_options=self._plan_options(),
        )
        approve = self._add(
            ApproveFailoverOperator,
            "approve_fleet",
            plan=XComArg(preview),
            forecast=XComArg(preview, "costs"),
            job=self.manifest,
            **{name: _pull(preview, "allowed", name) for name in THRESHOLDS},
        )
        before: Any = approve
        chain(read, archive, preview, approve)
        turns: dict[int, str] = {}
        ends: dict[int, str] = {}
        groups: list[Any] = []
        for wave in range(1, self.waves + 1):
            jobs = self._add(
                FleetWaveOperator,
                f"jobs_of_wave_{wave}",
                manifest=XComArg(read),
                preview=XComArg(preview),
                approval=XComArg(approve),
                wave=wave,
            )
            chain(before, jobs)
            before, turns[wave], ends[wave] = self._add_wave(jobs, wave)
            groups.append(before)
        report = self._add(
            ReportFleetOperator,
            "report_fleet",
            trigger_rule="all_done",
            manifest=XComArg(read),
            turns=turns,
            ends=ends,
        )
        # Of each wave: the first failure ends the later waves, while its neighbours are at work.
        chain(groups, report)

    def _plan_options(self) -> dict[str, Any]:
        """Return what each job's translation is told; what a task of its wave fills is not known.

        The check of each job takes it from that job's own task.
        """
        told = self.arguments.get("translate", {})
        return {
            name: value
            for name, value in told.items()
            if name in PLAN_SETTINGS and not sources_of(value)
        }

    def _add_wave(self, jobs: FleetWaveOperator, wave: int) -> tuple[Any, str, str]:
        """Add the group that is expanded over the jobs of a wave; return first and last task."""
        ids: list[str] = []

        @task_group(group_id=f"wave_{wave}")
        def group(job: Any) -> None:  # noqa: ANN401 - Airflow's stand-in for one of the dicts
            turn = self._add(
                FleetTurnSensor,
                "turn",
                job=job,
                last_task_id="",
                at_once=self.at_once,
                failover_mode=self.failover["mode"],
                deferrable=self.failover["deferrable"],
            )
            vars(turn)["map_index_template"] = _pull(turn, JOB, "name")
            failover = self._add_failover(turn)
            turn.last_task_id = failover.child_id("report")
            jobs.turn_task_id = turn.task_id
            chain(turn, failover)
            ids.extend([turn.task_id, turn.last_task_id])

        return group.expand(job=XComArg(jobs)), ids[0], ids[1]

    def _add_failover(self, turn: BaseOperator) -> TaskGroup:
        """Add the tasks that move one job; its settings come with the first task of its group."""

        def job(name: str) -> str:
            return _pull(turn, JOB, name)

        arguments = {
            "check": {
                **_spark_names(turn),
                "sink": job("target_output"),
                "subscribe_pattern": job("subscribe_pattern"),
                "txn_app_id": job("txn_app_id"),
            },
            "stop_source": {
                **_spark_names(turn),
                "heartbeat_timeout": job("heartbeat_timeout"),
                "kill_after": job("kill_after"),
            },
            "read_positions": {"saved_positions": job("saved_positions")},
            "wait_replicated": {"quiet_after": job("quiet_after")},
            "translate": {"give_up": job("give_up")},
            "approve": {
                **{name: job(name) for name in THRESHOLDS},
                "ask": job("ask"),
                "response_timeout": self.settings["response_timeout"],
            },
            "roll_back": {"on_failure": job("on_failure")},
        }
        names = ("stream_dag_id", "source_folder", "target_folder", "source_output")
        more = ("target_output", "source_is_gone", "changed_records")
        settings: dict[str, Any] = {name: job(name) for name in (*names, *more)}
        return failover_tasks(
            **settings,
            **self.failover,
            job_name=job("name"),
            left_out=f"{{{{ {_xcom(turn, MOVED)} or '' }}}}",
            held=_not_come(turn),
            guard=FleetOrderGuard(turn_task_id=turn.task_id, mode=self.failover["mode"]),
            arguments={
                name: {**arguments.get(name, {}), **self.arguments.get(name, {})}
                for name in OPERATORS
            },
            group_id=_FAILOVER,
            default_args={**self.default_args, "map_index_template": job("name")},
        )

    def _add(self, operator: type[OperatorT], task_id: str, **own: Any) -> OperatorT:
        fields = set(operator.template_fields)
        shared = {name: value for name, value in self.settings.items() if name in fields}
        defaults: dict[str, Any] = {"trigger_rule": "none_failed"}
        return operator(
            task_id=task_id, **{**defaults, **shared, **own, **self.arguments.get(task_id, {})}
        )


def _spark_names(turn: BaseOperator) -> dict[str, str]:
    """Return the folders of the job as Spark names them; empty texts where it says nothing else."""
    folder = f"{_xcom(turn, JOB)}['spark_folder']"
    return {
        f"spark_{name}": f"{{{{ {folder} ~ '/{name}' if {folder} else '' }}}}"
        for name in ("checkpoint", "control")
    }


def _not_come(turn: BaseOperator) -> str:
    """Return the template of why a job is held: only a turn that has come has a result."""
    reason = (
        f"task {turn.task_id} has not ended by itself, so it is not known that it is the turn of "
        f"this job: nothing was done. Clear that task, with all after it"
    )
    return f"{{{{ '' if {_xcom(turn, 'return_value')} else '{reason}' }}}}"


def _pull(task: BaseOperator, key: str, name: str) -> str:
    return f"{{{{ {_xcom(task, key)}['{name}'] }}}}"


def _xcom(task: BaseOperator, key: str) -> str:
    return f"ti.xcom_pull(task_ids='{task.task_id}', key='{key}', {SAME_JOB})"
