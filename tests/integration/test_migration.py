"""Queries with state and exactly-once sinks, moved to the other cluster by their checkpoints."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.migration import migrate_checkpoint
from airflow_mm2_offsets.spark.checkpoint import read_checkpoint
from airflow_mm2_offsets.spark.checkpoint_copy import CheckpointCopy, inventory
from stack.mirror import Stack
from tests.integration.mirrors import mirror
from tests.integration.stateful_queries import CUT, END, FLUSH, PARTITIONS, StatefulQueries

FAILS_AT = 95
"""The order over which queries stumble on the source: their last batch there stays pending."""
FILES = 3
STATE_METADATA = "state/0/_metadata/v2/0"
CLEAN, PENDING, DONE_UNSAID = "clean", "pending", "done-unsaid"
"""Queries on the source: stopped between batches; failed in one; killed after the sink had its
batch and before the checkpoint said so."""
CUSTOM = "custom"
"""A query with custom state (transformWithState), which reads files beside a topic."""
POISONED = "poisoned"
"""A query that was started against the target from the source's own checkpoint."""
KINDS: Mapping[str, Mapping[str, Any]] = {
    CLEAN: {"kind": "stateful", "state": "hdfs"},
    PENDING: {"kind": "stateful", "state": "rocksdb"},
    DONE_UNSAID: {"kind": "plain"},
}


@pytest.fixture(scope="module")
def queries(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StatefulQueries]:
    """Queries that were stopped on the source, all of whose input is on the target by now."""
    with mirror(stack) as made:
        made.configure(
            **{
                "replication.policy.class": (
                    "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
                )
            }
        )
        queries = StatefulQueries(
            stack=stack,
            mirror=made,
            folder=tmp_path_factory.mktemp("migration"),
            orders=made.create_topic(PARTITIONS),
            payments=made.create_topic(PARTITIONS),
        )
        queries.write(0, CUT)
        files = queries.folder / "files"
        files.mkdir()
        for number in range(FILES):
            (files / f"{number}.json").write_text('{"id":0,"user":"user 0"}\n')
        failures = queries.run(
            queries.query(CLEAN, **KINDS[CLEAN]),
            queries.query(PENDING, **KINDS[PENDING], fails_at=FAILS_AT),
            queries.query(DONE_UNSAID, **KINDS[DONE_UNSAID]),
            _custom(queries),
        )
        assert "left pending" in (failures.pop(PENDING) or "")
        assert set(failures.values()) == {None}
        commits = queries.folder / "source" / DONE_UNSAID / "commits"
        last = max(int(each.name) for each in commits.iterdir() if each.name.isdecimal())
        (commits / str(last)).unlink()
        (commits / f".{last}.crc").unlink()
        queries.write(CUT, END)
        queries.flush()
        queries.wait_copied()
        queries.add_partition()
        yield queries


def _custom(queries: StatefulQueries, **settings: Any) -> dict[str, Any]:
    files = str(queries.folder / "files")
    return queries.query(CUSTOM, kind="custom", state="rocksdb", files=files, **settings)


@pytest.fixture(scope="module")
def moved(queries: StatefulQueries) -> dict[str, dict[str, Any]]:
    """Return what each migration has done."""
    return {name: _migrate(queries, name) for name in KINDS}


def _migrate(queries: StatefulQueries, name: str) -> dict[str, Any]:
    source, target = (UPath(queries.folder / side / name) for side in ("source", "target"))
    return migrate_checkpoint(queries.pair, source, target)


@pytest.fixture(scope="module")
def finished(queries: StatefulQueries, moved: Mapping[str, Any]) -> Mapping[str, str | None]:
    """Go on with every query on the target, and run one on the source from the beginning."""
    assert moved
    poisoned = shutil.copytree(
        queries.folder / "source" / CLEAN, queries.folder / "source" / POISONED
    )
    # Of two queries with one id Spark would end the first.
    (poisoned / ".metadata.crc").unlink()
    (poisoned / "metadata").write_text(json.dumps({"id": str(uuid4())}))
    half = UPath(queries.folder / "target" / "half")
    CheckpointCopy.open(half, {"of": "a test"}).begin({"nothing": 1})
    _migrate(queries, CUSTOM)
    shutil.move(queries.folder / "source" / CUSTOM, queries.folder / "out-of-reach")
    settings = KINDS[DONE_UNSAID]
    return queries.run(
        *(queries.query(name, migrated=True, **KINDS[name]) for name in KINDS),
        _custom(queries, migrated=True),
        queries.query("one-cluster", **KINDS[CLEAN], batch_size=1000),
        queries.query("half", migrated=True, **settings),
        queries.query(POISONED, migrated=True, **KINDS[CLEAN])
        | {"checkpoint": str(queries.folder / "source" / POISONED)},
    )


