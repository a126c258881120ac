"""How commands end: the exit code and the message of each error."""

import errno
import io
from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets import connection_check
from airflow_mm2_offsets.cli.endings import Ending, ending_of
from airflow_mm2_offsets.cli.exit_codes import ExitCode
from airflow_mm2_offsets.cli.output import AnswerStream, OutputError
from airflow_mm2_offsets.errors import ArchiveError, PlanError
from tests.unit.cli.conftest import CommandLine

FULL = OSError(errno.ENOSPC, "No space left on device")


class _Failing(io.StringIO):
    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def write(self, _text: str) -> int:
        raise self.error

    def flush(self) -> None:
        raise self.error


def _of_stdout(error: OSError) -> Ending:
    with pytest.raises(OutputError) as caught:
        print("the answer", file=AnswerStream(_Failing(error)), flush=True)
    return ending_of(caught.value)


def test_a_full_disk_of_stdout_is_one_line() -> None:
    """Code 74 (EX_IOERR); the reason is the system's."""
    ending = _of_stdout(FULL)
    assert int(ending.code) == 74
    assert ending.message.startswith("Error: stdout: No space left on device; ")


def test_a_pipe_without_a_reader_is_silent() -> None:
    """Code 141, as a shell says of a program that SIGPIPE ended."""
    assert _of_stdout(BrokenPipeError(errno.EPIPE, "Broken pipe")) == Ending(code=ExitCode(141))


def test_a_flush_fails_as_a_write_does() -> None:
    """What was in the buffer is not lost in silence."""
    with pytest.raises(OutputError):
        AnswerStream(_Failing(FULL)).flush()


def test_ctrl_c_is_130() -> None:
    """With one word."""
    assert ending_of(KeyboardInterrupt()) == Ending(code=ExitCode(130), message="Interrupted")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize("kind", [PlanError, ArchiveError])
def test_a_full_disk_of_a_file_is_74(kind: type[Exception], number: int) -> None:
    """Whatever the error that a room below made of it; the message stays."""
    error = kind("plan.json is out of reach")
    error.__cause__ = OSError(number, "full")
    ending = ending_of(error)
    assert ending == Ending(code=ExitCode.IO_ERROR, message="Error: plan.json is out of reach")


def test_another_error_of_a_file_is_not_74() -> None:
    """A missing right is no full disk."""
    error = ArchiveError("out of reach")
    error.__cause__ = PermissionError(errno.EACCES, "Permission denied")
    assert ending_of(error).code == ExitCode.UNUSABLE
    assert ending_of(OSError(errno.EACCES, "denied")).code == ExitCode.DEFECT


def test_a_plan_that_can_not_be_written_is_74(
    line: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the file; no answer is printed, and no defect is claimed."""

    def fail(path: UPath, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_bytes", fail)
    monkeypatch.setattr(UPath, "write_bytes", fail)
    out = tmp_path / "plan.json"
    arguments = ("plan", "--positions", '{"orders": {"0": 50}}', "--out", str(out))
    error = line.error(*arguments, code=ExitCode.IO_ERROR)
    assert error.startswith(f"Error: {out} is out of reach: OSError: [Errno 28] No space left")
    assert "defect" not in error
    assert not out.exists()


def test_a_bare_error_of_a_full_disk_names_its_file(
    line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no defect either."""

    def fail(*_args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/tmp/x")  # noqa: S108 - a name

    monkeypatch.setattr(connection_check, "check_connection", fail)
    error = line.error("check-connection", code=ExitCode.IO_ERROR)
    assert error == (
        "Error: /tmp/x: No space left on device; free some space, or name another place\n"
    )


@pytest.mark.parametrize("name", ["confluent_kafka", "upath.core"])
def test_a_missing_package_of_the_extra_is_named(name: str) -> None:
    """With the way to install it; another missing module is a defect."""
    ending = ending_of(ModuleNotFoundError(f"No module named {name!r}", name=name))
    assert ending.code == ExitCode.USAGE
    assert name.partition(".")[0] in ending.message
    assert "pip install 'airflow-mm2-offsets[cli]'" in ending.message
    assert ending_of(ModuleNotFoundError("no", name="ours")).code == ExitCode.DEFECT
