"""The command ``airflow-mm2-offsets``: plans and checks on a terminal, without Airflow."""

import os
import sys


def main() -> None:
    """Run the command line; it ends the process with one of ``ExitCode``."""
    try:
        from airflow_mm2_offsets.cli.process import run
    except KeyboardInterrupt:
        os._exit(130)
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        print(  # noqa: T201 - to the person at the terminal
            "Error: the command line needs click; run: pip install 'airflow-mm2-offsets[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
    run()
