"""A Spark job and its homes: declared once, in a file of jobs or in a DAG's code.

``jobs_file`` reads the file; every step of a move takes the job.
"""

import re
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import Any, Final

from airflow_mm2_offsets.core.times import parse_seconds
from airflow_mm2_offsets.errors import ConfigurationError, did_you_mean
from airflow_mm2_offsets.locations import location_key
from airflow_mm2_offsets.logins import without_login

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_STAY: Final = re.compile(r"[2-9]|[1-9][0-9]+")
"""The name of the folder of a stay, but for the first."""

LOCATIONS: Final = frozenset(
    {"folder", "output", "spark_folder", "records", "archive", "saved_positions"}
)
"""The fields of homes and jobs that hold a location, which must not hold a login."""
_SECONDS: Final = frozenset({"heartbeat_timeout", "kill_after", "quiet_after"})
"""The fields of jobs that hold seconds; None: never."""


def refuse_login(name: str, location: str | None) -> None:
    """Raise if a location has a login in it: journals, fences and pages show locations.

    Raises:
        ConfigurationError: It has.
    """
    if location and without_login(location) != location:
        raise ConfigurationError(
            f"{without_login(location)} holds a login; keep it in an Airflow connection, and write "
            f"<protocol>://<conn_id>@<bucket>/<folder>",
            setting=name,
        )


def settle_command(journal: str, folder: str) -> str:
    """Return the command by which a person says that a job runs in a folder of its journal."""
    return f"`airflow-mm2-offsets jobs settle --journal {journal} --at {folder}`"


