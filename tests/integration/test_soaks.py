"""The table of the soaks: what a run adds to it, and when a run proves nothing any more."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.soaks import PASSED, ROOT, SOAKS, UNCOMMITTED, Run, Soak, Soaks, add_figures

GIT = shutil.which("git") or "git"
PLAYED = (
    Soak(name="good", does="ends well", program=("tests.soak_good",)),
    Soak(name="bad", does="fails", program=("tests.soak_bad",)),
    Soak(name="skipped", does="has nothing to do", program=("tests.soak_skipped",)),
    Soak(name="pair", does="runs both", tests=("tests/soak_pair.py",), program=("tests.more",)),
)
FILES = {
    "CONTRIBUTING.md": "before\n<!-- the table: make soak -->\n<!-- its end -->\nafter\n",
    "airflow_mm2_offsets/code.py": "",
    "dags/dag.py": "",
    "tests/__init__.py": "",
    "tests/conftest.py": "",
    "tests/helper.py": "from tests import deep\n",
    "tests/deep.py": "",
    "tests/unused.py": "",
    "tests/test_other.py": "",
    "tests/soak_good.py": "import tests.helper\n"
    "print('figures: 1 thing')\nprint('.figures: 2 things, 0 lost')\n",
    "tests/soak_bad.py": "print('figures: 3 things, 1 lost')\nraise SystemExit(1)\n",
    "tests/soak_skipped.py": "print('nothing was done')\n",
    "tests/soak_pair.py": "def test_it():\n    print('figures: 4 things')\n",
    "tests/more.py": "print('figures: 5 things')\n",
}


def _git(root: Path, *arguments: str) -> None:
    login = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run([GIT, *login, *arguments], cwd=root, check=True, capture_output=True)


def _write(root: Path, file: str, content: str) -> None:
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    (root / file).write_text(content)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with one commit."""
    for file, content in FILES.items():
        _write(tmp_path, file, content)
    _git(tmp_path, "init", "--quiet")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "--quiet", "--message", "first")
    return tmp_path


def _run(root: Path, name: str) -> Run:
    Soaks(root, PLAYED).run(name)
    return Soaks(root, PLAYED).runs[name]


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("good", f"{PASSED}: 2 things, 0 lost"),
        ("bad", "FAILED: 3 things, 1 lost"),
        ("skipped", "FAILED: no figures"),
        ("pair", f"{PASSED}: 4 things; 5 things"),
    ],
)
def test_a_run_leaves_its_result_in_the_table(root: Path, name: str, result: str) -> None:
    """The last figures of each command count; without figures nothing is proved."""
    assert _run(root, name).result == result
    soaks = Soaks(root, PLAYED)
    assert soaks.is_proved(name) is result.startswith(PASSED)
    assert soaks.log(name).read_text()
    page = soaks.page.read_text()
    assert page.startswith("before\n")
    assert page.endswith("\nafter\n")
    assert page.count("| never |") == len(PLAYED) - 1


@pytest.mark.parametrize(
    ("file", "is_proved"),
    [
        ("airflow_mm2_offsets/code.py", False),
        ("dags/dag.py", False),
        ("tests/helper.py", False),
        ("tests/deep.py", False),
        ("tests/conftest.py", False),
        ("tests/unused.py", True),
        ("tests/soak_good.py", False),
        ("tests/soak_bad.py", True),
        ("tests/more.py", True),
        ("tests/test_other.py", True),
        ("CONTRIBUTING.md", True),
    ],
)
def test_a_change_of_its_code_takes_the_proof(root: Path, file: str, is_proved: bool) -> None:  # noqa: FBT001 - a case
    """A change to what it imports counts, committed or not; one to another soak does not."""
    _run(root, "good")
    content = (root / file).read_text()
    (root / file).write_text(f"# changed\n{content}")
    assert Soaks(root, PLAYED).is_proved("good") is is_proved
    assert ("HAS NOT RUN" in Soaks(root, PLAYED).line("good")) is not is_proved
    _git(root, "commit", "--quiet", "--all", "--message", "second")
    assert Soaks(root, PLAYED).is_proved("good") is is_proved


def test_a_run_of_uncommitted_code_proves_nothing(root: Path) -> None:
    """The table can name no commit for it; it stays unproved after a commit, too."""
    _write(root, "airflow_mm2_offsets/code.py", "changed")
    run = _run(root, "good")
    assert (run.commit, run.result) == (UNCOMMITTED, f"{PASSED}: 2 things, 0 lost")
    _git(root, "commit", "--quiet", "--all", "--message", "second")
    assert not Soaks(root, PLAYED).is_proved("good")


def test_an_unknown_commit_proves_nothing(root: Path) -> None:
    """A commit that the checkout does not have, as in a shallow clone, can't be compared."""
    run = _run(root, "good")
    page = root / "CONTRIBUTING.md"
    page.write_text(page.read_text().replace(run.commit, "abcdef0"))
    assert not Soaks(root, PLAYED).is_proved("good")


def test_a_row_that_was_written_meanwhile_stays(root: Path) -> None:
    """Two soaks may run beside each other: each writes its own row only."""
    long = Soaks(root, PLAYED)
    _run(root, "pair")
    long.run("good")
    assert Soaks(root, PLAYED).runs.keys() == {"good", "pair"}


def test_figures_are_added_up(capsys: pytest.CaptureFixture[str]) -> None:
    """The last line has the sums of all tests of the process, zeros included."""
    add_figures(failovers=1, read_again=1200, lost=0)
    add_figures(failovers=1, read_again=34, lost=0)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "figures: 2 failovers, 1,234 read again, 0 lost"


def test_the_table_has_every_soak() -> None:
    """Each file of a soak belongs to one of them, and the page has a row for each."""
    files = {file for soak in SOAKS for file in soak.files}
    found = {str(file.relative_to(ROOT)) for file in (ROOT / "tests").rglob("soak_*.py")}
    assert all(any(Path(file).match(each) for each in files) for file in found)
    assert all(any((ROOT / file).exists() for file in soak.files) for soak in SOAKS)
    assert all((ROOT / file).exists() for soak in SOAKS for file in soak.tests)
    page = (ROOT / "CONTRIBUTING.md").read_text()
    assert all(f"| {soak.name} | {soak.does} |" in page for soak in SOAKS)
