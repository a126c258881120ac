"""Groups of two clusters in memory, with a simulated MirrorMaker 2 between them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.archive.update import archive_syncs
from airflow_mm2_offsets.core import OffsetMapping, TopicPartition
from airflow_mm2_offsets.core.group_offsets import GroupRules
from airflow_mm2_offsets.core.wire import Checkpoint, encode_checkpoint
from airflow_mm2_offsets.errors import ConfigurationError, SyncsTopicError
from airflow_mm2_offsets.groups import (
    OffsetsFrom,
    parse_selection,
    publish_positions,
    sync_groups,
)
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.testing import Mm2Simulation, Record, simulated_mm2

ORDERS, COPY = TopicPartition("orders", 0), TopicPartition("source.orders", 0)
ALL = parse_selection(".*")


@pytest.fixture
def mm2() -> Iterator[Mm2Simulation]:
    with simulated_mm2() as made:
        made.source.produce("orders", 0, [b"%d" % number for number in range(500)])
        made.mirror()
        yield made


def _commit(mm2: Mm2Simulation, **groups: int) -> None:
    for group, offset in groups.items():
        mm2.source.group_offsets.setdefault(group, {})[ORDERS] = (offset, "")


def _sync(mm2: Mm2Simulation, **options: Any) -> dict[str, Any]:
    return sync_groups(mm2.pair, options.pop("selection", ALL), **options).to_json()


def _statuses(report: dict[str, Any]) -> dict[str, str]:
    return {each["group"]: each["status"] for each in report["offsets"]}


def test_groups_continue_where_they_are(mm2: Mm2Simulation) -> None:
    """Several positions of one topic-partition, with one read of the syncs."""
    _commit(mm2, first=120, second=300, third=300)
    report = _sync(mm2)
    offsets = {group: commits[COPY][0] for group, commits in mm2.target.group_offsets.items()}
    assert offsets == {"first": 120, "second": 300, "third": 300}
    assert report["reads"]["syncs_topic_reads"] == 1
    assert report["reads"]["evidence_rounds"] == 1
    assert report["totals"]["max_reread"] == 0
    assert _statuses(_sync(mm2)) == dict.fromkeys(offsets, "unchanged")


def test_a_dry_run_commits_nothing(mm2: Mm2Simulation) -> None:
    """It says what would be."""
    _commit(mm2, first=120)
    report = _sync(mm2, rules=GroupRules(dry_run=True))
    assert _statuses(report) == {"first": "committed"}
    assert report["summary"].startswith("DRY RUN, nothing was committed: 1 offsets of 1 groups")
    assert mm2.target.group_offsets == {}


def test_what_is_not_mirrored_is_named(mm2: Mm2Simulation) -> None:
    """A topic without a sync, a deleted partition, a topic that the target lacks; others go on."""
    _commit(mm2, first=120)
    mm2.source.group_offsets["first"] |= {
        TopicPartition("payments", 0): (3, ""),
        TopicPartition("orders", 7): (3, ""),
    }
    mm2.write_sync("refunds", 0, 1, 1)
    mm2.source.create_topic("refunds")
    mm2.source.group_offsets["first"][TopicPartition("refunds", 0)] = (0, "")
    report = _sync(mm2)
    reasons = {
        each["topic"]: each["reason"] for each in report["offsets"] if each["partition"] == 0
    }
    assert report["totals"]["committed"] == 1
    assert report["totals"]["refused"] == 3
    assert "no offset sync names it" in reasons["source.payments"]
    assert "source.refunds[0] does not exist on the target yet" in reasons["source.refunds"]


def test_an_active_group_is_refused_and_others_go_on(mm2: Mm2Simulation) -> None:
    """Its consumers commit for themselves."""
    _commit(mm2, active=120, empty=120)
    mm2.target.groups["active"] = [COPY]
    assert _statuses(_sync(mm2)) == {"active": "refused", "empty": "committed"}
    assert mm2.target.group_offsets.keys() == {"empty"}


def test_a_group_that_moved_is_left_alone(mm2: Mm2Simulation) -> None:
    """A consumer's own commit on the target has no marker: a zombie on the source moves nothing."""
    _commit(mm2, moved=120)
    _sync(mm2)
    mm2.target.group_offsets["moved"][COPY] = (200, "")
    _commit(mm2, moved=400)
    assert _statuses(_sync(mm2)) == {"moved": "kept"}
    assert mm2.target.group_offsets["moved"][COPY] == (200, "")
    assert _statuses(_sync(mm2, rules=GroupRules(overwrite_others=True))) == {"moved": "committed"}


