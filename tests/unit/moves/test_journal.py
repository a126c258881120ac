"""The journal of a job: its table, its files, and all interleavings of runs that move one job."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from itertools import dropwhile, pairwise, product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import HandoverError, LockedError
from airflow_mm2_offsets.moves import journal
from airflow_mm2_offsets.moves.journal import (
    Entry,
    Event,
    FenceState,
    Journal,
    State,
    Step,
    fence_at,
)
from tests.unit.moves.model import (
    EAST,
    HOMES,
    NORTH,
    WEST,
    Model,
    Mover,
    Raise,
    Run,
    World,
    alone,
    drivers,
    settle,
)

Start = Callable[[], Run]
ONE, TWO, NEXT = "dag: one", "dag: two", "dag: next"


def move(
    run: str, home: str = EAST, target: str = WEST, *, is_fenced: bool = True, batch: int = 1
) -> Start:
    """A run that takes over from any of the others."""
    over = {ONE: TWO, TWO: ONE, NEXT: ONE}[run]
    return Mover(run, home, target, is_fenced, over, batch).move


def looks(*homes: str) -> Start:
    """Drivers that look at their fences."""
    return lambda: drivers(*homes)


def word_for(home: str, *others: str) -> Start:
    """A person who says that the job runs at a home."""
    return lambda: settle(home, *others)


def stopped() -> World:
    """Return what the first run has left when it has proved that the job has stopped."""
    asked = journal.decide([], Step(event=Event.ASK, run=ONE, home=EAST, target=WEST))
    proof = Step(event=Event.PROVE, run=ONE, move=1, facts={"batch": 1})
    fences = frozenset({Raise(EAST, 1, FenceState.STOPPING)})
    return World(journal=(asked, journal.decide([asked], proof)), fences=fences, running=())


STOPPED = stopped()


BOTH = (EAST, WEST)
FENCED: dict[str, Model] = {
    "a move and its retry": Model((move(ONE), move(ONE), looks(EAST))),
    "two moves": Model((move(ONE), move(TWO, EAST, NORTH), looks(EAST))),
    "a move and its roll-back": Model((move(ONE), Mover(ONE).roll_back, looks(EAST, EAST))),
    "a move and its withdrawal": Model((move(ONE), Mover(ONE).withdraw, looks(EAST, EAST))),
    "a move and the way home": Model((move(ONE), move(TWO, WEST, EAST), looks(*BOTH))),
    "a roll-back and a take-over": Model(
        (Mover(ONE).hand_over, Mover(ONE).roll_back, move(TWO, EAST, NORTH), looks(EAST)), STOPPED
    ),
    "a second proof": Model((Mover(ONE).hand_over, move(ONE, batch=2), looks(EAST)), STOPPED),
    "a task of an earlier move": Model(
        (Mover(ONE).hand_over, Mover(ONE).roll_back, move(ONE, batch=2), looks(EAST)), STOPPED
    ),
    "a person's word for the old home": Model((move(ONE), word_for(EAST, WEST), looks(*BOTH))),
    "a person's word for the new home": Model((move(ONE), word_for(WEST, EAST), looks(*BOTH))),
}
NOT_FENCED: dict[str, Model] = {
    "a move and its retry": Model((move(ONE, is_fenced=False), move(ONE, is_fenced=False))),
    "two moves": Model((move(ONE, is_fenced=False), move(TWO, EAST, NORTH, is_fenced=False))),
    "a roll-back and a take-over": Model(
        (
            move(ONE, is_fenced=False),
            Mover(ONE, is_fenced=False).roll_back,
            move(TWO, EAST, NORTH, is_fenced=False),
        )
    ),
}
ALL = FENCED | {f"{name}, without a fence": runs for name, runs in NOT_FENCED.items()}


@cache
def worlds_of(name: str) -> list[World]:
    """Return the different worlds that the interleavings of some runs lead to."""
    return ALL[name].worlds()


def next_run(world: World, *, is_fenced: bool = True) -> tuple[Mover, str]:
    """Return a new run that takes over what others have left, and where it moves the job."""
    last = world.journal[-1] if world.journal else None
    home = last.home if last else EAST
    used = {each.home for each in world.journal} | {home}
    other = next(each for each in HOMES if each not in used)
    return Mover(NEXT, home, other, is_fenced, last.run if last else None), other


def entries_of(*events: Event, is_fenced: bool = True) -> list[Entry]:
    """Return the entries of the first run's move."""
    entries: list[Entry] = []
    for event in events:
        entries.append(journal.decide(entries, step(event, is_fenced=is_fenced)))
    return entries


