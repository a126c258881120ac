"""Asks the index alone: what the offset-syncs topic holds, and nothing else."""

from collections.abc import Iterator

from airflow_mm2_offsets.core import Extras, SyncIndex
from tests.support.mirror_world.draw import Drawn
from tests.support.mirror_world.judging import Judge

TOPIC = "orders"


def judge_index(drawn: Drawn) -> Iterator[Judge]:
    """Judge the answers to every position, by all syncs and by what compaction leaves of them."""
    for view, syncs in _views(drawn):
        index = SyncIndex.of_pairs({(TOPIC, 0): syncs})
        judge = Judge(drawn=drawn, asked=f"index of {view}")
        for position in range(drawn.world.source.high + 1):
            judge.judge(index.translate(TOPIC, 0, position, extras=Extras.POSSIBLE))
        yield judge


def _views(drawn: Drawn) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Yield the whole log, and the log with a cleaned part, of which only the last sync is left."""
    syncs = drawn.world.syncs.syncs
    if not syncs:
        return
    yield "all syncs", syncs
    if len(syncs) > 1:
        cleaned = drawn.random.choice((len(syncs), drawn.random.randrange(2, len(syncs) + 1)))
        yield f"syncs from {cleaned - 1} on", syncs[cleaned - 1 :]
