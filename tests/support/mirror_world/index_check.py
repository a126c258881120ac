"""Asks the index alone: what the offset-syncs topic holds, and nothing else."""

from collections.abc import Iterator

from airflow_mm2_offsets.core import Extras, SyncIndex
from tests.support.mirror_world.draw import Drawn
from tests.support.mirror_world.judging import Judge
from tests.support.mirror_world.telling import Readable

TOPIC = "orders"


def judge_index(drawn: Drawn) -> Iterator[Judge]:
    """Judge the answers to every position, by all syncs and by what compaction leaves of them."""
    for cleaned in _cleaned(drawn):
        log = drawn.world.syncs
        readable = Readable(syncs=log.syncs[cleaned:], of_target=log.of_target[cleaned:])
        index = SyncIndex().extended({(TOPIC, 0): readable.syncs})
        judge = Judge(drawn=drawn, asked=f"index of syncs from {cleaned} on", readable=readable)
        for position in range(drawn.world.source.high + 1):
            judge.judge(index.translate(TOPIC, 0, position, extras=Extras.POSSIBLE))
        yield judge


def _cleaned(drawn: Drawn) -> Iterator[int]:
    """Yield how many of the syncs compaction has removed: of a cleaned part the last is left."""
    syncs = len(drawn.world.syncs.syncs)
    if syncs:
        yield 0
    if syncs > 1:
        yield drawn.random.choice((syncs - 1, drawn.random.randrange(1, syncs)))