def step(event: Event, **changes: Any) -> Step:
    """Return a step of the first run's move."""
    values = {"run": ONE, "move": 1, "seen": 2, "home": EAST, "target": WEST}
    return Step(event=event, **{**values, **changes})


def entries_in(state: State, event: Event, *, is_fenced: bool) -> list[Entry]:
    """Return a move that has come to a state, by the event itself where that leads there."""
    stopped, start = (Event.ASK, Event.PROVE), Event.HAND_OVER
    if event is Event.RETURN:
        start = event
    match state:
        case State.HOME if event is Event.ARRIVE:
            events: tuple[Event, ...] = (*stopped, Event.RETURN, event)
        case State.HOME:
            events = (Event.ASK, Event.WITHDRAW)
        case State.STARTING:
            events = (*stopped, start)
        case _:
            events = stopped[: 1 + (state is State.STOPPED)]
    return entries_of(*events, is_fenced=is_fenced)


class TestInterleavings:
    """Each access may come before any other; a run may be killed or paused before each."""

    @pytest.mark.parametrize("name", ALL)
    def test_never_two_jobs(self, name: str) -> None:
        """In none of them, and none that begins where an earlier proof has it."""
        for world in worlds_of(name):
            assert world.problem() is None, world

    @pytest.mark.parametrize("name", FENCED)
    def test_the_next_run_goes_on_from_anywhere(self, name: str) -> None:
        """Wherever all runs were killed, a new run moves the job, and nobody deletes a file."""
        for world in worlds_of(name):
            mover, other = next_run(world)
            after, error = alone(world, mover.move())
            assert error is None, (world, error)
            assert after.running == (other,), world

    @pytest.mark.parametrize("name", sorted(ALL.keys() - FENCED.keys()))
    def test_without_a_fence_a_start_is_not_taken_over(self, name: str) -> None:
        """A run that starts a job may do so at any moment; all else is taken over."""
        for world in worlds_of(name):
            mover, _ = next_run(world, is_fenced=False)
            _, error = alone(world, mover.move())
            is_starting = bool(world.journal) and world.journal[-1].state is State.STARTING
            assert isinstance(error, LockedError) is is_starting, (world, error)

    @pytest.mark.parametrize("is_fenced", [True, False])
    def test_many_runs(self, *, is_fenced: bool) -> None:
        """Retries, roll-backs, moves and ways home beside each other, in turns that are drawn."""
        draw = Random(1)  # noqa: S311 - turns
        moves = [
            move(ONE, is_fenced=is_fenced),
            move(ONE, is_fenced=is_fenced, batch=2),
            move(TWO, EAST, NORTH, is_fenced=is_fenced),
            move(NEXT, WEST, EAST, is_fenced=is_fenced),
        ]
        backs = [Mover(run, is_fenced=is_fenced).roll_back for run in (ONE, TWO)]
        # Nothing keeps a job without a fence from a start that a platform was asked for before.
        words = [word_for(EAST, WEST, NORTH), word_for(WEST, EAST, NORTH)] if is_fenced else []
        sights = [looks(home, home) for home in (EAST, WEST, NORTH)]
        # Without a journal, the first run to ask says where the job is.
        settled = journal.decide([], Step(event=Event.SETTLE, run="ada", home=EAST))
        model = Model((*moves, *backs, *words, *sights), World(journal=(settled,)))
        for _ in range(1000):
            for world in model.drawn(draw):
                assert world.problem() is None, world

    @pytest.mark.parametrize("name", ["two moves", "a move and its roll-back"])
    def test_without_exclusive_creation_two_jobs_run(self, name: str) -> None:
        """The check finds what it is to find, if an entry can be written over."""
        worlds = Model(FENCED[name].runs, World(is_exclusive=False)).worlds()
        assert any(world.problem() for world in worlds)


