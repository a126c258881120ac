"""The step that starts a drill's job beside the running one."""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.providers.common.compat.sdk import Context
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from upath import UPath

from airflow_mm2_offsets.errors import (
    ConfigurationError,
    HandoverError,
    Mm2OffsetsError,
    NotReadyError,
    PlanError,
    as_class,
)
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.long_results import LongResults
from airflow_mm2_offsets.operators.settings import is_true
from airflow_mm2_offsets.operators.target_dag import find_dag_problems, has_dag_run
from airflow_mm2_offsets.spark.control import read_driver
from airflow_mm2_offsets.spark.drill import mark_drill, read_mark
from airflow_mm2_offsets.spark.drill_checks import (
    DrillFolders,
    find_drill_problems,
    open_drill_folders,
)
from airflow_mm2_offsets.spark.offsets import parse_offsets, shown_offsets
from airflow_mm2_offsets.spark.offsets_file import read_offsets
from airflow_mm2_offsets.triggers.drill import ENDED, read_run_state


def find_folder_problems(folders: DrillFolders, request_id: str) -> list[str]:
    """Return why no drill may use these folders now, as sentences; an earlier drill's run counts.

    Raises:
        DrillError: The folder or its mark can't be read.
        StopError: The control location of an earlier drill can't be read.
    """
    problems = find_drill_problems(folders, request_id)
    return [*problems, *_earlier_run_problems(folders.drill, request_id)]


def _earlier_run_problems(folder: UPath, request_id: str) -> list[str]:
    """Return why the run of an earlier drill, which may be queued, may yet use the folder."""
    mark = read_mark(folder)
    if mark is None or not mark.run_id or mark.request_id == request_id:
        return []
    state = read_run_state(mark.dag_id, mark.run_id)
    if state is None or state in ENDED:
        return []
    problem = (
        f"the run {mark.run_id!r} of DAG {mark.dag_id}, of the earlier drill "
        f"{mark.request_id!r}, is {state}: clear that drill's tear-down, or delete the run"
    )
    return [problem]


class StartDrillOperator(TriggerDagRunOperator):
    """Marks the drill's folder, and triggers the job's DAG for the target beside the running job.

    The running job, its control location and its fence are left alone. The DAG run gets ``conf``
    and in it ``folder``, the drill's, and ``drill``: true. A retry finds the run that an earlier
    try has triggered, and starts no second one.

    It takes all arguments of ``TriggerDagRunOperator``, too. ``trigger_run_id`` derives from this
    run's by default.

    Args:
        folder: The drill's folder, which is removed afterwards.
        control: The running job's control location.
        job_folders: The folders that the job's DAG is given as ``folder``, by what messages call
            them, such as ``{"source folder": ..., "target folder": ...}``.
        other_folders: What else the drill must keep away from, such as archive and reports.
        sinks: Where the running job writes: folders, or names of tables and topics; a list, or a
            text with commas. Sinks in ``job_folders`` follow the job to the drill's folder.
        honours_drill: The user's word that a run with ``conf["drill"]`` writes to none of the
            sinks that lie elsewhere. May be a templated string.
        request_id: The drill; by default the ids of DAG and run.
        conf: The DAG run's, with ``starting_offsets`` as Spark's JSON text, or ``@`` and the
            location of a file with it, and ``topic``.

    Raises:
        NotReadyError: The folder can't be used, an earlier drill's job still runs, or the DAG does
            not exist or is paused; each problem is named.
        HandoverError: The DAG run exists, and its drill is over.
        ConfigurationError: ``conf`` has no usable ``starting_offsets``.
        PlanError: The file that it names is gone, out of reach, or was changed.
        DrillError: The folder can't be marked.
    """

    operator_extra_links = page_links("run", beside=TriggerDagRunOperator)
    template_fields: Sequence[str] = (
        *TriggerDagRunOperator.template_fields,
        *("folder", "control", "job_folders", "other_folders", "sinks", "honours_drill"),
        "request_id",
    )

    def __init__(
        self,
        *,
        folder: str,
        control: str,
        job_folders: Mapping[str, str],
        other_folders: Mapping[str, str | None] | None = None,
        sinks: Sequence[str] | str = (),
        honours_drill: bool | str = False,
        request_id: str = "{{ dag.dag_id }}:{{ run_id }}",
        trigger_run_id: str = "{{ dag.dag_id }}__{{ run_id }}",
        skip_when_already_exists: bool | str = True,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(
            trigger_run_id=trigger_run_id,
            skip_when_already_exists=skip_when_already_exists,  # type: ignore[arg-type] # a template
            **kwargs,
        )
        self.folder = folder
        self.control = control
        self.job_folders = job_folders
        self.other_folders = other_folders or {}
        self.sinks = sinks
        self.honours_drill = honours_drill
        self.request_id = request_id

    @fails_at_once()
    def execute(self, context: Context) -> None:
        """Check, mark the folder, and trigger the DAG."""
        folder = storage_path(self.folder)
        offsets, results = self._read_offsets(), LongResults.of(context)
        self._check_ready(context)
        self._check_no_run(context, folder)
        dag_id, run_id = self.trigger_dag_id, str(self.trigger_run_id)
        mark_drill(folder, self.request_id, dag_id=dag_id, run_id=run_id)
        # The drill's own file of long offsets: it is removed with the drill's folder.
        argument = results.offsets_argument(offsets, beside=f"{self.folder.rstrip('/')}/drill.json")
        changed = {"folder": self.folder, "drill": True, "starting_offsets": argument}
        self.conf = {**(self.conf or {}), **changed}
        super().execute(context)

    def _read_offsets(self) -> str:
        """Return the offsets; raise without them: the job would then read the whole topic."""
        text = self.conf.get("starting_offsets") if isinstance(self.conf, Mapping) else None
        try:
            offsets = read_offsets(str(text), storage_path)
            parse_offsets(offsets)
        except Mm2OffsetsError as error:
            # A storage that refuses a file may answer a retry: the error stays retryable.
            kind = PlanError if isinstance(error, PlanError) else ConfigurationError
            message = (
                f"task {self.task_id}: conf says starting_offsets {shown_offsets(str(text))!r}; "
                f"give the translated offsets as Spark's JSON text: {error}"
            )
            raise as_class(kind, error, message) from error
        return offsets

    def _check_ready(self, context: Context) -> None:
        folders = open_drill_folders(
            storage_path,
            folder=self.folder,
            control=self.control,
            job_folders=self.job_folders,
            other_folders=self.other_folders,
            sinks=self.sinks,
            honours_drill=is_true(self, "honours_drill"),
        )
        problems = find_folder_problems(folders, self.request_id)
        if read_driver(storage_path(self.control)) is None:
            problems.append(
                f"no job has run with the control location {self.control}, and a drill is ended "
                f"through such a location: run the job under StopControl first"
            )
        problems += find_dag_problems(context, self.trigger_dag_id)
        if problems:
            listed = "\n".join(f"  - {problem}" for problem in problems)
            raise NotReadyError(f"the drill can't begin, and nothing was started:\n{listed}")

    def _check_no_run(self, context: Context, folder: UPath) -> None:
        """Raise where the DAG run exists without this drill's mark: the drill was torn down."""
        mark = read_mark(folder)
        if mark is not None and mark.request_id == self.request_id:
            return  # an earlier try may have triggered it
        run_id = str(self.trigger_run_id)
        if has_dag_run(context, self.trigger_dag_id, run_id):
            raise HandoverError(
                f"DAG {self.trigger_dag_id} has the run {run_id!r} already, and its drill was torn "
                f"down: nothing was started; start a new run of the drill"
            )
