"""Kafka Connect, the host of MirrorMaker 2's connectors, through its REST API."""
