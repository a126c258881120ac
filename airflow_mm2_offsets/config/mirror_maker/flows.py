"""Which of the flows of a MirrorMaker 2 is meant."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from airflow_mm2_offsets.config.entries import Entries, Entry
from airflow_mm2_offsets.config.keys import SOURCE_ALIAS, TARGET_ALIAS, variable_of
from airflow_mm2_offsets.config.mirror_maker.config_providers import ConfigProviders
from airflow_mm2_offsets.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorFlow:
    """One flow ``A->B``, and the settings of its MirrorSourceConnector."""

    source: str
    target: str
    enabled: bool
    connector: Entries = field(repr=False)

    def __str__(self) -> str:
        """Return the flow as MirrorMaker 2 writes it."""
        return f"{self.source}->{self.target}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorMakerFile:
    """What a file says about a MirrorMaker 2, and this package's settings beside it."""

    flows: Sequence[MirrorFlow]
    providers: ConfigProviders
    settings: Entries = field(default_factory=dict, repr=False)


def choose_flow(
    flows: Sequence[MirrorFlow], source: Entry | None, target: Entry | None
) -> MirrorFlow:
    """Return the flow that the aliases name, or the only one that is enabled.

    Both aliases together may name a flow that is not enabled: a failover may have switched it off.

    Raises:
        ConfigurationError: They name none, or leave several.
    """
    named = [
        flow
        for flow in flows
        if (source is None or flow.source == source.value)
        and (target is None or flow.target == target.value)
    ]
    chosen = named if source and target else [flow for flow in named if flow.enabled]
    if len(chosen) == 1:
        return chosen[0]
    enabled = ", ".join(str(flow) for flow in flows if flow.enabled) or "none"
    others = ", ".join(str(flow) for flow in flows if not flow.enabled)
    asked = f"{_shown(source)}->{_shown(target)}" if source or target else "no flow"
    problem = "which several flows match" if chosen else "which matches no enabled flow"
    if not (source or target):
        problem = "and not exactly one is enabled"
    raise ConfigurationError(
        f"{asked} is chosen, {problem}. Enabled flows: {enabled}"
        + (f"; not enabled: {others}" if others else "")
        + f". Choose one by {SOURCE_ALIAS} and {TARGET_ALIAS}, or by the variables "
        f"{variable_of(SOURCE_ALIAS)} and {variable_of(TARGET_ALIAS)}"
    )


def _shown(alias: Entry | None) -> str:
    return alias.value if alias else "*"
