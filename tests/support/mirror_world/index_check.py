"""Judges answers of the index, which knows the offset syncs and nothing else."""

from collections.abc import Iterator

from airflow_mm2_offsets.core import Extras, SyncIndex, TopicPartition
from tests.support.mirror_world.detection import Readable
from tests.support.mirror_world.draw import Drawn
from tests.support.mirror_world.judging import Judge

TOPIC = "orders"
ORDERS = TopicPartition(TOPIC, 0)


def judge_index(drawn: Drawn) -> Iterator[Judge]:
    """Judge the answers to every position, by all syncs and by what compaction leaves of them."""
    for cleaned in _cleaned(drawn):
        log = drawn.world.syncs
        readable = Readable(
            syncs=log.syncs[max(0, cleaned) :],
            of_target=log.of_target[max(0, cleaned) :],
            complete=cleaned < 0,
        )
        complete = {ORDERS} if readable.complete else ()
        index = SyncIndex().extended({ORDERS: readable.syncs}, complete=complete)
        words = "all syncs" if readable.complete else f"syncs from {cleaned} on"
        judge = Judge(drawn=drawn, inputs=f"index of {words}", readable=readable)
        source = drawn.world.source
        for position in (*range(source.begin and 1), *range(source.begin, source.high + 1)):
            judge.judge(index.translate(TOPIC, 0, position, extras=Extras.POSSIBLE))
        yield judge


def _cleaned(drawn: Drawn) -> Iterator[int]:
    """Yield how many of the syncs compaction has removed: of a cleaned part the last is left.

    -1 stands for none, where that is known.
    """
    syncs = len(drawn.world.syncs.syncs)
    if syncs:
        yield -1
        yield 0
    if syncs > 1:
        yield drawn.random.choice((syncs - 1, drawn.random.randrange(1, syncs)))
