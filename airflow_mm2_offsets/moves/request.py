"""What a DAG, or a person, asks for: which job is moved, and how."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from airflow_mm2_offsets.core.policy import Policy, parse_policy
from airflow_mm2_offsets.errors import ConfigurationError, did_you_mean
from airflow_mm2_offsets.moves.jobs import SparkJob

_TRUTHS = {"true": True, "false": False, "": False, "none": False}
"""Jinja writes a param that is null as ``None``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveRequest:
    """A move as it is asked for; each step of it takes the same. Texts may be templates."""

    job: SparkJob | str
    """The job, or its name in the file of jobs."""
    to: str | None = None
    """The cluster that it goes to, by its alias; None: the other one. A move that names it moves no
    job back that is there already."""
    policy: str = "planned"
    """``planned``, ``disaster`` or ``drill``."""
    dry_run: bool | str = False
    """Whether each step only says what it would do."""
    source_is_gone: bool | str = False
    """In a disaster where the job's folder can't be reached: whether no driver of it runs, and none
    will be started there. Nothing can show that; the user says it."""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON, whose texts Airflow renders."""
        job = self.job.to_json() if isinstance(self.job, SparkJob) else self.job
        return {
            "job": job,
            "to": self.to,
            "policy": str(self.policy),
            "dry_run": self.dry_run,
            "source_is_gone": self.source_is_gone,
        }

    @classmethod
    def from_json(cls, values: object) -> "MoveRequest":
        """Return the request that ``to_json`` wrote, or a user has.

        Raises:
            ConfigurationError: A field is unknown, the policy is misspelt, or the job is none.
        """
        known = {each.name for each in fields(cls)}
        if not isinstance(values, Mapping) or "job" not in values:
            raise ConfigurationError(
                f"move is {values!r}; give a MoveRequest, or a mapping with job and some of "
                f"{', '.join(sorted(known - {'job'}))}",
                setting="move",
            )
        for name in values:
            if name not in known:
                hint = did_you_mean(str(name), known, otherwise="remove it")
                raise ConfigurationError(f"{name!r} is no field of a move; {hint}", setting="move")
        job = values["job"]
        request = cls(
            job=SparkJob.from_json(job) if isinstance(job, Mapping) else str(job),
            **{name: value for name, value in values.items() if name != "job"},
        )
        parse_policy(request.policy)
        return request

    @property
    def how(self) -> Policy:
        """The policy.

        Raises:
            ConfigurationError: It is misspelt.
        """
        return parse_policy(self.policy)

    @property
    def cluster(self) -> str | None:
        """The cluster that it goes to; a text without a name, as Jinja makes it, is None."""
        return None if str(self.to).lower() in {"", "none"} else str(self.to)

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing is changed.

        Raises:
            ConfigurationError: It is no truth value.
        """
        return _truth("dry_run", self.dry_run)

    @property
    def leaves_job_alone(self) -> bool:
        """Whether the job runs on: in a drill and in a dry run."""
        return self.how.leaves_job_alone or self.is_dry_run

    @property
    def is_source_gone(self) -> bool:
        """Whether the user says that no driver runs where the job's folder can't be reached.

        Raises:
            ConfigurationError: It is no truth value, or the policy is not ``disaster``.
        """
        is_gone = _truth("source_is_gone", self.source_is_gone)
        if is_gone and not self.how.source_may_be_lost:
            raise ConfigurationError(
                f"it is set, and the policy is {self.how}: only in a disaster can the job's folder "
                f"be lost",
                setting="source_is_gone",
            )
        return is_gone


def _truth(name: str, value: object) -> bool:
    try:
        return _TRUTHS[str(value).lower()]
    except KeyError as error:
        raise ConfigurationError(f"it is {value!r}; give True or False", setting=name) from error