def test_the_offsets_differ(moved: Mapping[str, Mapping[str, Any]]) -> None:
    """At the queries' positions, the source's offsets would lose records on the target."""
    for done in moved.values():
        used = [each for each in done["positions"] if each["use"] != "history"]
        assert all(int(each["target"]) < int(each["position"]) for each in used)
        assert {each["status"] for each in used} == {"exact"}
        assert done["max_reread"] == 0


def test_the_batches_are_those_of_the_original(
    queries: StatefulQueries, moved: Mapping[str, Mapping[str, Any]]
) -> None:
    """The migrated checkpoint keeps query id and batches, and has the topics' new names."""
    for name, done in moved.items():
        original = read_checkpoint(str(queries.folder / "source" / name))
        assert done["query_id"] == original.query_id
        assert done["committed_batch"] == original.committed_batch
        assert done["pending_batch"] == original.pending_batch
        assert (original.pending_batch is None) == (name == CLEAN)
        for topic, named in done["topics"].items():
            assert named == f"{queries.pair.naming.source_alias}.{topic}"
            assert any(f"must subscribe to {named}" in note for note in done["notes"])


def test_the_original_is_never_touched(
    queries: StatefulQueries, moved: Mapping[str, Mapping[str, Any]]
) -> None:
    """A second migration changes neither checkpoint, and returns the same result."""
    for name, done in moved.items():
        places = [UPath(queries.folder / side / name) for side in ("source", "target")]
        before = [inventory(place) for place in places]
        assert _migrate(queries, name) == done
        assert [inventory(place) for place in places] == before


def test_a_partition_that_only_the_target_has_is_reported(
    queries: StatefulQueries, moved: Mapping[str, Mapping[str, Any]]
) -> None:
    """An empty partition that only the target has is reported, and read from its beginning."""
    named = f"{queries.pair.naming.target_topic(queries.payments)}[{PARTITIONS}]"
    for name in (CLEAN, PENDING):
        assert any(note.startswith(named) for note in moved[name]["notes"])


@pytest.mark.parametrize("name", [CLEAN, PENDING])
def test_state_continues_in_mid_window(
    queries: StatefulQueries, finished: Mapping[str, str | None], name: str
) -> None:
    """Deduplication, join and windows give the rows of one cluster, in both state stores."""
    assert finished[name] is None
    assert finished["one-cluster"] is None
    expected = queries.rows("one-cluster")
    assert len(expected) > 20
    assert queries.rows(name) == expected


def test_an_exactly_once_sink_stays_exactly_once(
    queries: StatefulQueries, finished: Mapping[str, str | None]
) -> None:
    """A batch in the sink is not written twice, though the checkpoint does not commit it."""
    assert finished[DONE_UNSAID] is None
    numbers = Counter(row[0] for row in queries.rows(DONE_UNSAID).elements())
    twice = dict.fromkeys(range(-3, END - 3), 1)
    expected = Counter(range(END)) + Counter(twice)
    expected.update(FLUSH + partition for partition in range(PARTITIONS))
    assert numbers == expected


def test_a_copy_stands_alone(queries: StatefulQueries, finished: Mapping[str, str | None]) -> None:
    """State with absolute paths continues while the original can't be reached.

    Nothing is missed or counted twice, and nothing is written where the original was. The query
    reads files as well, whose log of the first batch has a line for each.
    """
    assert finished[CUSTOM] is None
    original = queries.folder / "out-of-reach"
    begun = (original / "sources" / "0" / "0").read_text().splitlines()
    assert len(begun) == 1 + FILES
    assert str(queries.folder / "source" / CUSTOM) in (original / STATE_METADATA).read_text()
    assert not (queries.folder / "source" / CUSTOM).exists()

    counts: Counter[str] = Counter()
    for user, count in queries.rows(CUSTOM):
        counts[user] = max(counts[user], count)
    numbers = [*range(END), *range(-3, END - 3), *(FLUSH + each for each in range(PARTITIONS))]
    expected = Counter(f"user {number % 3}" for number in numbers)
    expected["user 0"] += FILES
    assert counts == expected


def test_no_query_starts_from_half_a_copy(finished: Mapping[str, str | None]) -> None:
    """Spark fails at once on an unfinished copy."""
    assert "JsonParseException: Unrecognized token 'This'" in (finished["half"] or "")


def test_a_checkpoint_started_against_the_target_is_poisoned(
    queries: StatefulQueries, finished: Mapping[str, str | None]
) -> None:
    """Topics renamed by the policy are new to Spark, and its own are gone: it fails, too late.

    What it has written by then is found out, and the checkpoint is not migrated.
    """
    assert "deleted" in (finished[POISONED] or "")
    with pytest.raises(CheckpointError, match=r"poisoned: .* has no end, and batch") as caught:
        _migrate(queries, POISONED)
    assert "the job was started against another cluster" in str(caught.value)
