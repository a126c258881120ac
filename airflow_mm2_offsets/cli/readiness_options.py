"""The options of ``check`` that name folders, and what the user says of the job."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

from airflow_mm2_offsets.cli.clusters import Clusters
from airflow_mm2_offsets.cli.numbers import Number
from airflow_mm2_offsets.cli.options import read_text_option
from airflow_mm2_offsets.cli.params import Option
from airflow_mm2_offsets.core.readiness_names import CheckName

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_mm2_offsets.core.readiness import ReadinessCheck
    from airflow_mm2_offsets.readiness.request import MoreChecks


def _url(flag: str, explanation: str) -> Option:
    return Option(flag, metavar="URL", help=explanation)


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderOptions:
    """The job's folders; each that is not given is not checked."""

    checkpoint: Annotated[
        str | None, _url("--checkpoint", "The Spark job's checkpoint location.")
    ] = None
    control: Annotated[str | None, _url("--control", "Its control location.")] = None
    spark_checkpoint: Annotated[
        str | None,
        _url("--spark-checkpoint", "The checkpoint location as Spark names it, if otherwise."),
    ] = None
    spark_control: Annotated[
        str | None,
        _url("--spark-control", "The control location as Spark names it, if otherwise."),
    ] = None
    target_checkpoint: Annotated[
        str | None, _url("--target-checkpoint", "Where the target job is to keep its.")
    ] = None
    target_control: Annotated[
        str | None, _url("--target-control", "The target job's control location.")
    ] = None
    from_folder: Annotated[
        str | None, _url("--from-folder", "In a failback: the folder that the job comes from.")
    ] = None
    plan_path: Annotated[
        str | None, _url("--kept-plan", "The file of a plan that a failover keeps.")
    ] = None
    archive: Annotated[
        str | None, _url("--archive", "Archive of offset syncs; else the settings'.")
    ] = None
    skip_damaged: Annotated[
        bool, Option("--skip-damaged", help="Go on without damaged files of the archive.")
    ] = False
    saved_positions: Annotated[
        str | None,
        _url("--saved-positions", "In a disaster: positions that stand in for the checkpoint."),
    ] = None
    sink: Annotated[str | None, _url("--sink", "Where the target job is to write.")] = None
    probe_folder: Annotated[
        str | None,
        _url(
            "--probe-folder",
            "Write a file here, and remove it: only that shows what an object store allows.",
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """What the user says of the job."""

    positions: Annotated[
        str | None,
        Option(
            "--positions",
            metavar="FILE|JSON|-",
            help="Where the job stands, if no checkpoint is given, or in a disaster if it is lost.",
        ),
    ] = None
    source_is_gone: Annotated[
        bool,
        Option("--source-is-gone", help="In a disaster: your word that no driver of it runs."),
    ] = False
    exchanged: Annotated[
        bool,
        Option("--exchanged", help="The job moves against the copying: one-way failback."),
    ] = False
    subscribe_pattern: Annotated[
        str | None,
        Option(
            "--subscribe-pattern",
            metavar="REGEX",
            help="subscribePattern on the target; else the job's. Empty: it subscribes by name.",
        ),
    ] = None
    txn_app_id: Annotated[
        str | None,
        Option("--txn-app-id", metavar="ID", help="What the job gives its sink as txnAppId."),
    ] = None
    argument_max_bytes: Annotated[
        int | None,
        Option(
            "--argument-max-bytes",
            metavar="BYTES",
            type=Number(int, 1),
            help="As in Airflow's configuration: the longest list of topics that the job may get.",
        ),
    ] = None

    def for_request(self) -> dict[str, Any]:
        """Return the fields of a readiness request."""
        from airflow_mm2_offsets.spark.offsets import parse_offsets

        values = asdict(self)
        values.pop("exchanged")
        text = None if self.positions is None else read_text_option("--positions", self.positions)
        return values | {"positions": None if text is None else parse_offsets(text)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillOptions:
    """What a drill must keep apart; asked in mode drill."""

    drill_folder: Annotated[
        str | None, _url("--drill-folder", "In a drill: its folder, which is removed afterwards.")
    ] = None
    drill_sinks: Annotated[
        str | None,
        Option(
            "--drill-sinks",
            metavar="NAMES",
            help="Where the running job writes, with commas; else output in its folder.",
        ),
    ] = None
    reports: Annotated[str | None, _url("--reports", "The folder of reports.")] = None
    honours_drill: Annotated[
        bool,
        Option("--honours-drill", help="Your word that a drill's job writes to none of them."),
    ] = False

    def checks(
        self, clusters: Clusters, folders: FolderOptions
    ) -> "Mapping[CheckName, MoreChecks]":
        """Return the check of the drill's folder, if there is one."""
        drill_folder = self.drill_folder
        if drill_folder is None:
            return {}
        return {CheckName.DRILL_FOLDERS: lambda: self._check(drill_folder, clusters, folders)}

    def _check(
        self, drill_folder: str, clusters: Clusters, folders: FolderOptions
    ) -> "Iterable[ReadinessCheck]":
        from airflow_mm2_offsets.readiness.answers import of_sentences
        from airflow_mm2_offsets.spark.drill_checks import find_drill_problems, open_drill_folders

        source, target = map(_parent, (folders.checkpoint, folders.target_checkpoint))
        opened = open_drill_folders(
            clusters.open,
            folder=drill_folder,
            control=folders.control,
            job_folders={"source folder": source, "target folder": target},
            other_folders={
                "archive": folders.archive,
                "saved positions": folders.saved_positions,
                "reports folder": self.reports,
            },
            sinks=self.drill_sinks or (f"{source}/output" if source else ""),
            honours_drill=self.honours_drill,
        )
        problems = find_drill_problems(opened, request_id="")
        return of_sentences(CheckName.DRILL_FOLDERS, problems, otherwise=f"{opened.drill} is free")


def _parent(checkpoint: str | None) -> str | None:
    """Return the job's folder, which holds its checkpoint."""
    return checkpoint.rstrip("/").rpartition("/")[0] or "." if checkpoint else None
