"""Worlds for pytest: a few of each kind alone, and what is not mended yet."""

from collections.abc import Iterable, Mapping
from itertools import islice

import pytest

from tests.support.mirror_world.draw import Drawn, worlds
from tests.support.mirror_world.judging import Judge
from tests.support.mirror_world.kinds import KINDS, Kind


def by_kind(unmended: Mapping[str, str]) -> pytest.MarkDecorator:
    """Run a test for each kind; those that are not mended yet must fail, with the reason."""
    return pytest.mark.parametrize(
        "kind",
        [
            pytest.param(
                kind,
                id=kind.name,
                marks=[pytest.mark.xfail(strict=True, reason=unmended[kind.name])]
                if kind.name in unmended
                else [],
            )
            for kind in KINDS
        ],
    )


def some(count: int, *kinds: Kind, alone: bool = True) -> Iterable[Drawn]:
    """Draw worlds."""
    return islice(worlds(1, kinds or KINDS, alone=alone), count)


def check(judge: Judge) -> None:
    """Fail with the first answer above the truth where something could have told."""
    for finding in judge.findings:
        assert not finding.is_known, str(finding)