@pytest.mark.parametrize("offsets_from", OffsetsFrom)
def test_a_group_that_moved_is_not_moved_on_its_other_partitions(
    mm2: Mm2Simulation, offsets_from: OffsetsFrom
) -> None:
    """Its consumer has read nothing of them yet, and committed for one that no run names.

    A zombie on the source moves nothing, and a run with other topics sees it, too.
    """
    _commit(mm2, moved=120, other=120)
    for group in ("moved", "other"):
        _checkpoint(mm2, group, 120, 1)
    _sync(mm2, offsets_from=offsets_from)
    before = mm2.target.group_offsets["moved"][COPY]
    mm2.target.group_offsets["moved"][TopicPartition("local", 3)] = (200, "")
    _commit(mm2, moved=499, other=499)
    for group in ("moved", "other"):
        _checkpoint(mm2, group, 499, 499)
    report = _sync(mm2, offsets_from=offsets_from)
    assert _statuses(report) == {"moved": "kept", "other": "committed"}
    assert mm2.target.group_offsets["moved"][COPY] == before
    assert "commit 200 on local[3] is not ours" in report["offsets"][0]["reason"]


def _forget_old_syncs(mm2: Mm2Simulation) -> None:
    """Keep the newest sync alone, and delete the records that evidence would be read from."""
    mm2.source.produce("orders", 0, [b"%d" % number for number in range(500, 2000)])
    mm2.mirror()
    topic = mm2.pair.syncs_topic
    mm2.source.delete_records(topic, 0, mm2.source.log(topic, 0).high - 1)
    mm2.target.delete_records(COPY.topic, 0, 300)


def test_a_lagging_group_keeps_its_commit_when_the_syncs_are_forgotten(mm2: Mm2Simulation) -> None:
    """It is refused from then on, but Kafka does not expire what was committed exactly."""
    _commit(mm2, billing=400, active=400)
    _sync(mm2)
    _forget_old_syncs(mm2)
    mm2.target.groups["active"] = [COPY]
    report = _sync(mm2)
    assert _statuses(report) == {"billing": "refused", "active": "refused"}
    committed = {each["group"]: each["committed"] for each in report["offsets"]}
    assert committed == {"billing": "400", "active": None}


def test_a_rewound_group_is_followed_only_on_demand(mm2: Mm2Simulation) -> None:
    """By default the target keeps the later commit."""
    _commit(mm2, billing=400)
    _sync(mm2)
    _commit(mm2, billing=100)
    assert _statuses(_sync(mm2)) == {"billing": "unchanged"}
    assert mm2.target.group_offsets["billing"][COPY][0] == 400
    _sync(mm2, rules=GroupRules(allow_rewind=True))
    assert mm2.target.group_offsets["billing"][COPY][0] == 100


def test_two_groups_that_become_one_are_refused(mm2: Mm2Simulation) -> None:
    """In one run, and in two runs that each map another group."""
    _commit(mm2, eu=100, us=200)
    rename = {"eu": "all", "us": "all"}
    assert {each["status"] for each in _sync(mm2, rename=rename)["offsets"]} == {"refused"}
    _sync(mm2, rename=rename, selection=parse_selection("eu"))
    report = _sync(mm2, rename=rename, selection=parse_selection("us"))
    assert _statuses(report) == {"all": "refused"}
    assert "group eu of source" in report["offsets"][0]["reason"]


