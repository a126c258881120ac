"""The command as a process: it runs one, and ends by its exit code."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import click

from airflow_mm2_offsets.cli.app import PROGRAM, app
from airflow_mm2_offsets.cli.command import say
from airflow_mm2_offsets.cli.endings import ending_of
from airflow_mm2_offsets.cli.exit_codes import ExitCode
from airflow_mm2_offsets.cli.interrupts import watch_interrupts
from airflow_mm2_offsets.cli.output import OutputError, abandon_stdout, guard_stdout
from airflow_mm2_offsets.cli.terminal import erase_line


def run() -> NoReturn:
    """Run the command of ``sys.argv``, and end the process."""
    watch_interrupts(_end_interrupted)
    code = _exit_code()
    if code == ExitCode.INTERRUPTED:
        # Do not wait for threads that still wait for a cluster.
        with suppress(OSError, OutputError):
            sys.stdout.flush()
        os._exit(code)
    sys.exit(code)


def _end_interrupted() -> NoReturn:
    """End the process while its main thread is busy: it may hold the lock of stdout."""
    with suppress(OSError):
        erase_line()
    os._exit(_end(KeyboardInterrupt()))


def _exit_code() -> int:
    """Return the exit code of a command; what Click raises, and what no command catches."""
    if sys.stderr is None:  # It is closed; Python would print messages to stdout.
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - to the end
    try:
        guard_stdout()
        code = app.main(prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
        return error.exit_code
    except click.Abort:
        return _end(KeyboardInterrupt())
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - each has its exit code
        return _end(error)
    return code or 0


def _end(error: BaseException) -> int:
    ending = ending_of(error)
    if isinstance(error, OutputError) and sys.stdout is not None:
        abandon_stdout()
    if ending.message:
        say(ending.message)
    return ending.code
