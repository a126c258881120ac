"""Records runs of real MirrorMaker 2 as golden sets: ``python -m tests.support.recording``."""