def test_selection_is_by_whole_names(mm2: Mm2Simulation) -> None:
    """As MirrorMaker 2 matches its ``groups``, with its default of ``groups.exclude``."""
    _commit(mm2, **{"orders": 1, "orders-2": 1, "my-orders": 1, "connect-orders": 1})
    report = _sync(mm2, selection=parse_selection("orders.*|connect-.*"))
    assert _statuses(report).keys() == {"orders", "orders-2"}
    report = _sync(mm2, selection=parse_selection(".*", ""))
    assert "connect-orders" in _statuses(report)


@pytest.mark.parametrize(("include", "exclude"), [("orders[", ""), (".*", "*"), ("", "")])
def test_a_bad_expression_is_refused(include: str, exclude: str) -> None:
    """Before any request, with its place."""
    with pytest.raises(ConfigurationError):
        parse_selection(include, exclude)


def _checkpoint(mm2: Mm2Simulation, group: str, upstream: int, downstream: int) -> None:
    checkpoint = Checkpoint(
        group=group,
        topic=COPY.topic,
        partition=0,
        upstream=upstream,
        downstream=downstream,
    )
    record = Record(*encode_checkpoint(checkpoint))
    mm2.target.produce("source.checkpoints.internal", 0, [record])


def test_checkpoints_need_the_target_alone(mm2: Mm2Simulation) -> None:
    """The newest of each group counts; the source may be lost; other records are skipped."""
    for upstream in (100, 200):
        _checkpoint(mm2, "billing", upstream, upstream)
    _checkpoint(mm2, "shipping", 50, 49)
    mm2.target.produce("source.checkpoints.internal", 0, [b"no checkpoint"])
    mm2.source.is_running = False
    report = _sync(mm2, offsets_from=OffsetsFrom.CHECKPOINTS)
    assert {each["group"]: each["committed"] for each in report["offsets"]} == {
        "billing": "200",
        "shipping": "49",
    }
    assert report["reads"] == {
        "checkpoints_topic_reads": 1,
        "checkpoints_read": 4,
        "checkpoints_skipped": 1,
        "syncs_read": 0,
    }
    assert report["totals"]["max_reread"] is None
    assert report["totals"]["unconfirmed"] == 2
    assert {each["is_unconfirmed"] for each in report["offsets"]} == {True}
    assert "2 of them rest on MirrorMaker 2's checkpoint alone" in report["summary"]
    assert "the offset syncs can't be read" in report["offsets"][0]["reason"]
    again = _sync(mm2, offsets_from=OffsetsFrom.CHECKPOINTS)
    assert (again["totals"]["unchanged"], again["totals"]["unconfirmed"]) == (2, 2)
    assert "can't be read" in again["summary"]


def test_an_old_checkpoint_moves_nothing_back(mm2: Mm2Simulation) -> None:
    """Nor may a user ask for it: it can't be told from a rewound group."""
    _commit(mm2, billing=400)
    _sync(mm2)
    _checkpoint(mm2, "billing", 100, 1)
    report = _sync(mm2, offsets_from=OffsetsFrom.CHECKPOINTS)
    assert _statuses(report) == {"billing": "unchanged"}
    assert mm2.target.group_offsets["billing"][COPY][0] == 400
    with pytest.raises(ConfigurationError, match="allow_rewind"):
        _sync(
            mm2,
            offsets_from=OffsetsFrom.CHECKPOINTS,
            rules=GroupRules(allow_rewind=True),
        )


def test_a_checkpoint_beyond_the_end_is_refused(mm2: Mm2Simulation) -> None:
    """It is of an earlier topic of that name, or of a deleted one."""
    _checkpoint(mm2, "billing", 900, 900)
    assert _statuses(_sync(mm2, offsets_from=OffsetsFrom.CHECKPOINTS)) == {"billing": "refused"}
    mm2.target.delete_topic(COPY.topic)
    report = _sync(mm2, offsets_from=OffsetsFrom.CHECKPOINTS)
    assert "does not exist" in report["offsets"][0]["reason"]


