"""The exit codes of the process, and which error has which."""

from enum import IntEnum

from airflow_mm2_offsets.errors import (
    ClusterUnreachableError,
    ConfigurationError,
    Mm2OffsetsError,
    PositionError,
    TranslationRefusedError,
)


class ExitCode(IntEnum):
    """The exit codes, as the help lists them."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    UNREACHABLE = 3
    UNUSABLE = 4
    NOT_READY = 5
    WARNINGS = 6
    UNSOUND = 7
    DEFECT = 70  # EX_SOFTWARE of sysexits.h
    IO_ERROR = 74  # EX_IOERR
    INTERRUPTED = 130  # as a shell says of one that ended by SIGINT
    BROKEN_PIPE = 141  # likewise by SIGPIPE


EXIT_CODES = """\
Exit codes:
  0    done, and every partition has an answer
  1    a partition is refused: no answer is known to lose nothing; or its answer
       is not safe: by --strategy linear or kafka it may lose records
  2    wrong arguments, input or settings
  3    a cluster, or Kafka Connect, did not answer
  4    it answered, and what is there can't be used: no such topic, no offset
       syncs, a damaged checkpoint or archive, a missing right
  5    check: a failover can't begin
  6    check --strict: it can, and a check warns or is unknown
  7    doctor: at least one finding is an error
  70   a defect in this program
  74   nothing more can be written: the disk of stdout or of a file is full
  130  interrupted (Ctrl-C); 141: the reader of a pipe went away"""

_CODES = (
    (ClusterUnreachableError, ExitCode.UNREACHABLE),
    (ConfigurationError, ExitCode.USAGE),
    (PositionError, ExitCode.USAGE),
    (TranslationRefusedError, ExitCode.REFUSED),
)


def exit_code(error: Mm2OffsetsError) -> ExitCode:
    """Return the exit code for ``error``."""
    codes = (code for kind, code in _CODES if isinstance(error, kind))
    return next(codes, ExitCode.UNUSABLE)
