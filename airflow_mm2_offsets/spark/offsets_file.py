"""Writes starting offsets to a file where they are too long for an argument, and reads them back.

``job/offsets_file.py`` is the job's side. The file is named after what it holds: a retry writes the
same bytes to the same name, and the offsets of another plan never replace those of this one.
"""

from collections.abc import Callable

from upath import UPath

from airflow_mm2_offsets.errors import PlanError
from airflow_mm2_offsets.job.offsets_file import (
    MARK,
    WRITE_AGAIN,
    check_digest,
    digest_in_name,
    offsets_file_name,
)
from airflow_mm2_offsets.storage import finish_write, read_bytes, write_text

MAX_ARGUMENT_BYTES = 100_000
"""The longest text that stays an argument. Linux lets one have 131,072 bytes, the zero at its end
included (MAX_ARG_STRLEN in linux/binfmts.h, 32 pages of 4 kB). In YARN's cluster mode all of the
driver's command line is one argument, of ``bash -c``: Spark's own JVM options (1.4 kB) and the
job's other arguments come on top, topics among them, and ``YarnSparkHadoopUtil.escapeForShell``
writes two bytes for each quotation mark, which makes these offsets 10 to 20 % longer."""


def is_offsets_file(text: str) -> bool:
    """Tell whether a text names a file of offsets, and is not the offsets."""
    return text.startswith(MARK)


def write_offsets(text: str, location: str, open_place: Callable[[str], UPath]) -> str:
    """Write offsets to a file beside ``location``, whole or not at all; return ``@`` and its name.

    A file of the name that is damaged is overwritten.

    Args:
        text: Spark's JSON text.
        location: A file, such as the plan's: the name of this one begins like its name.
        open_place: Opens a location.

    Raises:
        PlanError: The file can't be written.
    """
    folder, slash, name = location.rpartition("/")
    place = f"{folder}{slash}{offsets_file_name(name.removesuffix('.json'), text)}"
    path = open_place(place)
    finish_write(path, PlanError)  # the job's Hadoop reads no file that a crash has left empty
    if read_bytes(path, PlanError) != text.encode():
        write_text(path, text, PlanError)
    return f"{MARK}{place}"


def read_offsets(text: str, open_place: Callable[[str], UPath]) -> str:
    """Return offsets as Spark's JSON text: ``text`` itself, or what the file that it names holds.

    Raises:
        PlanError: The file is gone, out of reach, or does not hold what its name says.
    """
    if not is_offsets_file(text):
        return text
    location = text.removeprefix(MARK)
    try:
        digest = digest_in_name(location)  # first: no other file is opened
    except ValueError as error:
        raise PlanError(str(error)) from error
    data = read_bytes(open_place(location), PlanError)
    if data is None:
        raise PlanError(f"the file of the starting offsets is gone: {WRITE_AGAIN}", file=location)
    content = data.decode(errors="replace")  # as the job reads it: the digest tells
    try:
        check_digest(location, content, digest)
    except ValueError as error:
        raise PlanError(str(error)) from error
    return content
