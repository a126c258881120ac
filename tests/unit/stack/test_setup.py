"""How the virtual environment is made."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from stack import setup
from stack.setup import SetupError

Command = tuple[str, ...]


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[Command]:
    """Record what would run; uv fails to install the extra ``broken``."""
    recorded: list[Command] = []

    def run(what: str, command: Sequence[str | Path]) -> None:
        recorded.append(tuple(map(str, command)))
        if "uv" in Path(command[0]).name and "broken" in recorded[-1][-1]:
            raise SetupError(f"{what}: ended with code 2")

    monkeypatch.setattr(setup, "run", run)
    return recorded


def test_an_old_python_is_refused() -> None:
    """The message names both versions and how to choose another Python."""
    with pytest.raises(SetupError, match=r"3\.11 or newer .* this is 3\.9: make PYTHON="):
        setup.check_machine((3, 9))


def test_a_machine_without_java_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SetupError, match="install a JRE"):
        setup.check_machine()


def test_uv_installs_the_pinned_versions(commands: list[Command]) -> None:
    """One command, with constraints.txt, into the environment."""
    setup.install("demo")
    ((uv, *arguments),) = commands
    assert uv == str(setup.UV)
    assert arguments[:2] == ["pip", "install"]
    assert arguments[-4:] == ["--constraint", "constraints.txt", "--editable", ".[demo]"]


def test_pip_follows_where_uv_fails(
    commands: list[Command], capsys: pytest.CaptureFixture[str]
) -> None:
    """It installs the same, and a line says why it takes longer."""
    setup.install("broken")
    uv, pip = commands
    assert pip[:3] == (str(setup.PYTHON), "-m", "pip")
    assert pip[-4:] == uv[-4:]
    assert "uv installs: ended with code 2; pip tries" in capsys.readouterr().out
