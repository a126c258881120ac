"""How a job is moved: what may be missing, and whether the job is left alone."""

from dataclasses import dataclass

from airflow_mm2_offsets.errors import ConfigurationError, did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One way to move a job; ``POLICIES`` has all."""

    name: str
    source_may_be_lost: bool = False
    """Whether what is lost with the source cluster or its storage is a warning, not a failure."""
    leaves_job_alone: bool = False
    """Whether the job runs on: a second one starts on the target, in a throw-away folder."""

    heartbeat_timeout: float | None = None
    """Seconds of silence after which a driver counts as dead, where the job does not say; None:
    never."""

    @property
    def waits_for_copies(self) -> bool:
        """Whether the move waits until MirrorMaker 2 has copied all before the positions."""
        return not self.source_may_be_lost

    def __str__(self) -> str:
        """Return the name."""
        return self.name


PLANNED = Policy(name="planned")
"""Both clusters are up: the job is stopped with proof, and moved without loss."""
DISASTER = Policy(name="disaster", source_may_be_lost=True, heartbeat_timeout=60.0)
"""The source, or a part of it, is lost: the job is started on the target from what is left."""
DRILL = Policy(name="drill", leaves_job_alone=True)
"""A rehearsal: a second job starts on the target in a throw-away folder, and is removed."""
POLICIES = {policy.name: policy for policy in (PLANNED, DISASTER, DRILL)}


def parse_policy(name: object) -> Policy:
    """Return a policy by its name.

    Raises:
        ConfigurationError: There is no policy of that name.
    """
    if (policy := POLICIES.get(str(name))) is not None:
        return policy
    known = f"give one of {', '.join(POLICIES)}"
    hint = did_you_mean(str(name), POLICIES, otherwise="")
    raise ConfigurationError(f"policy is {name!r}; {hint}{hint and ' '}{known}", setting="policy")
