"""Runs tasks as Airflow's worker and triggerer do, in the test's own process."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import structlog
from airflow.models.trigger import Trigger
from airflow.providers.common.compat.module_loading import import_string
from airflow.providers.common.compat.sdk import BaseOperator, DagRunState
from airflow.sdk.api.datamodels._generated import DagRun, TIRunContext
from airflow.sdk.definitions.mappedoperator import MappedOperator
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time.comms import (
    DagRunStateResult,
    DeferTask,
    DRCount,
    ErrorResponse,
    GetConnection,
    GetDagRunState,
    GetDRCount,
    GetTaskRescheduleStartDate,
    GetXCom,
    GetXComSequenceSlice,
    OKResponse,
    RescheduleTask,
    SetXCom,
    TaskRescheduleStartDate,
    TICount,
    TriggerDagRun,
    XComResult,
    XComSequenceSliceResult,
)
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance, run
from airflow.triggers.base import BaseTrigger, TriggerEvent

try:
    from airflow.sdk.execution_time.comms import DagResult, GetDag
except ImportError:  # Airflow before 3.2 tells a task nothing about a DAG
    GetDag = DagResult = None  # type: ignore[assignment,misc]

try:
    from airflow.sdk.serde import serialize as encode
except ImportError:  # before Airflow 3.2
    from airflow.serialization.serialized_objects import BaseSerialization

    encode = BaseSerialization.serialize  # type: ignore[assignment]

from airflow_mm2_offsets.operators.links import PROBLEM
from airflow_mm2_offsets.triggers.polling import PollingTrigger

NOW = datetime(2026, 11, 21, tzinfo=UTC)


@dataclass(kw_only=True)
class Worker:
    """A supervisor of tasks: its state, and its answers to them."""

    run_id: str = "manual__1"
    conf: Mapping[str, Any] = field(default_factory=dict)
    xcoms: dict[tuple[str, str], Any] = field(default_factory=dict)
    """By task id and key, as the database would give them back."""
    paused: dict[str, bool] = field(default_factory=lambda: {"orders_stream": False})
    """Whether each existing DAG is paused."""
    triggered: dict[tuple[str, str], Any] = field(default_factory=dict)
    """The conf of each triggered run, by its DAG id and run id."""
    run_states: dict[tuple[str, str], str] = field(default_factory=dict)
    """The state of each triggered run, by its DAG id and run id; running unless it is here."""
    questions: list[Any] = field(default_factory=list)
    """What tasks have asked a person."""
    states: dict[str, str] = field(default_factory=dict)
    """Of the other tasks of the run."""
    map_index: int = -1
    """Of the task that runs: its place in a mapped group."""
    ti_count: int = 1
    """How many tasks of its id the group has."""
    rescheduled_from: datetime | None = None
    """The end of the first look of a task in reschedule mode."""
    try_id: UUID | None = None
    """Of the task's last try: Airflow keeps it when a deferred task goes on."""

    @property
    def results(self) -> dict[tuple[str, str], Any]:
        """All XComs but the messages of failed tasks: a task that fails keeps its own."""
        return {place: value for place, value in self.xcoms.items() if place[1] != PROBLEM}

    def send(self, msg: object) -> object:
        """Answer one message of the task."""
        if GetDag is not None and isinstance(msg, GetDag):
            return self._dag(msg.dag_id)
        answer = self._about_the_rest(msg)
        match msg:
            case SetXCom():
                self.xcoms[msg.task_id, msg.key] = json.loads(json.dumps(msg.value))
            case GetXCom() | GetXComSequenceSlice():
                answer = self._xcom(msg)
            case GetConnection():
                answer = ErrorResponse(error=ErrorType.CONNECTION_NOT_FOUND)
            case GetDRCount():
                runs = [each for each in self.triggered if each[0] == msg.dag_id]
                answer = DRCount(count=sum(run_id in (msg.run_ids or ()) for _, run_id in runs))
            case GetDagRunState():
                state = self.run_states.get((msg.dag_id, msg.run_id), "running")
                answer = DagRunStateResult(state=DagRunState(state))
            case RescheduleTask():
                self.rescheduled_from = self.rescheduled_from or msg.end_date
            case GetTaskRescheduleStartDate():
                answer = TaskRescheduleStartDate(start_date=self.rescheduled_from)
            case TriggerDagRun():
                answer = self._trigger(msg)
        return answer

    def _about_the_rest(self, msg: object) -> object:
        """Answer a message about a person, a variable, or the run's other tasks; None to all else.

        The variables of the environment are known without asking; there are no others.
        """
        match type(msg).__name__:
            case "GetVariable":
                return ErrorResponse(error=ErrorType.VARIABLE_NOT_FOUND)
            case "CreateHITLDetailPayload":
                self.questions.append(msg)
            case "GetTaskStates":
                return SimpleNamespace(task_states={self.run_id: self.states})
            case "GetTICount":
                return TICount(count=self.ti_count)
            case "GetTaskBreadcrumbs":
                crumbs = [{"task_id": name, "duration": 1.5} for name in self.states]
                return SimpleNamespace(breadcrumbs=crumbs)
        return None

    def _xcom(self, msg: GetXCom | GetXComSequenceSlice) -> object:
        value = self.xcoms.get((msg.task_id, msg.key))
        if isinstance(msg, GetXCom):
            return XComResult(key=msg.key, value=value)
        return XComSequenceSliceResult(root=[] if value is None else [value])

    def _trigger(self, msg: TriggerDagRun) -> object:
        if (msg.dag_id, msg.run_id) in self.triggered:
            return ErrorResponse(error=ErrorType.DAGRUN_ALREADY_EXISTS)
        self.triggered[msg.dag_id, msg.run_id] = msg.conf
        return OKResponse(ok=True)

    def _dag(self, dag_id: str) -> object:
        if dag_id not in self.paused:
            detail = {"status_code": 404, "message": "not found"}
            raise AirflowRuntimeError(
                ErrorResponse(error=ErrorType.API_SERVER_ERROR, detail=detail)
            )
        return DagResult.model_construct(dag_id=dag_id, is_paused=self.paused[dag_id])

    def run(
        self,
        task: BaseOperator | MappedOperator,
        after: DeferTask | None = None,
        event: Any = None,  # noqa: ANN401 - of many kinds
    ) -> Any:  # noqa: ANN401 - of many kinds
        """Run a task; return the message that ends this run of it.

        Args:
            task: Of a DAG.
            after: The message with which it was deferred, to go on from there.
            event: The trigger's.

        Raises:
            BaseException: What the task raised.
        """
        resumed = (
            {
                "next_method": after.next_method,
                "next_kwargs": encode({**(after.next_kwargs or {}), "event": event}),
            }
            if after
            else {}
        )
        instance = self._instance(task, resumed)
        log = structlog.get_logger("worker")
        try:
            _, message, error = run(instance, instance.get_template_context(), log)
        except UnboundLocalError as masking:
            # Before 3.3 Airflow counts the end of a task whose trigger failed, in a state not set.
            if not isinstance(masking.__context__, AirflowRuntimeError):
                raise
            raise masking.__context__ from None
        if error is not None:
            raise error
        return message

    def _instance(
        self, task: BaseOperator | MappedOperator, resumed: Mapping[str, Any]
    ) -> RuntimeTaskInstance:
        dag_run = DagRun.model_validate(
            {
                "dag_id": task.dag_id,
                "run_id": self.run_id,
                "run_after": NOW,
                "start_date": NOW,
                "run_type": "manual",
                "state": "running",
                "conf": dict(self.conf),
                "consumed_asset_events": [],
                **_NOT_SET,
            }
        )
        self.try_id = self.try_id if resumed and self.try_id else uuid4()
        return RuntimeTaskInstance.model_construct(
            id=self.try_id,
            task_id=task.task_id,
            dag_id=task.dag_id,
            run_id=self.run_id,
            try_number=1,
            map_index=self.map_index,
            dag_version_id=uuid4(),
            task=task,
            bundle_instance=None,
            _ti_context_from_server=TIRunContext(
                dag_run=dag_run,
                max_tries=0,
                task_reschedule_count=int(self.rescheduled_from is not None),
                **resumed,
            ),
            max_tries=0,
            start_date=NOW,
        )


_NOT_SET = {
    name: None
    for name, info in DagRun.model_fields.items()
    if info.is_required() and type(None) in getattr(info.annotation, "__args__", ())
}
"""The fields that this release of Airflow requires and that may be None."""


def rebuild(deferred: DeferTask) -> PollingTrigger:
    """Return the trigger as the triggerer makes it, from what the database keeps."""
    sent = json.loads(deferred.model_dump_json())["trigger_kwargs"]
    kept = Trigger._decrypt_kwargs(json.dumps(sent))  # noqa: SLF001 - no other way
    trigger = import_string(deferred.classpath)(**kept)
    assert isinstance(trigger, PollingTrigger)
    return trigger


def events(trigger: BaseTrigger) -> list[Any]:
    """Return the payloads of all that a trigger sends."""

    async def collect() -> list[TriggerEvent]:
        return [event async for event in trigger.run()]

    return [event.payload for event in asyncio.run(collect())]
