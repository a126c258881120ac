"""The kinds of worlds: the steps that happen, how often, and the settings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from types import MappingProxyType
from typing import Any

from tests.support.mirror_world.steps import Step

Episode = Callable[[Random], list[Step]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One thing that sets a world apart."""

    name: str
    weights: Mapping[str, float] = field(default_factory=dict)
    """How often each action happens; ``grow`` 4, ``copy`` 8 and ``commit`` 3 always do."""
    episode: Episode | None = None
    """Steps that happen together, once or twice."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """See ``MirrorSettings``; a tuple is to choose from."""
    equal_records: bool = False
    mixes: bool = True
    """It also happens to worlds of other kinds."""


BASE: Mapping[str, float] = MappingProxyType({"grow": 4, "copy": 8, "commit": 3})


def amount(random: Random) -> int:
    """Draw how much of something happens: little as a rule."""
    return random.choice((1, 1, 2, 3, 5, 8, 13, 30))


def _steps(random: Random, *actions: str) -> list[Step]:
    """Make steps; an action after ``?`` happens or not."""
    taken = [each for each in actions if each[0] != "?" or random.random() < 0.5]
    return [Step(each.lstrip("?"), amount(random)) for each in taken]


def _second_life(random: Random) -> list[Step]:
    before = _steps(random, "grow", "grow", random.choice(("copy", "catch_up")), "?commit", "?grow")
    return [*before, *_steps(random, "reinstall", "?lose", "copy", "?unblock", "?copy")]


def _turned_round(random: Random) -> list[Step]:
    """MirrorMaker 2 begins to copy to a topic that others have filled, or an earlier life has."""
    begin = Step("alter_forward", random.choice((0, 10**6)))
    before = _steps(random, "grow", "grow", "foreign", "foreign", "?copy", "reinstall", "?archive")
    after = _steps(random, "copy", "?commit", "?archive", "grow", "copy", "?archive", "grow")
    return [*before, begin, *after, *_steps(random, "copy", "?grow", "?copy", "?commit")]


def _syncs_lost(random: Random) -> list[Step]:
    before = _steps(random, "grow", "grow", random.choice(("copy", "catch_up")), "?kill")
    return [*before, *_steps(random, "recreate_syncs", "?reset_offsets", "copy", "?copy")]


def _jump(random: Random) -> list[Step]:
    back = Step(random.choice(("alter_back", "alter_back", "reset_offsets")), 4 * amount(random))
    forth = Step(random.choice(("put_back", "put_back", "alter_forward")), 2 * amount(random))
    before = _steps(random, "grow", "grow", "copy", "copy", "?commit")
    return [*before, back, *_steps(random, "copy", "?commit"), forth, *_steps(random, "?copy")]


def _refilter(random: Random) -> list[Step]:
    back = Step("alter_back", 4 * amount(random))
    filtering = Step("refilter", random.choice((0, 30, 60)))
    return [*_steps(random, "grow", "copy", "copy"), back, filtering, *_steps(random, "?copy")]


def _recreated_target(random: Random) -> list[Step]:
    return _steps(random, "grow", "copy", "?commit", "recreate_target", "?kill", "?grow", "copy")


def _recreated_source(random: Random) -> list[Step]:
    steps = _steps(random, "grow", "copy", "?commit", "recreate_source", "grow", "?grow", "?kill")
    return [*steps, *_steps(random, "copy")]


def _emptied(random: Random) -> list[Step]:
    return _steps(random, "grow", "?copy", "expire_all", "?grow", "copy", "?commit")


def _late_start(random: Random) -> list[Step]:
    return [Step("grow", 30), Step("expire", random.randrange(30)), Step("copy", amount(random))]


def _truncated(random: Random) -> list[Step]:
    """Lose the target's last records; the task goes on, or begins again where it had committed."""
    before = _steps(random, "grow", "grow", random.choice(("copy", "catch_up")), "?commit", "?copy")
    lost = [Step("truncate", amount(random)), *_steps(random, "?kill", "?block", "grow", "copy")]
    return [*before, *lost, *_steps(random, "?unblock", "?commit", "?grow", "?copy", "?catch_up")]


def _late_sync(random: Random) -> list[Step]:
    before = _steps(random, "grow", "grow", "copy", "?commit", "?copy", "?alter_back")
    after = _steps(random, "?copy", "rebalance", "copy", "?commit", "send_late", "?grow", "?copy")
    return [*before, *_steps(random, "copy"), *after]


def _two_tasks(random: Random) -> list[Step]:
    before = _steps(random, "grow", "grow", "copy", "?commit", "copy", "rebalance", "copy")
    after = _steps(random, "write_late", "?copy", "?grow", "?write_late", "?commit", "?send_late")
    return [*before, *after, *_steps(random, "?copy")]


