"""Matching by content, on the smallest examples of what a restart leaves behind."""

import pytest

from airflow_mm2_offsets.core import (
    Evidence,
    SourceWindow,
    SyncIndex,
    TargetWindow,
    Translation,
    Watermarks,
)

TOPIC = "orders"
REWOUND = ((900, 900), (1000, 1000), (953, 1001), (1100, 1148))
"""Up to record 1000 was copied, then from 953 on again."""


def translate(
    syncs: tuple[tuple[int, int], ...],
    position: int,
    *,
    copied: list[int],
    target: tuple[int, int],
    source: tuple[int, int],
) -> Translation:
    """Translate with windows of both sides.

    Args:
        syncs: In log order.
        position: The next source offset to read.
        copied: The source offset that each target offset copies.
        target: The first and the last offset that was read there.
        source: The same of the source, where no offset is missing.
    """
    first, last = target
    evidence = Evidence(
        source=Watermarks(low=0, high=max(copied) + 1),
        target=Watermarks(low=0, high=len(copied)),
        target_window=TargetWindow.of(
            first, last, [(offset, copied[offset]) for offset in range(first, last + 1)]
        ),
        source_window=SourceWindow(
            first=source[0],
            last=source[1],
            records=[(offset, offset) for offset in range(source[0], source[1] + 1)],
        ),
    )
    index = SyncIndex.of_pairs({(TOPIC, 0): syncs})
    return index.translate(TOPIC, 0, position, evidence=evidence)


@pytest.mark.parametrize("position", [901, 930, 952])
def test_what_lies_just_before_a_rewind_is_found(position: int) -> None:
    """A record before the one that was copied again first exists once, and is found."""
    answer = translate(
        REWOUND,
        position,
        copied=[*range(1001), *range(953, 1101)],
        target=(900, 1001),
        source=(900, 953),
    )
    assert (answer.status, answer.basis, answer.target) == ("exact", "content", position)
