"""In simulated worlds of each kind, no plan has an answer above the truth.

Whatever is lost or read: the source, Connect, records; and while the world goes on.
"""

from collections.abc import Iterator
from types import MappingProxyType

import pytest

from tests.support.memory_brokers import memory_clients
from tests.support.mirror_world.cases import by_kind, check, some
from tests.support.mirror_world.kinds import Kind
from tests.support.mirror_world.plan_check import judge_plan

UNMENDED: MappingProxyType[str, str] = MappingProxyType({})


@pytest.fixture(autouse=True)
def _memory() -> Iterator[None]:
    with memory_clients():
        yield


@by_kind(UNMENDED)
def test_a_plan_loses_nothing(kind: Kind) -> None:
    """Each world is asked once, for some positions."""
    for drawn in some(60, kind):
        check(judge_plan(drawn))


@pytest.mark.xfail(strict=True, reason="A1, A2, A3, A7")
def test_a_plan_loses_nothing_where_kinds_meet() -> None:
    """The same in worlds of several kinds."""
    for drawn in some(400, alone=False):
        check(judge_plan(drawn))