def settle_job_command(job: str) -> str:
    """Return the same command where the journal does not have all homes: the file of jobs does."""
    return f"`airflow-mm2-offsets jobs settle {job} --jobs FILE --at FOLDER`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where a job lives at one cluster: a folder with its checkpoint and its control location.

    Each stay has a folder of its own, as a Spark checkpoint is of one cluster and one query: the
    first is ``folder``, the next ones are ``<folder>/2``, ``<folder>/3``.
    """

    cluster: str
    """The cluster's alias, as MirrorMaker 2 has it."""
    folder: str
    """A location, as Airflow spells it."""
    output: str = ""
    """Where the job writes; by default ``output`` in the folder of the stay."""
    kafka_conn_id: str = ""
    """Airflow's connection of the cluster; by default ``kafka_<cluster>``."""
    spark_conn_id: str = "spark_default"
    """The connection that the job is submitted with there; it says how to kill a driver."""
    spark_folder: str = ""
    """The folder as Spark names it, where Airflow reaches it by another name, such as a mount."""

    def __post_init__(self) -> None:
        """Fill in what follows from the cluster.

        Raises:
            ConfigurationError: A location has a login in it.
        """
        for each in fields(self):
            if each.name in LOCATIONS:
                refuse_login(each.name, getattr(self, each.name))
        object.__setattr__(self, "folder", self.folder.rstrip("/") or "/")
        object.__setattr__(self, "spark_folder", self.spark_folder.rstrip("/"))
        object.__setattr__(self, "kafka_conn_id", self.kafka_conn_id or f"kafka_{self.cluster}")

    @property
    def checkpoint(self) -> str:
        """The job's checkpoint location."""
        return f"{self.folder}/checkpoint"

    @property
    def control(self) -> str:
        """The job's control location."""
        return f"{self.folder}/control"

    @property
    def sink(self) -> str:
        """Where the job writes."""
        return self.output or f"{self.folder}/output"

    @property
    def spark_sink(self) -> str:
        """Where the job writes, as Spark names it."""
        return self.output or f"{self.spark_folder or self.folder}/output"

    def spark_name(self, part: str) -> str | None:
        """Return ``checkpoint`` or ``control`` as Spark names it; None where that is the same."""
        return f"{self.spark_folder}/{part}" if self.spark_folder else None

    def stay(self, number: int) -> "Home":
        """Return the home of the job's ``number``th stay; 1 is the first."""
        if number == 1:
            return self
        spark_folder = self.spark_folder and f"{self.spark_folder}/{number}"
        return replace(self, folder=f"{self.folder}/{number}", spark_folder=spark_folder)

    def stay_in(self, folder: str) -> "Home | None":
        """Return the home of the stay in a folder, in any spelling; None if it is no stay's."""
        own, other = location_key(self.folder), location_key(folder)
        if other == own:
            return self
        number = other.removeprefix(f"{own}/")
        return self.stay(int(number)) if _STAY.fullmatch(number) else None

    def overlaps(self, other: "Home") -> bool:
        """Tell whether a stay of one may have the folder of the other's first stay."""
        return bool(self.stay_in(other.folder) or other.stay_in(self.folder))

    def __str__(self) -> str:
        """Return cluster and folder, for messages."""
        return f"{self.cluster} ({self.folder})"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkJob:
    """A streaming job, and all that a move needs to know of it."""

    name: str
    homes: tuple[Home, ...]
    """One at each of two clusters. The job runs at the first until its journal says otherwise. A
    job with one home can be stopped, and not moved."""
    dag: str | None = None
    """The DAG that runs the job; None where operators of the user's own submit it."""
    is_controlled: bool = True
    """Whether it runs under ``StopControl``, and obeys a fence; else its platform stops it."""
    mm2_conn_id: str = "mm2_default"
    """The connection of the MirrorMaker 2 between the clusters, in either direction."""
    mm2_back_conn_id: str | None = None
    """The connection of a MirrorMaker 2 that copies the other way; None: there is none."""
    records: str | None = None
    """The folder of all jobs' journals, which outlives either cluster's storage; by default
    ``journals`` in the job's first home."""
    archive: str | None = None
    """The folder of the archives of offset syncs: one for each connection, by its id."""
    saved_positions: str | None = None
    """Where the job's positions are saved, for a disaster."""
    heartbeat_timeout: float | None = None
    """Seconds of silence after which its driver counts as dead; None: never."""
    kill_after: float | None = None
    """Seconds after which a driver that has not stopped is killed; None: never."""
    quiet_after: float | None = None
    """Seconds without records after which a topic-partition counts as copied."""
    subscribe_pattern: str | None = None
    """The ``subscribePattern`` of the job on the target."""
    txn_app_id: str | None = None
    """What the job gives a Delta sink as ``txnAppId``."""
    changed_records: bool = False
    """Whether a transform changes records on their way."""
    honours_drill: bool = False
    """Whether it writes to none of ``writes`` where its DAG run's conf has ``drill``."""
    max_refused: int = 0
    """Topic-partitions without a proved answer that need no approval."""
    max_read_again: int = 0
    """Records processed twice that need no approval."""
    max_at_risk: int = 0
    """Records lost that need no approval."""
    wave: int = 1
    """When it moves in a fleet."""
    after: tuple[str, ...] = ()
    """The jobs of a fleet that move before it."""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check what nothing can be done without.

        Raises:
            ConfigurationError: The name can't be a folder's, there are not one or two homes at
                different clusters, they share folders, or a location has a login in it.
        """
        for each in fields(self):
            if each.name in LOCATIONS:
                refuse_login(each.name, getattr(self, each.name))
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(
                f"the job's name is {self.name!r}; give letters, digits, '.', '_' and '-'"
            )
        clusters = [home.cluster for home in self.homes]
        if len(set(clusters)) != len(clusters) or len(clusters) not in {1, 2}:
            raise ConfigurationError(
                f"job {self.name}: it has homes at {', '.join(clusters) or 'no cluster'}; give one "
                f"at each of the two clusters"
            )
        if len(self.homes) > 1 and self.homes[0].overlaps(self.homes[1]):
            raise ConfigurationError(
                f"job {self.name}: its homes {' and '.join(map(str, self.homes))} share folders, "
                f"as each stay of a job has a folder of its own; give two that do not"
            )

    @property
    def journal(self) -> str:
        """The folder of the job's journal."""
        records = self.records or f"{self.homes[0].folder}/journals"
        return f"{records.rstrip('/')}/{self.name}"

    def archive_of(self, mm2_conn_id: str) -> str | None:
        """Return the archive of one MirrorMaker 2's offset syncs; None: there is none."""
        return f"{self.archive}/{mm2_conn_id}" if self.archive else None

    def stay_in(self, folder: str) -> Home | None:
        """Return the home of the stay in a folder; None if it is no home's that is declared."""
        return next(filter(None, (home.stay_in(folder) for home in self.homes)), None)

    def home_of(self, folder: str) -> Home:
        """Return the home of a stay by its folder, as the journal has it.

        Raises:
            ConfigurationError: The folder is none of this job's.
        """
        if stay := self.stay_in(folder):
            return stay
        known = " and ".join(map(str, self.homes))
        raise ConfigurationError(
            f"job {self.name}: its journal {self.journal} says that it lives in {folder}, and its "
            f"homes are {known}. If that is another job's journal, give this job another name or "
            f"other records. If the homes were changed, say where it runs: "
            f"{settle_job_command(self.name)}"
        )

    def past_home_of(self, folder: str) -> Home:
        """Return the home of a stay of the past, which may not be declared any more."""
        return self.stay_in(folder) or Home(cluster="a former home", folder=folder)

    def other_home(self, home: Home) -> Home | None:
        """Return the first home at the other cluster; None if there is no other."""
        return next((each for each in self.homes if each.cluster != home.cluster), None)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON, without what has its default."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        homes = {each.cluster: _home_to_json(each) for each in self.homes}
        return {
            "name": self.name,
            "homes": homes,
            **{
                field.name: list(value) if isinstance(value, tuple) else value
                for field in fields(self)
                if field.name not in {"name", "homes"}
                and (value := values[field.name]) != field.default
            },
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "SparkJob":
        """Return the job that ``to_json``, or a file of jobs, describes.

        Raises:
            ConfigurationError: A field is missing, unknown, or of another kind.
        """
        kinds = {each.name: each.default for each in fields(cls)}
        for name in values:
            if name not in kinds:
                hint = did_you_mean(name, kinds, otherwise="remove it")
                raise ConfigurationError(
                    f"job {values.get('name')}: {name!r} is no field of a job; {hint}", setting=name
                )
        if lacking := [name for name in ("name", "homes") if name not in values]:
            raise ConfigurationError(f"a job lacks {' and '.join(lacking)}: {sorted(values)}")
        own: dict[str, Any] = {
            name: tuple(value) if isinstance(kinds[name], tuple) else value
            for name, value in values.items()
            if name != "homes"
        }
        own |= {
            name: parse_seconds(f"job {values['name']}: {name}", values[name], setting=name)
            for name in _SECONDS & own.keys()
        }
        return cls(homes=_homes(values["name"], values["homes"]), **own)


def _home_to_json(home: Home) -> dict[str, str]:
    values = asdict(home)
    defaults = {each.name: "" if each.default is MISSING else each.default for each in fields(Home)}
    if home.kafka_conn_id == f"kafka_{home.cluster}":
        values["kafka_conn_id"] = ""
    del values["cluster"]
    return {name: value for name, value in values.items() if value != defaults[name]}


def _homes(job: object, values: object) -> tuple[Home, ...]:
    if not isinstance(values, Mapping):
        raise ConfigurationError(
            f"job {job}: homes is {values!r}; give a folder for each of two clusters, such as "
            f"{{east: 's3://eu/orders', west: 's3://us/orders'}}"
        )
    known = {each.name for each in fields(Home)} - {"cluster"}
    homes = []
    for cluster, value in values.items():
        of_home = {"folder": value} if isinstance(value, str) else value
        if not isinstance(of_home, Mapping) or "folder" not in of_home or set(of_home) - known:
            raise ConfigurationError(
                f"job {job}: its home at {cluster} is {value!r}; give a folder, or a mapping with "
                f"folder and some of {', '.join(sorted(known - {'folder'}))}"
            )
        homes.append(Home(cluster=str(cluster), **of_home))
    return tuple(homes)
