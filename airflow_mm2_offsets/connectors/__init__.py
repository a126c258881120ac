"""MirrorMaker 2's connectors on Kafka Connect: described, applied, and their offsets changed.

The operators of ``operators/connectors.py`` and ``operators/connector_offsets.py`` call it.
"""