@pytest.mark.parametrize(("upstream", "downstream"), [(400, 1), (499, 499), (500, 500)])
def test_a_checkpoint_that_the_syncs_confirm(
    mm2: Mm2Simulation, upstream: int, downstream: int
) -> None:
    """As MirrorMaker 2 makes it: of the last sync at or before the position."""
    _checkpoint(mm2, "billing", upstream, downstream)
    report = _sync(mm2, offsets_from=OffsetsFrom.CHECKPOINTS)
    assert _statuses(report) == {"billing": "committed"}
    assert report["totals"]["unconfirmed"] == 0
    assert report["offsets"][0]["reason"].endswith("confirmed by the offset syncs")


def _recreate_on_target(mm2: Mm2Simulation) -> None:
    """Delete the copy; what is copied afterwards is more than what was there."""
    mm2.target.delete_topic(COPY.topic)
    mm2.source.produce("orders", 0, [b"%d" % number for number in range(500, 1200)])
    mm2.mirror()


@pytest.mark.parametrize(
    ("upstream", "downstream", "reason"),
    [(400, 400, "the topic was recreated"), (500, 500, "prove no more than 0")],
)
def test_a_checkpoint_of_a_recreated_topic_is_refused(
    mm2: Mm2Simulation, upstream: int, downstream: int, reason: str
) -> None:
    """Its offset lies inside of the new log, and the group would skip records there."""
    _checkpoint(mm2, "billing", upstream, downstream)
    _recreate_on_target(mm2)
    assert mm2.target.log(*COPY).high > downstream
    report = _sync(mm2, offsets_from=OffsetsFrom.CHECKPOINTS)
    assert _statuses(report) == {"billing": "refused"}
    assert reason in report["offsets"][0]["reason"]
    assert mm2.target.group_offsets == {}


def test_a_checkpoint_of_a_truncated_topic_is_refused(mm2: Mm2Simulation) -> None:
    """The last sync names an offset above the end: its copies are gone, whatever comes next."""
    _checkpoint(mm2, "billing", 100, 1)
    mm2.target.delete_topic(COPY.topic)
    mm2.target.produce(COPY.topic, 0, [b"500"] * 9)
    report = _sync(mm2, offsets_from=OffsetsFrom.CHECKPOINTS)
    assert _statuses(report) == {"billing": "refused"}
    assert "truncated or recreated" in report["offsets"][0]["reason"]


def test_a_checkpoint_before_the_first_known_sync_is_not_confirmed(mm2: Mm2Simulation) -> None:
    """Compaction has left the last sync alone: a checkpoint above it is wrong, others may be."""
    _forget_old_syncs(mm2)
    mm2.source.produce("orders", 0, [b"%d" % number for number in range(2000, 2050)])
    mm2.mirror(commit=False)
    _checkpoint(mm2, "billing", 450, 445)
    _checkpoint(mm2, "shipping", 450, 2020)
    report = _sync(mm2, offsets_from=OffsetsFrom.CHECKPOINTS)
    assert _statuses(report) == {"billing": "committed", "shipping": "refused"}
    assert report["totals"]["unconfirmed"] == 1
    reasons = {each["group"]: each["reason"] for each in report["offsets"]}
    assert "before the first known sync 1999 -> 1999" in reasons["billing"]
    assert "names 2020, and the offset syncs prove no more than 0" in reasons["shipping"]