def cells() -> Iterator[tuple[Event, State, str]]:
    """Yield each cell of the table in the module's docstring, its lines joined by newlines."""
    _, head, _, *lines = [*dropwhile(lambda line: line[:2] != "==", table_lines())][:-1]
    rule = next(line for line in table_lines() if line[:2] == "==")
    starts = [at for at in range(len(rule)) if rule[at] == "=" and rule[at - 1 : at] != "="]
    spans = [slice(*span) for span in pairwise([*starts, 200])]
    rows: list[list[str]] = []
    for line in lines:
        parts = [line[span].strip() for span in spans]
        if parts[0]:
            rows.append(parts)
        else:
            rows[-1] = [f"{one}\n{more}".strip() for one, more in zip(rows[-1], parts, strict=True)]
    states = [State(head[span].strip()) for span in spans[1:]]
    for event, *row in rows:
        yield from ((Event(event), state, cell) for state, cell in zip(states, row, strict=True))


def table_lines() -> list[str]:
    lines = (journal.__doc__ or "").splitlines()
    rules = [number for number, line in enumerate(lines) if line[:2] == "=="]
    return lines[rules[0] : rules[-1] + 1]


def test_the_table_has_each_case() -> None:
    """Each event in each state."""
    assert [(event, state) for event, state, _ in cells()] == [*product(Event, State)]


@pytest.mark.parametrize(("event", "state", "cell"), [*cells()])
@pytest.mark.parametrize("whose", ["own", "other"])
@pytest.mark.parametrize("is_fenced", [True, False])
def test_a_step_leads_where_the_table_says(
    event: Event, state: State, cell: str, whose: str, *, is_fenced: bool
) -> None:
    """For the run that has entered the state, and for another; "own" alone refuses others."""
    said = dict(line.split(": ") for line in cell.splitlines() if ": " in line)
    expected = said.get(whose, "refused") if said else cell
    if expected.endswith(", fenced"):
        expected = expected.partition(",")[0] if is_fenced else "refused"
    entries = entries_in(state, event, is_fenced=is_fenced)
    facts = {} if "no change" in cell else {"new": True}
    done = step(event, home=entries[-1].home, is_fenced=is_fenced, facts=facts)
    if whose == "other":
        done = replace(done, run=TWO, move=9, target=NORTH, takes_over=ONE)
    if event is Event.SETTLE:
        done = replace(done, seen=len(entries), home=NORTH)
    if expected == "refused":
        with pytest.raises(HandoverError):
            journal.decide(entries, done)
        return
    entry = journal.decide(entries, done)
    if expected == "no change":
        assert entry is entries[-1]
        return
    places = {"starting at target": WEST, "starting at home": EAST, "home": done.home}
    assert (entry.number, entry.run) == (len(entries) + 1, done.run)
    assert entry.state is State(expected.partition(" ")[0])
    assert entry.home == places.get(expected, entries[-1].home)


def test_a_run_hands_a_job_over_once() -> None:
    """If it begins again, its job may have come back since."""
    entries = entries_of(Event.ASK, Event.PROVE, Event.HAND_OVER, Event.ARRIVE)
    with pytest.raises(HandoverError, match="has handed the job over before"):
        journal.decide(entries, step(Event.ASK, home=WEST, target=EAST))
    assert journal.decide(entries, step(Event.ASK, run=TWO, home=WEST, target=EAST)).home == WEST


def test_a_start_that_can_not_be_repeated_is_submitted_once() -> None:
    """The second attempt finds the first one's entry, and goes on from there."""
    entries = entries_of(Event.ASK, Event.PROVE, Event.HAND_OVER, Event.SUBMIT)
    assert journal.decide(entries, step(Event.SUBMIT)) is entries[-1]
    assert journal.decide(entries, step(Event.ARRIVE)).state is State.HOME


