"""What came of a run: tables, charts and JSON, with the machine and the versions."""

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from airflow_mm2_offsets.core.summary import table
from benchmarks.accuracy import Score
from benchmarks.chart import Bar, chart
from benchmarks.timing import Goal, Growth, Measure

US, STORE = "airflow-mm2-offsets", "OffsetSyncStore"
_PACKAGES = ("airflow-mm2-offsets", "confluent-kafka", "numpy", "pyarrow")
_CHARTED = ("safe", "safe, no extras", "safe, both read", "OffsetSyncStore")


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything that was measured."""

    scores: Sequence[Score]
    measures: Sequence[Measure]
    growths: Sequence[Growth]
    goals: Sequence[Goal]
    about: dict[str, Any]

    def __str__(self) -> str:
        """Return the tables."""
        machine = self.about["machine"]
        where = f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']:.1f}"
        tables = self._accuracy(), self._speed(), self._growth(), self._goals()
        return "\n\n".join((where, *tables))

    def write(self, folder: Path) -> None:
        """Write JSON and charts into ``folder``."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "results.json").write_text(json.dumps(self.to_json(), indent=1) + "\n")
        (folder / "accuracy.svg").write_text(self._accuracy_chart())
        (folder / "speed.svg").write_text(self._speed_chart())

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        return {
            "about": self.about,
            "accuracy": [asdict(score) for score in self.scores],
            "speed": [
                asdict(measure) | {"times_as_fast": measure.faster} for measure in self.measures
            ],
            "growth": [asdict(growth) | {"factor": growth.factor} for growth in self.growths],
            "goals": [asdict(goal) | {"kept": goal.kept} for goal in self.goals],
        }

    def _accuracy(self) -> str:
        methods = list(dict.fromkeys(score.method for score in self.scores))
        cells = {(score.name, score.method): str(score) for score in self.scores}
        names = dict.fromkeys(score.name for score in self.scores)
        rows = [[name, *(cells.get((name, method), "") for method in methods)] for name in names]
        return "Records read again, mean / most:\n" + table(("set", *methods), rows)

    def _speed(self) -> str:
        rows = [
            (
                measure.what,
                _quantity(measure.ours, measure.unit),
                "-" if measure.store is None else _quantity(measure.store, measure.unit),
                "-" if measure.faster is None else f"{measure.faster:.2f} x",
            )
            for measure in self.measures
        ]
        return table(("speed", US, STORE, "as fast as it"), rows)

    def _growth(self) -> str:
        rows = [
            (
                growth.what,
                *(
                    f"{cost:.1f} {growth.unit} of {count:,}"
                    for count, cost in (growth.small, growth.large)
                ),
                f"{growth.factor:.2f}",
            )
            for growth in self.growths
        ]
        return table(("cost of each sync", "some", "ten times as many", "factor"), rows)

    def _goals(self) -> str:
        rows = [
            (goal.what, f"{goal.most:g}", f"{goal.measured:.2f}", "yes" if goal.kept else "NO")
            for goal in self.goals
        ]
        return table(("goal", "at most", "measured", "kept"), rows)

    def _accuracy_chart(self) -> str:
        groups: dict[str, list[Bar]] = {}
        for score in self.scores:
            if score.method in _CHARTED and score.mean is not None:
                bar = Bar(series=score.method, value=score.mean, label=f"{score.mean:,.1f}")
                groups.setdefault(score.name, []).append(bar)
        return chart("Records read again after a failover, on average", groups, least=0.1)

    def _speed_chart(self) -> str:
        groups = {
            measure.what: [Bar(series=US, value=measure.faster, label=f"{measure.faster:,.3g} x")]
            for measure in self.measures
            if measure.faster is not None
        }
        return chart(f"Times as fast as {STORE} (1: alike)", groups, least=0.001)


def _quantity(number: float, unit: str) -> str:
    return f"{number:.3f} s" if unit == "s" else f"{number:,.0f} {unit}"


def _cpu() -> str:
    """Return the processor's name, where the system tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def about(jars: Path, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Return when, where and with what it is measured; asked before, for the machine's load."""
    java = subprocess.run(["java", "--version"], capture_output=True, text=True, check=True)  # noqa: S607
    mirror = next(jars.glob("connect-mirror-[0-9]*.jar"))
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%dT%H:%MZ}",
        "machine": {
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
            "system": platform.platform(),
        },
        "versions": {
            "python": platform.python_version(),
            "java": java.stdout.splitlines()[0],
            "kafka": mirror.stem.removeprefix("connect-mirror-"),
            **{name: version(name) for name in _PACKAGES},
        },
        "sizes": dict(sizes),
    }
