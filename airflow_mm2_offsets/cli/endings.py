"""How a command ends by an error: one message, or none, and an exit code."""

import errno
from dataclasses import dataclass

from airflow_mm2_offsets.cli.exit_codes import ExitCode, exit_code
from airflow_mm2_offsets.cli.output import OutputError
from airflow_mm2_offsets.errors import Mm2OffsetsError

_EXTRA = frozenset({"click", "confluent_kafka", "httpx", "upath"})
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What a system says where no more can be written: the disk, the quota or the file is full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The exit code, and what is said on stderr; empty: nothing."""

    code: ExitCode
    message: str = ""


def ending_of(error: BaseException) -> Ending:
    """Return how a command ends that raised ``error``."""
    if isinstance(error, OutputError):
        return _output_ending(error)
    if isinstance(error, KeyboardInterrupt):
        return Ending(code=ExitCode.INTERRUPTED, message="Interrupted")
    if isinstance(error, Mm2OffsetsError):
        code = ExitCode.IO_ERROR if is_disk_full(error) else exit_code(error)
        return Ending(code=code, message=f"Error: {error}")
    if isinstance(error, ModuleNotFoundError) and (missing := _missing_extra(error)):
        return Ending(code=ExitCode.USAGE, message=missing)
    if isinstance(error, OSError) and is_disk_full(error):
        place = f"{error.filename}: " if error.filename else ""
        step = "free some space, or name another place"
        message = f"Error: {place}{error.strerror}; {step}"
        return Ending(code=ExitCode.IO_ERROR, message=message)
    step = "this is a defect: report what --debug shows"
    return Ending(code=ExitCode.DEFECT, message=f"Error: {type(error).__name__}: {error}; {step}")


def is_disk_full(error: BaseException | None) -> bool:
    """Tell whether an error, or one that it came from, is that nothing more can be written."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        error = error.__cause__
    return False


def _output_ending(error: OutputError) -> Ending:
    cause = error.__cause__
    if isinstance(cause, BrokenPipeError):
        return Ending(code=ExitCode.BROKEN_PIPE)
    reason = cause.strerror if isinstance(cause, OSError) else cause
    return Ending(
        code=ExitCode.IO_ERROR,
        message=f"Error: stdout: {reason}; the answer is incomplete: send it to another place",
    )


def _missing_extra(error: ModuleNotFoundError) -> str | None:
    name = (error.name or "").partition(".")[0]
    if name not in _EXTRA:
        return None
    return f"Error: the command line needs {name}; run: pip install 'airflow-mm2-offsets[cli]'"