def test_an_attempt_of_an_earlier_move_changes_nothing() -> None:
    """A run that was rolled back asks again: what was proved before does not count."""
    entries = entries_of(Event.ASK, Event.PROVE, Event.RETURN, Event.ARRIVE)
    entries.append(journal.decide(entries, step(Event.ASK)))
    with pytest.raises(LockedError, match="can't prove by its move 1"):
        journal.decide(entries, step(Event.PROVE))
    assert journal.decide(entries, step(Event.PROVE, move=5)).state is State.STOPPED


def test_a_second_proof_counts() -> None:
    """A job that was started again has other positions; what was decided by the first is void."""
    entries = entries_of(Event.ASK, Event.PROVE)
    entries.append(journal.decide(entries, step(Event.PROVE, facts={"batch": 8})))
    assert (entries[-1].number, entries[-1].state) == (3, State.STOPPED)
    assert journal.decide(entries, step(Event.PROVE, facts={"batch": 8})) is entries[-1]
    with pytest.raises(HandoverError, match="has proved the stop again"):
        journal.decide(entries, step(Event.HAND_OVER, seen=2))
    assert journal.decide(entries, step(Event.HAND_OVER, seen=3)).state is State.STARTING


def test_a_run_whose_move_a_person_has_ended_asks_no_more() -> None:
    """Its retry would stop the job again."""
    entries = entries_of(Event.ASK, Event.PROVE)
    entries.append(journal.decide(entries, step(Event.SETTLE, run="ada", home=EAST)))
    with pytest.raises(LockedError, match="'ada' has ended this run's move"):
        journal.decide(entries, step(Event.ASK))
    assert journal.decide(entries, step(Event.ASK, run=TWO)).state is State.STOPPING


def test_a_run_that_starts_a_job_names_its_report() -> None:
    """Not itself, as the run to wait for."""
    entries = entries_of(Event.ASK, Event.PROVE, Event.RETURN)
    with pytest.raises(LockedError, match="clear the report of this run first"):
        journal.decide(entries, step(Event.ASK))


def test_a_journal_may_begin_after_the_fences_of_a_lost_one() -> None:
    """By a person's word: its numbers are higher than those there."""
    first = journal.decide([], step(Event.SETTLE, run="ada", home=WEST, seen=0, first=9))
    assert (first.number, first.home) == (9, WEST)
    assert journal.decide([first], step(Event.ASK, home=WEST, target=EAST)).number == 10


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"run": TWO}, "wait for that run, or end it"),
        ({"run": TWO, "takes_over": NEXT}, "wait for that run, or end it"),
        ({"target": NORTH}, "to move it to west and not to north"),
        ({"home": WEST}, r"'dag: one' stops the job at east.*, and not at west"),
        ({"target": EAST}, "the job is already at east"),
        ({"target": None}, "to move it to west and not to None"),
    ],
)
def test_an_ask_that_does_not_fit_is_refused(changes: dict[str, Any], problem: str) -> None:
    """Of a run that others do not know to have ended, or about another place."""
    with pytest.raises(HandoverError, match=problem):
        journal.decide(entries_of(Event.ASK), step(Event.ASK, **changes))


def test_a_person_settles_what_was_seen() -> None:
    """Where a run has gone on since, the person looks again."""
    entries = entries_of(Event.ASK, Event.PROVE)
    with pytest.raises(HandoverError, match="you have seen entry 1, and the journal has come to 2"):
        journal.decide(entries, step(Event.SETTLE, run="ada", home=WEST, seen=1))
    settled = journal.decide(entries, step(Event.SETTLE, run="ada", home=WEST, seen=2))
    assert (settled.state, settled.home) == (State.HOME, WEST)