def _latest(random: Random) -> list[Step]:
    """MirrorMaker 2 begins at the end of a topic that has records; so do later beginnings."""
    before = _steps(random, "grow", "?grow", "begin_at_latest", "reset_offsets", "copy")
    return [*before, *_steps(random, "grow", "?grow", "copy", "?commit", "?kill", "grow", "copy")]


def _created_again(random: Random) -> list[Step]:
    """Create the connectors again: their committed offsets are lost, maybe the syncs topic too."""
    before = _steps(random, "grow", "grow", random.choice(("copy", "catch_up")), "?commit", "?grow")
    begin = random.choice(("begin_at_latest", "begin_at_earliest"))
    again = _steps(random, random.choice(("create_again", "reinstall")), begin, "copy", "grow")
    return [*before, *again, *_steps(random, "copy", "?commit", "?kill", "?grow", "?copy")]


def _hidden_rewind(random: Random) -> list[Step]:
    before = [*_steps(random, "grow", "copy", "commit", "skip", "skip", "grow", "lose", "copy")]
    return [*before, Step("kill"), Step("copy", random.choice((1, 2)))]


def _hidden_target(random: Random) -> list[Step]:
    before = _steps(random, "grow", "grow", "copy", "commit", "lose", "recreate_target")
    return [*before, Step("grow", 30), Step("copy", 30), *_steps(random, "unblock", "grow", "copy")]


KINDS = (
    Kind(name="plain"),
    Kind(name="holes", weights={"skip": 3}),
    Kind(name="transactions", weights={"begin": 2, "decide": 2}),
    Kind(
        name="uncommitted",
        weights={"begin": 2, "decide": 2},
        settings={"uncommitted": (True,)},
    ),
    Kind(name="compacted", weights={"skip": 1, "clean": 2}),
    Kind(name="restarts", weights={"kill": 2, "commit_unseen": 1, "write": 1, "stop": 0.5}),
    Kind(name="lost-syncs", weights={"block": 1, "lose": 1, "unblock": 1.5, "hold": 0.5}),
    Kind(name="retries", weights={"retry": 2}),
    Kind(name="overtaking", weights={"overtake": 1, "overtake_again": 1, "overtake_killed": 1}),
    Kind(name="exactly-once", weights={"kill": 1}, settings={"exactly_once": (True,)}),
    Kind(name="foreign", weights={"foreign": 2}),
    Kind(name="filter", settings={"dropped": (0.1, 0.3, 0.7)}),
    Kind(name="transform", settings={"changed": (0.1, 0.5, 1.0)}),
    Kind(name="stamps", settings={"stamped": (True,)}),
    Kind(name="append-time", settings={"append_time": (True,)}),
    Kind(name="append-time-later", weights={"restamp": 0.5}),
    Kind(name="equal-records", equal_records=True),
    Kind(name="late-start", episode=_late_start),
    Kind(name="retention", weights={"expire": 2}, episode=_emptied),
    Kind(name="target-retention", weights={"expire_target": 2}),
    Kind(name="target-compacted", weights={"clean_target": 1}),
    Kind(name="second-life", episode=_second_life),
    Kind(name="syncs-recreated", episode=_syncs_lost),
    Kind(name="jump", episode=_jump),
    Kind(name="refilter", episode=_refilter),
    Kind(name="archived", weights={"archive": 1}),
    Kind(name="misnamed", mixes=False),
    Kind(name="target-recreated", episode=_recreated_target),
    Kind(name="source-recreated", episode=_recreated_source),
)

LATER = (
    Kind(name="turned-round", weights={"archive": 0.5}, episode=_turned_round, mixes=False),
    Kind(name="truncated", episode=_truncated),
    Kind(name="late-sync", weights={"rebalance": 0.5, "send_late": 1}, episode=_late_sync),
    Kind(name="latest", episode=_latest),
    Kind(name="created-again", episode=_created_again),
)
"""Kinds that came later, beside those of ``KINDS``: the seeds of findings draw from these alone."""

ALL = (*KINDS, *LATER)
"""The kinds that are drawn."""

HIDING = (
    Kind(
        name="two-tasks",
        weights={"rebalance": 0.5, "write_late": 1, "send_late": 0.5},
        episode=_two_tasks,
        mixes=False,
    ),
    Kind(name="hidden-rewind", episode=_hidden_rewind, mixes=False),
    Kind(name="hidden-target", episode=_hidden_target, mixes=False),
)
"""Kinds made to show as little as possible; drawn on request, see ``telling``."""
