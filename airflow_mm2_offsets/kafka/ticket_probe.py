"""Asks for a Kerberos ticket as librdkafka does: it runs ``kinit``, and reports no word of it."""

import os
import subprocess
import tempfile

_SECONDS = 5.0
"""Somebody waits for advice; a lost packet is sent again within this time."""


def ticket_problem(keytab: str, principal: str) -> str | None:
    """Return why there is no ticket, in the words of ``kinit``; None if there is one.

    The ticket is thrown away. The tickets of this process stay as they are.

    Args:
        keytab: The keytab's path.
        principal: Whose key it holds.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = ["kinit", "-c", f"FILE:{folder}/ticket", "-k", "-t", keytab, "--", principal]
        try:
            done = subprocess.run(  # noqa: S603 - no shell, and the path is the process's own
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_SECONDS,
                check=False,
                env=os.environ | {"LC_ALL": "C"},
            )
        except FileNotFoundError:
            return "kinit is not installed here"
        except subprocess.TimeoutExpired:
            return f"kinit got no answer in {_SECONDS:g} s"
    return None if done.returncode == 0 else done.stderr.strip() or "kinit failed without a word"