def test_an_archive_confirms_when_the_source_is_lost(mm2: Mm2Simulation, tmp_path: Path) -> None:
    """It knows the topic's id: what it holds of a recreated topic confirms nothing.

    It does not know the syncs since its last run.
    """
    archive = SyncArchive(str(tmp_path))
    archive_syncs(mm2.pair, archive)
    options = {"offsets_from": OffsetsFrom.CHECKPOINTS, "options": PlanOptions(archive=archive)}
    _checkpoint(mm2, "billing", 400, 1)
    mm2.source.is_running = False
    report = _sync(mm2, **options)
    assert (_statuses(report), report["totals"]["unconfirmed"]) == ({"billing": "committed"}, 0)
    mm2.source.is_running = True
    mm2.source.produce("orders", 0, [b"new"] * 200)
    mm2.mirror()
    _checkpoint(mm2, "later", 700, 700)
    mm2.source.is_running = False
    report = _sync(mm2, selection=parse_selection("later"), **options)
    assert (_statuses(report), report["totals"]["unconfirmed"]) == ({"later": "committed"}, 1)
    mm2.source.is_running = True
    _checkpoint(mm2, "shipping", 400, 400)
    _recreate_on_target(mm2)
    mm2.source.is_running = False
    report = _sync(mm2, selection=parse_selection("shipping"), **options)
    assert _statuses(report) == {"shipping": "refused"}
    assert "on the target had the id" in report["offsets"][0]["reason"]


def test_an_empty_archive_confirms_nothing(mm2: Mm2Simulation, tmp_path: Path) -> None:
    """Nor does it hold up the groups of a source that is lost."""
    _checkpoint(mm2, "billing", 400, 1)
    mm2.source.is_running = False
    options = PlanOptions(archive=SyncArchive(str(tmp_path)))
    report = _sync(mm2, offsets_from=OffsetsFrom.CHECKPOINTS, options=options)
    assert (_statuses(report), report["totals"]["unconfirmed"]) == ({"billing": "committed"}, 1)


def test_without_checkpoints_the_error_names_the_topic(mm2: Mm2Simulation) -> None:
    """And what to look at."""
    with pytest.raises(SyncsTopicError, match=r"source\.checkpoints\.internal"):
        _sync(mm2, offsets_from=OffsetsFrom.CHECKPOINTS)


def test_the_way_home_is_refused(mm2: Mm2Simulation) -> None:
    """The syncs of the other flow lead there."""
    with pytest.raises(ConfigurationError, match="way home"):
        sync_groups(mm2.pair.exchanged(), ALL)


@pytest.mark.parametrize("offsets_from", OffsetsFrom)
def test_a_copy_that_keeps_offsets_is_refused(
    mm2: Mm2Simulation, offsets_from: OffsetsFrom
) -> None:
    """A checkpoint of MirrorMaker 2 is about other offsets: its product commits for groups."""
    _commit(mm2, billing=100)
    _checkpoint(mm2, "billing", 100, 400)
    pair = replace(mm2.pair, mapping=OffsetMapping.IDENTITY, connect=None)
    with pytest.raises(ConfigurationError, match="group sync"):
        sync_groups(pair, ALL, offsets_from=offsets_from)
    assert mm2.target.group_offsets == {}


def test_published_positions_are_a_group(mm2: Mm2Simulation) -> None:
    """They rise with the checkpoint; another one and a consumer's commit are left alone."""

    def publish(offset: int, checkpoint: str = "s3://u:secret@b/orders") -> str:
        report = publish_positions(
            mm2.pair.source, "spark-orders", {"orders": {0: offset}}, checkpoint
        ).to_json()
        status: str = report["offsets"][0]["status"]
        return status

    assert [publish(100), publish(200), publish(200)] == ["committed", "committed", "unchanged"]
    offset, metadata = mm2.source.group_offsets["spark-orders"][ORDERS]
    assert offset == 200
    assert "secret" not in metadata
    assert publish(150) == "unchanged"
    assert publish(300, "s3://b/other") == "refused"
    mm2.source.group_offsets["spark-orders"][ORDERS] = (250, "")
    assert publish(400) == "kept"


def test_a_long_report_lists_first_what_needs_a_look(mm2: Mm2Simulation) -> None:
    """Airflow's database keeps each XCom; the totals count all."""
    _commit(mm2, **{f"group-{number}": number for number in range(10)})
    mm2.target.groups["group-7"] = [COPY]
    report = sync_groups(mm2.pair, ALL).to_json(max_lines=3)
    assert [each["group"] for each in report["offsets"]] == ["group-7", "group-0", "group-1"]
    assert report["offsets_left_out"] == 7
    assert report["totals"]["partitions"] == 10
