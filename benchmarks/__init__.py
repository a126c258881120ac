"""Accuracy and speed beside MirrorMaker 2's own OffsetSyncStore: what `make bench` runs."""
