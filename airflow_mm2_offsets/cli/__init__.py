"""The command ``airflow-mm2-offsets``: plans and checks on a terminal, without Airflow."""

import os
import sys

from airflow_mm2_offsets.cli.exit_codes import ExitCode

_EXTRA = frozenset({"typer", "rich", "confluent_kafka", "httpx", "upath"})


def main() -> None:
    """Run the command line; it ends the process with one of ``ExitCode``."""
    try:
        from airflow_mm2_offsets.cli.app import app  # noqa: PLC0415 - its extra may be missing

        app(prog_name="airflow-mm2-offsets")
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRA:
            raise
        print(  # noqa: T201 - rich may be what is missing
            f"Error: the command line needs {missing}; run: pip install 'airflow-mm2-offsets[cli]'",
            file=sys.stderr,
        )
        sys.exit(ExitCode.USAGE)
    except (KeyboardInterrupt, SystemExit) as end:
        if isinstance(end, SystemExit) and end.code != ExitCode.INTERRUPTED:
            raise
        # Do not wait for threads that still wait for a cluster.
        sys.stdout.flush()
        os._exit(ExitCode.INTERRUPTED)
