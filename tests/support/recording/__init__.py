"""Records runs of real MirrorMaker 2 as golden sets: ``python -m tests.support.recording``."""

from stack.jars import MIRROR_VERSIONS

NEWEST = "4.3"
"""MirrorMaker 2 of stack/ivy.xml."""
RELEASES = (*MIRROR_VERSIONS, NEWEST)