def test_facts_are_plain_json() -> None:
    """They come back as they were, or are refused before anything is written."""
    with pytest.raises(ValueError, match="the facts of prove are no plain JSON"):
        journal.decide(entries_of(Event.ASK), step(Event.PROVE, facts={"offsets": {0: "1"}}))


class TestFiles:
    """The journal on a local disk; ``tests/integration/test_exclusive.py`` has S3."""

    @pytest.fixture
    def kept(self, tmp_path: Path) -> Journal:
        """A journal whose job has stopped."""
        kept = Journal(UPath(tmp_path / "records" / "orders"))
        kept.record(step(Event.ASK))
        kept.record(step(Event.PROVE, facts={"offsets": {"orders": {"0": "17"}}}))
        return kept

    def test_entries_come_back(self, kept: Journal) -> None:
        """With what was found, numbered from 1 on; a step that is repeated adds none."""
        entries = kept.entries()
        again = step(Event.PROVE, facts=entries[-1].facts)
        assert kept.record(again) == (tuple(entries), False)
        handed_over = kept.record(step(Event.HAND_OVER))
        assert kept.entries() == [*entries, handed_over.entry]
        assert entries[1].facts == {"offsets": {"orders": {"0": "17"}}}
        names = sorted(each.name for each in kept.folder.iterdir())
        assert names == ["000001.json", "000002.json", "000003.json"]

    def test_other_files_and_fields_are_left_alone(self, kept: Journal) -> None:
        """A later release may write more, and a person a note."""
        (kept.folder / "notes.json").write_text("look at this")
        handed_over = kept.record(step(Event.HAND_OVER)).entry
        file = kept.folder / "000003.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "more": 1}))
        assert kept.record(step(Event.ARRIVE)).entry.home == handed_over.home
        assert len(kept.entries()) == 4

    @pytest.mark.parametrize(("field", "value"), [("run", "another"), ("facts", {"by": "hand"})])
    def test_a_changed_entry_is_found(self, kept: Journal, field: str, value: object) -> None:
        """Whatever was changed in it."""
        file = kept.folder / "000001.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), field: value}, indent=1))
        with pytest.raises(HandoverError, match=r"000002.json: it does not follow"):
            kept.entries()

    @pytest.mark.parametrize("content", ["", "[]", '{"event": "ask"}'])
    def test_a_damaged_entry_is_named(self, kept: Journal, content: str) -> None:
        """It is nobody's word."""
        (kept.folder / "000002.json").write_text(content)
        with pytest.raises(HandoverError, match=r"000002.json: it is damaged"):
            kept.record(step(Event.HAND_OVER))

    def test_a_missing_entry_is_found(self, kept: Journal) -> None:
        """The later ones do not count as the first."""
        (kept.folder / "000001.json").unlink()
        with pytest.raises(HandoverError, match=r"000002.json: it does not follow"):
            kept.record(step(Event.HAND_OVER))

    def test_of_many_runs_one_hands_over(self, kept: Journal) -> None:
        """Each takes the job over from the others, and all but the last to do so are refused."""

        def work(run: str) -> bool:
            try:
                last = kept.entries()[-1]
                asked = kept.record(step(Event.ASK, run=run, takes_over=last.run)).entry
                for event in (Event.PROVE, Event.HAND_OVER):
                    seen = len(kept.entries())
                    kept.record(step(event, run=run, move=asked.number, seen=seen))
            except HandoverError:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            done = [*pool.map(work, [f"run {number}" for number in range(24)])]
        assert done.count(True) == 1
        assert kept.entries()[-1].state is State.STARTING


def test_a_fence_says_what_the_last_entry_means() -> None:
    """Where the job may start, where it is to stop, and where it was moved away from."""
    events = (Event.ASK, Event.PROVE, Event.HAND_OVER, Event.ARRIVE)
    said = [(fence_at(each, EAST), fence_at(each, WEST)) for each in entries_of(*events)]
    stopping, moved = (FenceState.STOPPING, FenceState.MOVED), (FenceState.MOVED, FenceState.OPEN)
    assert said == [stopping, stopping, moved, moved]
