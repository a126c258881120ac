"""The journal of a job: its table, its files, and all interleavings of runs that move one job."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import dropwhile, pairwise, product
from pathlib import Path
from random import Random

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import HandoverError, LockedError
from airflow_mm2_offsets.moves import journal
from airflow_mm2_offsets.moves.journal import Entry, Event, Fence, Journal, State, Step, fence_at
from tests.unit.moves.model import (
    EAST,
    NORTH,
    WEST,
    Model,
    Run,
    World,
    alone,
    move,
    roll_back,
    withdraw,
)

ONE, TWO, NEXT = "dag: one", "dag: two", "dag: next"
REACHED = {
    State.HOME: (Event.ASK, Event.WITHDRAW),
    State.STOPPING: (Event.ASK,),
    State.STOPPED: (Event.ASK, Event.PROVE),
    State.STARTING: (Event.ASK, Event.PROVE, Event.HAND_OVER),
}
"""By which events a run brings a new job into a state."""


def east_west(run: str, *, is_fenced: bool = True) -> Callable[[], Run]:
    return lambda: move(run, EAST, WEST, is_fenced=is_fenced)


def east_north(run: str, *, is_fenced: bool = True) -> Callable[[], Run]:
    return lambda: move(run, EAST, NORTH, is_fenced=is_fenced)


def west_east(run: str) -> Callable[[], Run]:
    return lambda: move(run, WEST, EAST)


def back(run: str, *, is_fenced: bool = True) -> Callable[[], Run]:
    return lambda: roll_back(run, is_fenced=is_fenced)


FENCED: dict[str, tuple[Callable[[], Run], ...]] = {
    "a move and its retry": (east_west(ONE), east_west(ONE)),
    "two moves": (east_west(ONE), east_north(TWO)),
    "a move and its roll-back": (east_west(ONE), back(ONE)),
    "a move and its withdrawal": (east_west(ONE), lambda: withdraw(ONE)),
    "a move and the way home": (east_west(ONE), west_east(TWO)),
    "a roll-back and a take-over": (east_west(ONE), back(ONE), east_north(TWO)),
}
NOT_FENCED: dict[str, tuple[Callable[[], Run], ...]] = {
    "two moves": (east_west(ONE, is_fenced=False), east_north(TWO, is_fenced=False)),
    "a roll-back and a take-over": (
        east_west(ONE, is_fenced=False),
        back(ONE, is_fenced=False),
        east_north(TWO, is_fenced=False),
    ),
}
ALL = [*FENCED.values(), *NOT_FENCED.values()]
NAMES = [*FENCED, *(f"{name}, without a fence" for name in NOT_FENCED)]


def worlds_of(runs: tuple[Callable[[], Run], ...]) -> list[World]:
    return list({world.key: world for world in Model(runs).places()}.values())


def entries_in(state: State, *, by: Event = Event.HAND_OVER) -> list[Entry]:
    """Return the entries of a run that has come to a state; it starts the job ``by`` an event."""
    entries: list[Entry] = []
    for event in REACHED[state]:
        step = Step(
            event=by if event is Event.HAND_OVER else event, run=ONE, home=EAST, target=WEST
        )
        entries.append(journal.decide(entries, step))
    return entries


class TestInterleavings:
    """Each access may come before any other; a run may be killed or paused before each."""

    @pytest.mark.parametrize("runs", ALL, ids=NAMES)
    def test_never_two_jobs(self, runs: tuple[Callable[[], Run], ...]) -> None:
        """In none of them."""
        for world in worlds_of(runs):
            assert len(world.running) <= 1, world

    @pytest.mark.parametrize("runs", FENCED.values(), ids=FENCED)
    def test_the_next_run_goes_on_from_anywhere(self, runs: tuple[Callable[[], Run], ...]) -> None:
        """Wherever all runs were killed, a new run moves the job, and nobody deletes a file."""
        for world in worlds_of(runs):
            home = world.journal[-1].home if world.journal else EAST
            other = WEST if home == EAST else EAST
            after, error = alone(world, move(NEXT, home, other))
            assert error is None, world
            assert after.running == {other}, world

    @pytest.mark.parametrize("runs", NOT_FENCED.values(), ids=NOT_FENCED)
    def test_without_a_fence_a_start_is_not_taken_over(
        self, runs: tuple[Callable[[], Run], ...]
    ) -> None:
        """A run that starts a job may do so at any moment; all else is taken over."""
        for world in worlds_of(runs):
            home = world.journal[-1].home if world.journal else EAST
            other = WEST if home == EAST else EAST
            _, error = alone(world, move(NEXT, home, other, is_fenced=False))
            is_starting = bool(world.journal) and world.journal[-1].state is State.STARTING
            assert isinstance(error, LockedError) is is_starting, (world, error)

    @pytest.mark.parametrize("seed", range(5))
    def test_many_runs(self, seed: int) -> None:
        """Retries, roll-backs, moves and ways home beside each other, in turns that are drawn."""
        draw = Random(seed)  # noqa: S311 - turns
        kinds = (east_west(ONE), east_west(ONE), east_west(TWO), west_east(NEXT), back(TWO))
        for _ in range(200):
            for world in Model(kinds).drawn(draw):
                assert len(world.running) <= 1, world

    @pytest.mark.parametrize("name", ["two moves", "a move and its roll-back"])
    def test_without_exclusive_creation_two_jobs_run(self, name: str) -> None:
        """The check finds what it is to find, if an entry can be written over."""
        worlds = Model(FENCED[name], World(is_exclusive=False)).places()
        assert any(len(world.running) > 1 for world in worlds)


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
    entries = entries_in(state, by=event if event is Event.RETURN else Event.HAND_OVER)
    home = EAST if event is Event.SETTLE else None
    run = ONE if whose == "own" else TWO
    step = Step(event=event, run=run, home=home, is_fenced=is_fenced)
    if expected == "refused" or (expected.endswith(", if fenced") and not is_fenced):
        with pytest.raises(HandoverError):
            journal.decide(entries, step)
        return
    entry = journal.decide(entries, step)
    if expected == "no change":
        assert entry is entries[-1]
        return
    place = {"starting at target": WEST, "starting at home": EAST}.get(expected, entries[-1].home)
    assert (entry.number, entry.run) == (len(entries) + 1, run)
    assert entry.state is State(expected.partition(",")[0].partition(" ")[0])
    assert entry.home == (EAST if event is Event.SETTLE else place)


def test_a_run_hands_a_job_over_once() -> None:
    """If it begins again, its job may have come back since."""
    entries = [*entries_in(State.STARTING)]
    entries.append(journal.decide(entries, Step(event=Event.ARRIVE, run=ONE)))
    with pytest.raises(HandoverError, match="has handed the job over before"):
        journal.decide(entries, Step(event=Event.ASK, run=ONE))
    assert journal.decide(entries, Step(event=Event.ASK, run=TWO)).home == WEST


def test_a_job_is_where_the_journal_says() -> None:
    """A run that takes it to be elsewhere is refused."""
    with pytest.raises(HandoverError, match=r"the job is at east.*, and not at west"):
        journal.decide(entries_in(State.HOME), Step(event=Event.ASK, run=TWO, home=WEST))


class TestFiles:
    """The journal on a local disk; ``tests/integration/test_exclusive.py`` has S3."""

    def test_entries_come_back(self, tmp_path: Path) -> None:
        """With what was found, numbered from 1 on."""
        kept = Journal(UPath(tmp_path / "records" / "orders"))
        facts = {"proof": "acknowledged", "offsets": {"orders": {"0": "17"}}}
        first = kept.record(Step(event=Event.ASK, run=ONE, home=EAST, target=WEST))
        second = kept.record(Step(event=Event.PROVE, run=ONE, facts=facts))
        assert kept.entries() == [first, second]
        assert kept.record(Step(event=Event.PROVE, run=ONE)) == second
        assert sorted(each.name for each in (tmp_path / "records" / "orders").iterdir()) == [
            "000001.json",
            "000002.json",
        ]

    @pytest.mark.parametrize("changed", ["run", "facts", "before"])
    def test_a_changed_entry_is_found(self, tmp_path: Path, changed: str) -> None:
        """Whatever was changed in it, by hand too."""
        kept = Journal(UPath(tmp_path))
        for event in REACHED[State.STOPPED]:
            kept.record(Step(event=event, run=ONE, home=EAST, target=WEST))
        file = tmp_path / "000001.json"
        values = json.loads(file.read_text())
        values[changed] = {} if changed == "facts" else "another"
        values["facts"] = {"by": "hand"} if changed == "facts" else values["facts"]
        file.write_text(json.dumps(values, indent=1))
        with pytest.raises(HandoverError, match=r"00000[12].json: it does not follow"):
            kept.entries()

    def test_a_missing_entry_is_found(self, tmp_path: Path) -> None:
        """The later ones do not count as the first."""
        kept = Journal(UPath(tmp_path))
        for event in REACHED[State.STOPPED]:
            kept.record(Step(event=event, run=ONE, home=EAST, target=WEST))
        (tmp_path / "000001.json").unlink()
        with pytest.raises(HandoverError, match=r"000001.json: the journal has later entries"):
            kept.record(Step(event=Event.HAND_OVER, run=ONE))

    def test_of_many_runs_one_hands_over(self, tmp_path: Path) -> None:
        """Each takes the job over from the others, and all but the last to do so are refused."""
        kept = Journal(UPath(tmp_path))

        def work(run: str) -> bool:
            try:
                for event in REACHED[State.STARTING]:
                    kept.record(Step(event=event, run=run, home=EAST, target=WEST))
            except HandoverError:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            done = [*pool.map(work, [f"run {number}" for number in range(24)])]
        assert done.count(True) == 1
        assert kept.entries()[-1].state is State.STARTING


def test_a_fence_says_what_the_last_entry_means() -> None:
    """Where the job may start, where it is to stop, and where it was moved away from."""
    said = {
        state: (fence_at(entries_in(state)[-1], EAST), fence_at(entries_in(state)[-1], WEST))
        for state in State
    }
    assert said == {
        State.HOME: (Fence.OPEN, Fence.MOVED),
        State.STOPPING: (Fence.STOPPING, Fence.MOVED),
        State.STOPPED: (Fence.STOPPING, Fence.MOVED),
        State.STARTING: (Fence.MOVED, Fence.OPEN),
    }
